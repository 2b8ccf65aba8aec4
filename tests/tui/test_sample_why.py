"""Judging a sample again from its screen: what moves, what is told, and that it can be stopped."""

from __future__ import annotations

import asyncio
import time
from pathlib import Path

import pytest
from offline_judge_tui.app import OfflineJudgeApp
from offline_judge_tui.screens.judging_again import OwnPassageScreen, WithoutScreen
from sample_parts import (
    HANG,
    PATIENCE_S,
    SCRIPT,
    Judged,
    at_sample,
    judge_four,
    node,
    opened,
    put_cursor,
    text,
    until,
)
from textual.pilot import Pilot
from textual.widgets import Button, Input, OptionList, TabbedContent, TextArea

from offline_judge import api


@pytest.fixture
def judged(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Judged:
    return judge_four(tmp_path, monkeypatch)


def listed(app: OfflineJudgeApp) -> list[str]:
    options = app.screen.query_one("#why-variants", OptionList).options
    return [str(option.prompt) for option in options]


async def judge_without(pilot: Pilot[None], app: OfflineJudgeApp) -> None:
    """Judge again without what `[E1]` is, by keys."""
    screen = await opened(pilot, app)
    await put_cursor(pilot, screen, node(screen, "evidence", "★ [E1]"))
    await pilot.press("x")
    await until(pilot, lambda: isinstance(app.screen, WithoutScreen))
    await pilot.press("enter")
    await until(pilot, lambda: app.screen is screen and len(listed(app)) == 2)


async def write_own(pilot: Pilot[None], app: OfflineJudgeApp, passage: str, date: str = "") -> None:
    """Write a passage and let it be judged with."""
    await until(pilot, lambda: isinstance(app.screen, OwnPassageScreen))
    app.screen.query_one("#own-text", TextArea).text = passage
    app.screen.query_one("#own-date", Input).value = date
    await pilot.press("ctrl+s")


async def test_without_a_piece_of_evidence_the_probability_moves(judged: Judged) -> None:
    before = judged.content()
    async with at_sample(judged) as (app, pilot):
        await judge_without(pilot, app)
        assert "0.90 true" in listed(app)[0]
        assert listed(app)[0].endswith("as judged")
        assert "0.25 false" in listed(app)[1]
        assert "\u22120.65, verdict turned" in listed(app)[1]
        assert "without [E1] Ostend bridge" in listed(app)[1]
        assert "0.25 of true" in text(app, "#why-doing")
    assert judged.content() == before


async def test_evidence_is_chosen_in_the_tree_while_the_reasons_stay_in_sight(
    judged: Judged,
) -> None:
    async with at_sample(judged) as (app, pilot):
        screen = await opened(pilot, app)
        await pilot.press("w")
        assert screen.query_one("#why-without", Button).disabled
        await put_cursor(pilot, screen, node(screen, "evidence", "★ [E1]"))
        assert screen.query_one(TabbedContent).active == "tab-why"
        assert "[E1] Ostend bridge" in text(app, "#why-chosen")
        assert not screen.query_one("#why-without", Button).disabled


async def test_a_derived_run_opens_and_names_what_it_comes_from(judged: Judged) -> None:
    async with at_sample(judged) as (app, pilot):
        await judge_without(pilot, app)
        options = app.screen.query_one(OptionList)
        options.focus()
        options.highlighted = 1
        await pilot.press("enter")
        await until(pilot, lambda: len(app.screen_stack) == 3)
        screen = await opened(pilot, app)
        assert screen.reading is not None
        assert screen.reading.run_id != judged.run_id
        head = text(app, "#sample-head")
        assert f"judged again from {judged.run_id}, without" in head
        assert "true 0.90 there" in head
        await pilot.press("escape")
        await until(pilot, lambda: len(app.screen_stack) == 2)
        screen = await opened(pilot, app)
        assert screen.reading is not None
        assert screen.reading.run_id == judged.run_id


async def test_derived_runs_of_the_past_are_listed_and_others_samples_not(judged: Judged) -> None:
    for sample in ("a", "b"):
        api.evidence_add(judged.run_id, sample, api.OwnPassage("It opened late."), judged.settings)
    async with at_sample(judged) as (app, pilot):
        await opened(pilot, app)
        await until(pilot, lambda: len(listed(app)) == 2)
        assert "with own:" in listed(app)[1]


async def test_a_passage_of_ones_own_that_cannot_be_used_is_asked_for_again(
    judged: Judged,
) -> None:
    async with at_sample(judged, size=(80, 24)) as (app, pilot):
        screen = await opened(pilot, app)
        await pilot.press("a")
        await write_own(pilot, app, "A passage of my own.", "soon")
        await until(pilot, lambda: isinstance(app.screen, OwnPassageScreen))
        assert "`soon` is no date" in text(app, "#own-problem")
        assert app.screen.query_one("#own-text", TextArea).text == "A passage of my own."
        await write_own(pilot, app, "A passage of my own.", "2025-03")
        await until(pilot, lambda: app.screen is screen and len(listed(app)) == 2)
        assert "own:" in listed(app)[1]
    assert len(api.list_runs(judged.settings)) == 2
    # What was handed over in a file is not kept there.
    assert list(judged.settings.cache_path.glob("starts/*.txt")) == []


async def test_an_empty_passage_is_refused_at_once(judged: Judged) -> None:
    async with at_sample(judged, size=(80, 24)) as (app, pilot):
        await opened(pilot, app)
        await pilot.press("a")
        await write_own(pilot, app, " ")
        await pilot.pause()
        assert text(app, "#own-problem") == "The passage is empty."


async def test_another_judge_than_before_is_told_and_nothing_begins(judged: Judged) -> None:
    judged.script(label_rules=SCRIPT["label_rules"][:2])
    async with at_sample(judged) as (app, pilot):
        screen = await opened(pilot, app)
        await put_cursor(pilot, screen, node(screen, "evidence", "★ [E1]"))
        await pilot.press("x")
        await until(pilot, lambda: isinstance(app.screen, WithoutScreen))
        await pilot.press("enter")
        await until(pilot, lambda: "weights of the judge" in text(app, "#why-doing"))
        assert len(listed(app)) == 1
    assert len(api.list_runs(judged.settings)) == 1


async def test_it_can_be_stopped(judged: Judged) -> None:
    judged.script(faults=[HANG])
    async with at_sample(judged) as (app, pilot):
        screen = await opened(pilot, app)
        await pilot.press("a")
        await write_own(pilot, app, "A passage of my own.")
        await until(pilot, lambda: app.screen is screen)
        await until(pilot, lambda: "reading" in text(app, "#why-doing"))
        await pilot.press("a")
        assert app.screen is screen
        screen.query_one("#why-stop", Button).press()
        await until(pilot, lambda: len(listed(app)) == 2)
        assert "cancelled" in listed(app)[1]
        assert not screen.query_one("#why-stop").display


async def test_the_end_of_the_app_ends_what_it_began(judged: Judged) -> None:
    judged.script(faults=[HANG])
    async with at_sample(judged) as (app, pilot):
        screen = await opened(pilot, app)
        await pilot.press("a")
        await write_own(pilot, app, "A passage of my own.")
        await until(pilot, lambda: app.screen is screen)
        await until(pilot, lambda: "reading" in text(app, "#why-doing"))
    newest = api.list_runs(judged.settings)[0]
    assert newest.parent is not None
    deadline = time.monotonic() + PATIENCE_S
    while api.run_holder(newest.id, judged.settings):
        assert time.monotonic() < deadline
        await asyncio.sleep(0.02)
    assert api.load_run(newest.id, judged.settings).summary.status == "cancelled"
