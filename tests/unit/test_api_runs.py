"""The API end to end with the scripted judge: data file, run, resume, show, export."""

from __future__ import annotations

import asyncio
import json
import logging
import os
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from offline_judge import api
from offline_judge.api import RunRequest
from offline_judge.domain.events import AnyEvent, RunFinished, SampleFinished, WarningRaised
from offline_judge.domain.progress import Preflight, Progress
from offline_judge.errors import (
    DataError,
    RunChangedError,
    RunLockedError,
    RunNotFoundError,
    UsageError,
)
from offline_judge.settings import Settings, load_settings


class Ears:
    """A listener that remembers, and may act on an event."""

    def __init__(self, on: Callable[[AnyEvent], None] = lambda _event: None) -> None:
        self.events: list[AnyEvent] = []
        self.reports: list[Preflight] = []
        self.standings: list[Progress] = []
        self.phases: list[str] = []
        self._on = on

    def phase(self, phase: str, detail: str = "") -> None:
        self.phases.append(phase)

    def preflight(self, report: Preflight) -> None:
        self.reports.append(report)

    def event(self, event: AnyEvent) -> None:
        self.events.append(event)
        self._on(event)

    def progress(self, progress: Progress) -> None:
        self.standings.append(progress)

    def judged(self) -> list[str]:
        return [event.sample_id for event in self.events if isinstance(event, SampleFinished)]


