"""One run on the screen: watched while another process judges, and read once it has ended."""

from __future__ import annotations

import json
import os
import shutil
import signal
import time
from pathlib import Path
from typing import Any

import pytest
from offline_judge_tui.app import OfflineJudgeApp
from offline_judge_tui.screens.confirm import Confirm
from offline_judge_tui.screens.home import HomeScreen
from offline_judge_tui.screens.run import RunScreen
from textual.pilot import Pilot
from ui_parts import (
    HOSTILE,
    Place,
    ended,
    screen_text,
    shown_rows,
    static,
    table_of,
    until,
)

from offline_judge import api
from offline_judge.jobs import others
from offline_judge.runs import index as index_module
from offline_judge.settings import Settings

# Not a conftest.py: the type checker knows modules by their names, and there is one already.
pytest_plugins = ("ui_fixtures",)


def slow(place: Place) -> Settings:
    """A judge that writes slowly enough to be watched, and whose verdicts differ."""
    told = "The harbour bridge of Ostend is of 1911. It is right."
    answer = json.dumps({"rationale": told, "correct": True})
    rules = [{"match": "", "answers": [answer]}]
    return place.settings(judge=place.script(latency_s=0.05, rules=rules), cache=False)


def start(place: Place, settings: Settings, count: int = 12) -> str:
    return api.start(api.RunRequest("direct", place.data(count)), settings).run_id


async def test_an_ended_run_is_shown_with_its_samples_and_figures(
    place: Place, settings: Settings
) -> None:
    run_id = place.run(settings, 30)
    rows = api.load_run(run_id, settings).rows
    app = OfflineJudgeApp(settings, run="last")
    async with app.run_test(size=(140, 45), notifications=True) as pilot:
        await until(pilot, lambda: len(shown_rows(pilot)) == 30)
        assert shown_rows(pilot) == [row.id for row in rows]
        text = screen_text(pilot)
        assert "completed  direct, data.jsonl, scripted" in text
        assert "30/30" in text
        wrong = [row.id for row in rows if row.label is not row.verdict]
        await until(pilot, lambda: "n = 30 samples of 15 questions" in screen_text(pilot))
        await pilot.press("x")
        await until(pilot, lambda: shown_rows(pilot) == wrong)
        assert f"[only disagreements: {len(wrong)}]" in static(pilot, "#head")
        assert all(
            " ≠" in row.cells[2] for n in range(len(wrong)) if (row := table_of(pilot).known(n))
        )
        await pilot.press("x", "o", "o")
        by_share = [row.id for row in sorted(rows, key=lambda row: row.probability or 0)]
        await until(pilot, lambda: shown_rows(pilot) == by_share)
        await pilot.press("slash", *"s17")
        await until(pilot, lambda: shown_rows(pilot) == ["s17"])
        await pilot.press("escape", "2")
        await until(pilot, lambda: "ended, completed" in screen_text(pilot))
        await pilot.press("4")
        await until(pilot, lambda: "leaves this machine  nothing" in screen_text(pilot))


async def test_a_run_of_another_process_is_watched_token_by_token(place: Place) -> None:
    settings = slow(place)
    run_id = start(place, settings)
    app = OfflineJudgeApp(settings, run=run_id)
    async with app.run_test(size=(140, 45), notifications=True) as pilot:
        await until(pilot, lambda: "harbour" in screen_text(pilot))
        assert "It is right. The" not in screen_text(pilot)
        await until(
            pilot, lambda: "1 busy" in static(pilot, "#head") or "1/" in static(pilot, "#head")
        )
        await until(pilot, lambda: "judging" in screen_text(pilot))
        await pilot.press("p")
        await until(pilot, lambda: static(pilot, "#head").startswith("paused"))
        await pilot.press("p")
        await until(pilot, lambda: static(pilot, "#head").startswith("running"))
        await pilot.press("s")
        await until(pilot, lambda: static(pilot, "#head").startswith("drained"))
        await pilot.press("2")
        await until(pilot, lambda: "ended, drained" in screen_text(pilot))
        assert screen_text(pilot).count("ended, drained") == 1
        view = ended(run_id, settings)
        await until(pilot, lambda: len(shown_rows(pilot)) == len(view.rows))
        await pilot.press("p")
        await until(pilot, lambda: "No process works on this run" in screen_text(pilot))


async def _watched_and_left(pilot: Pilot[None]) -> None:
    await until(pilot, lambda: static(pilot, "#head").startswith("running"))
    await until(pilot, lambda: "tokens/s" in static(pilot, "#head"))
    await pilot.press("escape")
    await until(pilot, lambda: isinstance(pilot.app.screen, HomeScreen))
    await until(pilot, lambda: "1 running" in static(pilot, "#standing"))


async def test_leaving_lets_a_run_go_on_and_coming_back_finds_it(place: Place) -> None:
    settings = slow(place)
    run_id = start(place, settings)
    for _ in range(2):
        async with OfflineJudgeApp(settings, run=run_id).run_test(
            size=(80, 24), notifications=True
        ) as pilot:
            await _watched_and_left(pilot)
        assert api.run_holder(run_id, settings)


async def test_cancelling_asks_and_the_run_can_be_resumed(place: Place) -> None:
    settings = slow(place)
    run_id = start(place, settings, 3)
    app = OfflineJudgeApp(settings, run=run_id)
    async with app.run_test(size=(80, 24), notifications=True) as pilot:
        await until(pilot, lambda: "tokens/s" in static(pilot, "#head"))
        await pilot.press("ctrl+x")
        await until(pilot, lambda: isinstance(app.screen, Confirm))
        await pilot.press("tab", "enter")
        await until(pilot, lambda: static(pilot, "#head").startswith("cancelled"))
        await pilot.press("r")
        await until(pilot, lambda: static(pilot, "#head").startswith("completed"))
    assert ended(run_id, settings).summary.outcomes == {"scored": 3}