@pytest.fixture
def settings(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Settings:
    # A socket's path must be short, and no test may meet the user's own runs.
    monkeypatch.setenv("XDG_RUNTIME_DIR", str(tmp_path / "run"))
    (tmp_path / "run").mkdir()
    flags = {
        "judge": "scripted",
        "data_dir": str(tmp_path / "data"),
        "cache_dir": str(tmp_path / "cache"),
    }
    return load_settings(flags, environ={}, project_dir=tmp_path, user_file=tmp_path / "none")


def _write(path: Path, count: int = 6, **changes: Any) -> Path:
    rows = [
        {
            "id": f"s{n}",
            "question": f"What is {n // 2}?",
            "response": f"It is {n}.",
            "label": n % 2 == 0,
            "source": "test",
        }
        for n in range(count)
    ]
    for row in rows:
        row.update(changes.get(str(row["id"]), {}))
    path.write_text("".join(json.dumps(row) + "\n" for row in rows))
    return path


@pytest.fixture
def data(tmp_path: Path) -> Path:
    return _write(tmp_path / "data.jsonl")


def _direct(data: Path, **changes: Any) -> RunRequest:
    return RunRequest(method="direct", data=data, **changes)


def test_a_data_file_is_judged_and_exported(settings: Settings, data: Path) -> None:
    ears = Ears()
    view = api.run(_direct(data), settings, ears)
    assert view.summary.status == "completed"
    assert view.summary.outcomes == {"scored": 6}
    assert view.summary.agreement is not None
    assert view.summary.agreement.n == 6
    rows = list(api.export_rows(view.manifest.run_id, settings))
    assert [row["id"] for row in rows] == [f"s{n}" for n in range(6)]
    first = rows[0]
    assert first["label"] is True
    assert first["verdict"] in (True, False)
    assert 0 <= first["probability"] <= 1
    assert first["outcome"] == "scored"
    assert first["evidence_state"] == "not_searched"
    assert first["source"] == "test"
    assert all(not isinstance(value, (list, dict)) for value in first.values())


def test_what_shapes_the_judgments_is_in_the_manifest(settings: Settings, data: Path) -> None:
    manifest = api.run(_direct(data, limit=2), settings).manifest
    assert manifest.data.path == str(data)
    assert manifest.judge.name == "scripted"
    assert manifest.settings["judge"].origin == "flag"
    assert manifest.settings["window"].origin == "default"
    assert manifest.settings["limit"].value == 2
    assert "direct/verdict" in manifest.prompts
    assert {"offline_judge", "python", "xllamacpp", "tantivy"} <= manifest.versions.keys()
    assert manifest.leaves_machine == ()


def test_the_source_of_each_template_is_kept_with_the_run(settings: Settings, data: Path) -> None:
    from offline_judge.runs.store import RunStore

    manifest = api.run(_direct(data), settings).manifest
    directory = RunStore(settings.runs_path).open(manifest.run_id)
    assert manifest.prompts
    for source_hash in manifest.prompts.values():
        assert directory.blob(source_hash)


def test_results_lie_in_the_run_directory(settings: Settings, data: Path) -> None:
    view = api.run(_direct(data), settings)
    path = settings.runs_path / view.manifest.run_id / "results.json"
    assert json.loads(path.read_text())["outcomes"] == {"scored": 6}


def test_a_listener_sees_preflight_events_and_progress(settings: Settings, data: Path) -> None:
    ears = Ears()
    api.run(_direct(data), settings, ears)
    assert ears.reports[0].planned == 6
    assert ears.standings[-1].finished == 6
    assert isinstance(ears.events[-1], RunFinished)


def test_a_completed_run_resumed_judges_nothing_again(settings: Settings, data: Path) -> None:
    first = api.run(_direct(data), settings)
    ears = Ears()
    again = api.resume(first.manifest.run_id, settings, listener=ears)
    assert ears.judged() == []
    assert ears.reports[0].reused == 6
    assert "reused 6: already judged." in ears.reports[0].notes
    assert again.rows == first.rows
    assert again.summary.status == "completed"


def test_more_limit_only_adds_samples(settings: Settings, data: Path) -> None:
    first = api.run(_direct(data, limit=2), settings)
    assert first.summary.status == "limit"
    assert len(first.rows) == 2
    ears = Ears()
    more = api.resume(first.manifest.run_id, settings, limit=5, listener=ears)
    assert len(ears.judged()) == 3
    assert [row.id for row in more.rows][:2] == [row.id for row in first.rows]
    assert more.summary.planned == 5


def test_resume_keeps_the_limit_the_run_began_with(settings: Settings, data: Path) -> None:
    first = api.run(_direct(data, limit=2), settings)
    again = api.resume(first.manifest.run_id, settings)
    assert len(again.rows) == 2
    assert again.summary.status == "limit"


def test_limited_runs_take_the_same_samples_in_the_same_order(
    settings: Settings, data: Path
) -> None:
    few = [row.id for row in api.run(_direct(data, limit=3), settings).rows]
    many = [row.id for row in api.run(_direct(data, limit=6), settings).rows]
    assert many[:3] == few


def test_no_sample_is_taken_after_the_time_limit(settings: Settings, data: Path) -> None:
    view = api.run(_direct(data, minutes=0.0), settings)
    assert view.summary.status == "limit"
    assert view.rows == ()
    assert len(api.resume(view.manifest.run_id, settings).rows) == 6


def test_an_edited_data_file_is_refused_by_name(settings: Settings, data: Path) -> None:
    view = api.run(_direct(data), settings)
    _write(data, s3={"response": "Something else."})
    with pytest.raises(RunChangedError) as caught:
        api.resume(view.manifest.run_id, settings)
    assert "1 (s3) changed" in str(caught.value)
    assert len(api.load_run(view.manifest.run_id, settings).rows) == 6


def test_a_data_file_with_rows_added_is_refused(settings: Settings, data: Path) -> None:
    view = api.run(_direct(data), settings)
    _write(data, count=8)
    with pytest.raises(RunChangedError, match="had 6 rows and has 8"):
        api.resume(view.manifest.run_id, settings)


def test_a_data_file_that_is_gone_is_named(settings: Settings, data: Path) -> None:
    view = api.run(_direct(data), settings)
    data.unlink()
    with pytest.raises(DataError) as caught:
        api.resume(view.manifest.run_id, settings)
    assert str(data) in str(caught.value)


def test_changed_prompts_are_refused(settings: Settings, data: Path, tmp_path: Path) -> None:
    folder = tmp_path / "prompts" / "direct"
    folder.mkdir(parents=True)
    own = folder / "verdict.system.jinja"
    own.write_text("You are a strict judge.\n")
    mine = replace(settings, prompts_dir=str(tmp_path / "prompts"))
    view = api.run(_direct(data, limit=1), mine)
    own.write_text("You are a lenient judge.\n")
    with pytest.raises(RunChangedError) as caught:
        api.resume(view.manifest.run_id, settings, limit=3)
    assert "direct/verdict" in str(caught.value)


def test_another_script_is_another_judge(settings: Settings, data: Path, tmp_path: Path) -> None:
    script = tmp_path / "script.json"
    script.write_text('{"label_rules": [{"match": "", "masses": {"true": 0.9, "false": 0.1}}]}')
    mine = replace(settings, judge=f"scripted:{script}")
    view = api.run(_direct(data, limit=1), mine)
    script.write_text('{"label_rules": [{"match": "", "masses": {"true": 0.1, "false": 0.9}}]}')
    with pytest.raises(RunChangedError, match="weights"):
        api.resume(view.manifest.run_id, mine, limit=3)


def test_resume_goes_on_with_the_judge_of_the_run(
    settings: Settings, data: Path, tmp_path: Path
) -> None:
    script = tmp_path / "script.json"
    script.write_text('{"label_rules": [{"match": "", "masses": {"true": 0.9, "false": 0.1}}]}')
    mine = replace(settings, judge=f"scripted:{script}")
    view = api.run(_direct(data, limit=1), mine)
    other = load_settings(
        {"data_dir": settings.data_dir, "cache_dir": settings.cache_dir}, environ={}
    )
    rows = api.resume(view.manifest.run_id, other, limit=6).rows
    assert [row.probability for row in rows] == pytest.approx([0.9] * 6)


def test_a_judge_asked_for_by_flag_that_is_not_the_runs_is_refused(
    settings: Settings, data: Path
) -> None:
    view = api.run(_direct(data, limit=1), settings)
    other = replace(settings, judge="another", origins={"judge": "flag"})
    with pytest.raises(RunChangedError, match="another"):
        api.resume(view.manifest.run_id, other)


def test_a_run_in_progress_cannot_be_resumed(settings: Settings, data: Path) -> None:
    refusals: list[RunLockedError] = []

    def resume_now(event: AnyEvent) -> None:
        if isinstance(event, SampleFinished) and not refusals:
            with pytest.raises(RunLockedError) as caught:
                api.resume("last", settings)
            refusals.append(caught.value)

    view = api.run(_direct(data), settings, Ears(resume_now))
    assert refusals
    assert view.summary.outcomes == {"scored": 6}


def test_bad_rows_left_out_are_told_in_the_run(settings: Settings, tmp_path: Path) -> None:
    path = tmp_path / "bad.jsonl"
    path.write_text('{"question": "q", "response": "r"}\n{"question": "q"}\n')
    with pytest.raises(DataError):
        api.run(_direct(path), settings)
    ears = Ears()
    view = api.run(_direct(path, skip_bad=True), settings, ears)
    assert len(view.rows) == 1
    warnings = [event.message for event in ears.events if isinstance(event, WarningRaised)]
    assert any("line 2" in message for message in warnings)
    assert len(api.resume(view.manifest.run_id, settings).rows) == 1


def test_columns_can_be_named_otherwise(settings: Settings, tmp_path: Path) -> None:
    path = tmp_path / "named.jsonl"
    path.write_text('{"prompt": "q", "answer": "r"}\n')
    request = _direct(path, mapping={"prompt": "question", "answer": "response"})
    view = api.run(request, settings)
    assert view.rows[0].question == "q"
    assert api.resume(view.manifest.run_id, settings).summary.status == "completed"


def test_nothing_is_left_behind_by_a_run_that_cannot_begin(settings: Settings, data: Path) -> None:
    with pytest.raises(UsageError, match="dirct"):
        api.run(RunRequest(method="dirct", data=data), settings)
    with pytest.raises(UsageError, match="rationle"):
        api.run(_direct(data, options={"rationle": False}), settings)
    assert api.list_runs(settings) == []


def test_runs_are_listed_newest_first(settings: Settings, data: Path) -> None:
    older = api.run(_direct(data, limit=1), settings).manifest.run_id
    newer = api.run(_direct(data), settings).manifest.run_id
    listed = api.list_runs(settings)
    assert [found.id for found in listed] == [newer, older]
    assert (listed[0].method, listed[0].judge, listed[0].status) == (
        "direct",
        "scripted",
        "completed",
    )
    assert (listed[0].planned, listed[0].finished, listed[0].unscored) == (6, 6, 0)


def test_the_list_does_not_believe_results_older_than_the_trace(
    settings: Settings, data: Path
) -> None:
    run_id = api.run(_direct(data, limit=1), settings).manifest.run_id
    path = settings.runs_path / run_id / "results.json"
    stale = path.read_text()
    api.resume(run_id, settings, limit=6)
    path.write_text(stale)
    os.utime(path, ns=(0, 0))
    assert api.list_runs(settings)[0].finished == 6


def test_a_damaged_run_does_not_hide_the_others(
    settings: Settings, data: Path, caplog: pytest.LogCaptureFixture
) -> None:
    broken = api.run(_direct(data, limit=1), settings).manifest.run_id
    sound = api.run(_direct(data, limit=1), settings).manifest.run_id
    (settings.runs_path / broken / "run.json").write_text("{")
    with caplog.at_level(logging.WARNING):
        assert [found.id for found in api.list_runs(settings)] == [sound]
    assert broken in caplog.text


def test_one_sample_is_shown_with_its_events(settings: Settings, data: Path) -> None:
    api.run(_direct(data), settings)
    view = api.show("last", "s3", settings)
    assert view.row.id == view.sample.id == "s3"
    assert view.events[0].event == "sample_started"
    assert isinstance(view.events[-1], SampleFinished)


def test_a_misspelt_sample_gets_the_nearest(settings: Settings, data: Path) -> None:
    api.run(_direct(data), settings)
    with pytest.raises(UsageError) as caught:
        api.show("last", "ss3", settings)
    assert "`s3`" in str(caught.value)
    with pytest.raises(RunNotFoundError):
        api.show("nothing", "s3", settings)


def test_ask_is_a_run_of_one_sample(settings: Settings) -> None:
    view = api.ask("What is 1?", "One.", method="direct", settings=settings)
    assert view.row.verdict is not None
    assert view.sample.response == "One."
    assert view.run.summary.outcomes == {"scored": 1}
    again = api.resume(view.run.manifest.run_id, settings)
    assert again.rows == view.run.rows


def test_an_asked_question_can_be_resumed_after_its_data_directory_moved(
    settings: Settings, tmp_path: Path
) -> None:
    view = api.ask("What is 1?", "One.", method="direct", settings=settings)
    moved = tmp_path / "moved"
    settings.data_path.rename(moved)
    there = replace(settings, data_dir=str(moved))
    assert api.resume(view.run.manifest.run_id, there).summary.status == "completed"


def test_cancelling_a_run_nobody_works_on_is_a_usage_error(settings: Settings, data: Path) -> None:
    run_id = api.run(_direct(data), settings).manifest.run_id
    with pytest.raises(UsageError):
        api.cancel(run_id, settings)


async def test_a_run_can_be_made_inside_an_event_loop(settings: Settings, data: Path) -> None:
    await asyncio.sleep(0)
    assert api.run(_direct(data), settings).summary.status == "completed"


def test_the_secret_is_private_and_stays(settings: Settings, data: Path) -> None:
    api.run(_direct(data, limit=1), settings)
    path = settings.data_path / "secret"
    before = path.read_bytes()
    assert len(before) == 32
    assert path.stat().st_mode & 0o777 == 0o600
    api.run(_direct(data, limit=1), settings)
    assert path.read_bytes() == before


def test_completions_are_reused_by_the_next_run_unless_told_not_to(
    settings: Settings, data: Path
) -> None:
    assert api.run(_direct(data), settings).summary.reused_calls == 0
    again = api.run(_direct(data), settings).summary
    assert again.calls == 0
    assert again.reused_calls > 0
    anew = api.run(_direct(data), replace(settings, cache=False)).summary
    assert anew.reused_calls == 0