async def test_a_run_that_is_killed_is_shown_as_interrupted(place: Place) -> None:
    settings = slow(place)
    run_id = start(place, settings)
    app = OfflineJudgeApp(settings, run=run_id)
    async with app.run_test(size=(80, 24), notifications=True) as pilot:
        await until(pilot, lambda: "tokens/s" in static(pilot, "#head"))
        os.kill(api.run_holder(run_id, settings), signal.SIGKILL)
        await until(pilot, lambda: static(pilot, "#head").startswith("interrupted"))
        await until(pilot, lambda: "unfinished" in screen_text(pilot))


async def test_a_judge_that_crashes_is_in_the_log(place: Place) -> None:
    faults = [{"kind": "crash", "match": "What is 1", "times": 9}]
    settings = place.settings(judge=place.script(faults=faults))
    run_id = place.run(settings, 4)
    app = OfflineJudgeApp(settings, run=run_id)
    async with app.run_test(size=(140, 45), notifications=True) as pilot:
        await pilot.press("2")
        await until(pilot, lambda: "crashed the engine" in screen_text(pilot))
        await until(pilot, lambda: "unscored: backend" in screen_text(pilot))


async def test_the_index_tells_how_far_it_is_and_can_be_left(
    place: Place, settings: Settings, monkeypatch: pytest.MonkeyPatch
) -> None:
    run_id = place.run(settings, 30)
    (settings.runs_path / run_id / "results.json").unlink()
    (settings.runs_path / run_id / "index.sqlite").unlink(missing_ok=True)
    monkeypatch.setattr(index_module, "_AT_ONCE", 1)
    # Else the list of runs below makes the index too.
    monkeypatch.setattr(others, "_MUCH", 0)
    standing = index_module.RunIndex._standing

    def slowly(*arguments: Any) -> tuple[int, int]:
        time.sleep(0.01)
        return standing(*arguments)

    monkeypatch.setattr(index_module.RunIndex, "_standing", slowly)
    heads: list[str] = []
    app = OfflineJudgeApp(settings, run=run_id)
    async with app.run_test(size=(80, 24), notifications=True) as pilot:

        def opened() -> bool:
            if isinstance(app.screen, RunScreen):
                heads.append(static(pilot, "#head"))
            return len(shown_rows(pilot)) == 30

        await until(pilot, opened)
    assert any("making the index" in head for head in heads)


async def test_a_run_deleted_meanwhile_is_a_message(place: Place, settings: Settings) -> None:
    run_id = place.run(settings, 300)
    app = OfflineJudgeApp(settings, run=run_id)
    async with app.run_test(size=(80, 24), notifications=True) as pilot:
        await until(pilot, lambda: bool(shown_rows(pilot)))
        shutil.rmtree(settings.runs_path / run_id)
        await pilot.press("end")
        await until(pilot, lambda: "did not work" in screen_text(pilot))
        assert isinstance(app.screen, RunScreen)


def _rewrite(run: Path, change: Any) -> None:
    trace = run / "events-main.jsonl"
    lines = [json.loads(line) for line in trace.read_text().splitlines()]
    trace.write_text("".join(json.dumps(change(line)) + "\n" for line in lines))


async def test_a_trace_of_a_newer_program_and_a_half_written_one_open(
    place: Place, settings: Settings
) -> None:
    run_id = place.run(settings, 4)
    run = settings.runs_path / run_id

    def newer(raw: dict[str, Any]) -> dict[str, Any]:
        kind = "dreamt" if raw["event"] == "call_finished" else raw["event"]
        return raw | {"event": kind, "new": [HOSTILE]}

    _rewrite(run, newer)
    trace = run / "events-main.jsonl"
    trace.write_bytes(trace.read_bytes() + b'{"seq": 99, "half')
    app = OfflineJudgeApp(settings, run=run_id)
    async with app.run_test(size=(80, 24), notifications=True) as pilot:
        await until(pilot, lambda: len(shown_rows(pilot)) == 4)


async def test_a_damaged_trace_is_named(place: Place, settings: Settings) -> None:
    run_id = place.run(settings, 4)
    run = settings.runs_path / run_id
    (run / "index.sqlite").unlink(missing_ok=True)
    lines = (run / "events-main.jsonl").read_bytes().splitlines(keepends=True)
    lines[3] = b"#" * 20 + b"\n"
    (run / "events-main.jsonl").write_bytes(b"".join(lines))
    app = OfflineJudgeApp(settings, run=run_id)
    async with app.run_test(size=(140, 45), notifications=True) as pilot:
        await until(pilot, lambda: "damaged" in static(pilot, "#head"))


async def test_samples_with_any_text_are_shown_as_they_are(
    place: Place, settings: Settings
) -> None:
    data = place.data(2, s0={"question": HOSTILE, "id": HOSTILE}, s1={"question": "שלום " * 40})
    run_id = api.run(api.RunRequest("direct", data), settings).manifest.run_id
    app = OfflineJudgeApp(settings, run=run_id)
    async with app.run_test(size=(80, 24), notifications=True) as pilot:
        await until(pilot, lambda: len(shown_rows(pilot)) == 2)
        text = screen_text(pilot)
        assert "[b]bold" in text
        assert "\x1b" not in text
        await pilot.press("enter")
