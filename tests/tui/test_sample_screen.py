"""The sample screen over real traces: reading, going about, prompts, and what cannot be read."""

from __future__ import annotations

import shutil
from pathlib import Path
from typing import Any

import pytest
from offline_judge_tui.app import OfflineJudgeApp
from offline_judge_tui.widgets.evidence_pane import EvidencePane
from offline_judge_tui.widgets.prompt_pane import PromptPane
from offline_judge_tui.widgets.text_pane import TextPane
from offline_judge_tui.widgets.trace_tree import AT_ONCE, TraceTree
from sample_parts import (
    FACT,
    THOUGHT,
    WHY,
    Judged,
    at_sample,
    judge_four,
    node,
    opened,
    put_cursor,
    text,
    told,
    tree_lines,
    until,
)
from textual.widgets import Collapsible, TabbedContent

from offline_judge import api
from offline_judge.runs.store import RunStore


@pytest.fixture
def judged(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Judged:
    return judge_four(tmp_path, monkeypatch)


def tab(app: OfflineJudgeApp) -> str:
    return app.screen.query_one(TabbedContent).active


async def test_the_tree_tells_query_results_reflection_and_verdict_in_order(judged: Judged) -> None:
    async with at_sample(judged) as (app, pilot):
        screen = await opened(pilot, app)
        assert screen.reading is not None
        kinds = [one.kind for one in screen.reading.trace.root.children]
        assert kinds[-1] == "verdict"
        assert kinds.count("round") == 2
        first = next(one for one in screen.reading.trace.root.children if one.kind == "round")
        said = [one.label for one in first.walk()]
        assert said[0].startswith("round 1 “When did the bridge of Ostend open?")
        assert [line.split()[0] for line in said[1:2]] == ["search"]
        assert any(line.startswith("relevance [E1] ") for line in said)
        assert any(line.startswith("reflection [E1] true 0.90") for line in said)
        assert any(line.startswith("reflection supports 0.90 of true") for line in said)
        assert "verdict true 0.90 of true" in text(app, "#sample-head").replace("  ", " ")
        assert "= agrees" in text(app, "#sample-head")


async def test_no_text_of_a_trace_is_obeyed(judged: Judged) -> None:
    async with at_sample(judged, size=(200, 45)) as (app, pilot):
        screen = await opened(pilot, app)
        await put_cursor(pilot, screen, node(screen, "text", "question"))
        (line,) = [line for line in tree_lines(app) if "question" in line]
        assert "open? [red]loud[/red] ␛[2J\\u202e" in line
        assert "[red]loud[/red] ␛[2J\\u202e" in text(app, "#text-body")
        await put_cursor(pilot, screen, node(screen, "evidence", "★ [E1]"))
        assert "[red]loud[/red] ␛[2J\\u202e" in text(app, "#evidence-passage")


async def test_cited_evidence_is_told_with_source_time_and_what_the_judge_saw(
    judged: Judged,
) -> None:
    async with at_sample(judged) as (app, pilot):
        screen = await opened(pilot, app)
        await put_cursor(pilot, screen, node(screen, "evidence", "★ [E1]"))
        assert tab(app) == "tab-evidence"
        assert screen.query_one("#evidence-passage").has_class("-cited")
        assert "★ cited by the rationale" in text(app, "#evidence-name")
        facts = text(app, "#evidence-facts")
        assert "corpus:tiny" in facts
        assert "UTC" in facts
        assert "document d1, characters 0-" in facts
        assert "says the answer  0.90" in facts
        assert screen.query_one(EvidencePane).shown.startswith(FACT)


async def test_c_goes_from_a_citation_to_its_evidence_and_back(judged: Judged) -> None:
    async with at_sample(judged) as (app, pilot):
        screen = await opened(pilot, app)
        tree = screen.query_one(TraceTree)
        assert tree.current is node(screen, "verdict")
        await pilot.press("c")
        assert tree.current is node(screen, "evidence", "★ [E1]")
        await pilot.press("c")
        assert tree.current is node(screen, "citation")
        await pilot.press("enter")
        await pilot.pause()
        assert tree.current is node(screen, "evidence", "★ [E1]")
        await pilot.press("e")
        assert tree.current is not None
        assert tree.current.kind == "evidence"
        assert not tree.current.label.startswith("★")
        await pilot.press("c")
        assert tree.current.kind == "evidence"


async def test_a_prompt_is_shown_as_it_was_sent_and_thinking_is_folded(judged: Judged) -> None:
    async with at_sample(judged) as (app, pilot):
        screen = await opened(pilot, app)
        call = node(screen, "call", "reflection.rationale")
        await put_cursor(pilot, screen, call)
        pane = screen.query_one(PromptPane)
        await until(pilot, lambda: pane.shown)
        assert tab(app) == "tab-prompt"
        assert screen.reading is not None
        sent = api.call_prompt(
            judged.run_id, screen.reading.view.events, call.event, judged.settings
        )
        for message in sent.messages:
            assert message.content in pane.shown
        assert pane.shown.count("[assistant]") == 1
        fold = screen.query_one("#prompt-thinking", Collapsible)
        assert fold.display
        assert fold.collapsed
        assert text(app, "#prompt-thought") == THOUGHT
        assert WHY in text(app, "#prompt-answer")
        assert THOUGHT not in text(app, "#prompt-answer")


async def test_a_reading_shows_its_masses_and_no_thinking(judged: Judged) -> None:
    async with at_sample(judged) as (app, pilot):
        screen = await opened(pilot, app)
        await put_cursor(pilot, screen, node(screen, "call", "relevance [E1]"))
        await until(pilot, lambda: screen.query_one(PromptPane).shown)
        assert "relevant 0.90, irrelevant 0.10" in text(app, "#prompt-facts")
        assert not screen.query_one("#prompt-thinking").display
        assert FACT in text(app, "#prompt-messages")


async def test_a_prompt_that_cannot_be_made_again_shows_what_filled_it(judged: Judged) -> None:
    async with at_sample(judged) as (app, pilot):
        screen = await opened(pilot, app)
        for blobs in (judged.settings.runs_path / judged.run_id).glob("blobs.sqlite*"):
            blobs.unlink()
        await put_cursor(pilot, screen, node(screen, "call", "relevance [E1]"))
        await until(pilot, lambda: screen.query_one(PromptPane).shown)
        assert "missing" in text(app, "#prompt-messages")
        assert FACT in text(app, "#prompt-messages")


async def test_keys_go_to_neighbours_and_to_disagreements(judged: Judged) -> None:
    async with at_sample(judged) as (app, pilot):
        await opened(pilot, app, "a")
        for key, wanted in [("n", "b"), ("N", "d"), ("P", "b"), ("p", "a"), ("N", "b"), ("n", "c")]:
            await pilot.press(key)
            await opened(pilot, app, wanted)
            assert ("≠ disagrees" in text(app, "#sample-head")) is (wanted in "bd")
        await pilot.press("N")
        await opened(pilot, app, "d")
        await pilot.press("N")
        await until(pilot, lambda: "There is none in that direction." in told(app))
        assert (await opened(pilot, app, "d")).reading is not None


async def test_the_panes_belong_to_the_sample_that_is_shown(judged: Judged) -> None:
    async with at_sample(judged) as (app, pilot):
        screen = await opened(pilot, app)
        pane = screen.query_one(TextPane)
        # The verdict of the next sample stands on the very same line.
        pane.show("stale", "stale")
        await pilot.press("n")
        await opened(pilot, app, "b")
        await until(pilot, lambda: pane.shown == "It opened in 1911.")


async def test_the_verdict_is_in_sight_at_first(judged: Judged) -> None:
    async with at_sample(judged, size=(80, 24)) as (app, pilot):
        await opened(pilot, app)
        await until(pilot, lambda: any("verdict true 0.90" in line for line in tree_lines(app)))
        assert any("★ cites [E1]" in line for line in tree_lines(app))


async def test_copying_says_where_it_went_and_has_the_whole_text(judged: Judged) -> None:
    async with at_sample(judged) as (app, pilot):
        screen = await opened(pilot, app)
        await put_cursor(pilot, screen, node(screen, "evidence", "★ [E1]"))
        await pilot.press("y")
        await until(pilot, lambda: "sent to the terminal" in told(app))
        assert screen.reading is not None
        assert app.clipboard == next(iter(screen.reading.trace.evidence.values())).passage.text


async def test_t_unfolds_what_was_thought(judged: Judged) -> None:
    async with at_sample(judged) as (app, pilot):
        screen = await opened(pilot, app)
        await pilot.press("t")
        await until(pilot, lambda: "Nothing was thought" in told(app))
        await put_cursor(pilot, screen, node(screen, "call", "reflection.rationale"))
        await until(pilot, lambda: screen.query_one(PromptPane).shown)
        await pilot.press("t")
        assert not screen.query_one("#prompt-thinking", Collapsible).collapsed


async def test_an_event_of_a_newer_program_is_shown_as_it_was_recorded(judged: Judged) -> None:
    judged.append(
        {"event": "dreamt", "sample_id": "a", "of": "sheep"},
        {"event": "round_finished", "sample_id": "a", "round": "first"},
    )
    async with at_sample(judged) as (app, pilot):
        screen = await opened(pilot, app)
        strange = node(screen, "event", "`dreamt`")
        await put_cursor(pilot, screen, strange)
        assert '"of": "sheep"' in text(app, "#text-body")
        assert "`round_finished` cannot be read" in node(screen, "event", "left out").label


async def test_a_run_that_was_deleted_is_a_message(judged: Judged) -> None:
    async with at_sample(judged) as (app, pilot):
        await opened(pilot, app)
        shutil.rmtree(judged.settings.runs_path / judged.run_id)
        await pilot.press("f5")
        await until(pilot, lambda: app.screen.has_class("-failed"))
        assert judged.run_id in text(app, "#sample-problem")
        assert not app.screen.query_one("#sample-body").display
        await pilot.press("n", "N")
        await until(pilot, lambda: judged.run_id in told(app))
        assert app.is_running


@pytest.mark.parametrize(
    ("run_id", "sample_id", "said"), [("nowhere", "a", "nowhere"), ("", "aa", "Did you mean `a`")]
)
async def test_what_is_not_there_is_a_message(
    judged: Judged, run_id: str, sample_id: str, said: str
) -> None:
    async with at_sample(judged, sample_id, run_id, size=(80, 24)) as (app, pilot):
        await until(pilot, lambda: app.screen.has_class("-failed"))
        assert said in text(app, "#sample-problem")
        await pilot.press("escape")
        assert len(app.screen_stack) == 1


async def test_a_damaged_line_is_a_message_with_its_place(judged: Judged) -> None:
    lines = judged.trace().read_bytes().splitlines(keepends=True)
    judged.trace().write_bytes(b"".join([*lines[:3], b"{nothing\n", *lines[4:]]))
    async with at_sample(judged, size=(80, 24)) as (app, pilot):
        await until(pilot, lambda: app.screen.has_class("-failed"))
        assert ".jsonl:4" in text(app, "#sample-problem")


async def test_a_half_written_sample_shows_what_there_is(judged: Judged) -> None:
    lines = judged.trace().read_bytes().splitlines(keepends=True)
    first = next(n for n, line in enumerate(lines) if b'"search_finished"' in line)
    judged.trace().write_bytes(b"".join(lines[: first + 2]) + b'{"event": "round_fini')
    async with at_sample(judged, size=(80, 24)) as (app, pilot):
        screen = await opened(pilot, app)
        assert text(app, "#sample-head").splitlines()[1] == "unfinished"
        assert node(screen, "round").label == "round 1 not finished"
        assert node(screen, "evidence")


async def test_a_sample_judged_again_after_an_interruption_folds_what_was_broken_off(
    judged: Judged,
) -> None:
    started = next(
        event.model_dump(mode="json")
        for event in api.show(judged.run_id, "a", judged.settings).events
        if event.event == "sample_started"
    )
    again = {name: value for name, value in started.items() if name not in ("seq", "time")}
    judged.append(again)
    async with at_sample(judged, size=(80, 24)) as (app, pilot):
        screen = await opened(pilot, app)
        folded = node(screen, "attempt")
        assert folded.label == "attempt 1 of 2: scored"
        assert not folded.open
        cited = node(screen, "evidence", "★ [E1]")
        await put_cursor(pilot, screen, cited)
        assert screen.query_one(TraceTree).current is cited


async def test_a_trace_of_50_mb_opens(judged: Judged) -> None:
    with RunStore(judged.settings.runs_path).open(judged.run_id).writer() as writer:
        call: Any = next(
            event
            for event in api.show(judged.run_id, "a", judged.settings).events
            if event.event == "call_finished"
        )
        for number in range(500):
            said = f"{number} {'word ' * 20_000}"
            writer.emit(call.model_copy(update={"text": said, "round": 0, "masses": None}))
    assert judged.trace().stat().st_size > 50_000_000
    async with at_sample(judged, size=(80, 24)) as (app, pilot):
        screen = await opened(pilot, app)
        tree = screen.query_one(TraceTree)
        assert tree.last_line < 2 * AT_ONCE
        assert screen.reading is not None
        last = screen.reading.trace.root.children[-1]
        assert " “499 word" in last.label
        await put_cursor(pilot, screen, last)
        assert tree.current is last
        await until(pilot, lambda: "499 word" in text(app, "#prompt-answer"))
        assert "more characters are not drawn" in text(app, "#prompt-answer")


async def test_the_next_children_are_made_when_they_are_asked_for(judged: Judged) -> None:
    judged.append(
        *({"event": "warning", "sample_id": "a", "message": f"w{n}"} for n in range(AT_ONCE + 50))
    )
    async with at_sample(judged, size=(80, 24)) as (app, pilot):
        screen = await opened(pilot, app)
        tree = screen.query_one(TraceTree)
        tree.focus()
        await pilot.press("end")
        assert tree.current is not None
        assert tree.current.kind == "more"
        await pilot.press("enter")
        await pilot.pause()
        assert tree.current.label.startswith("warning w")
        await pilot.press("end")
        assert tree.current.label == f"warning w{AT_ONCE + 49}"


@pytest.mark.parametrize("size", [(80, 24), (140, 45)])
async def test_tree_and_panes_have_room(judged: Judged, size: tuple[int, int]) -> None:
    async with at_sample(judged, size=size) as (app, pilot):
        screen = await opened(pilot, app)
        tree, tabs = screen.query_one(TraceTree), screen.query_one(TabbedContent)
        assert tree.size.height >= 6
        assert tree.size.width >= 50
        await put_cursor(pilot, screen, node(screen, "evidence", "★ [E1]"))
        pane = screen.query_one(EvidencePane)
        assert pane.size.height >= 6
        assert pane.size.width >= 60
        assert tabs.region.bottom <= size[1]
        assert tree.region.right <= size[0]


async def test_a_click_on_the_tree_shows_what_it_hits(judged: Judged) -> None:
    async with at_sample(judged) as (app, pilot):
        screen = await opened(pilot, app)
        line = next(n for n, drawn in enumerate(tree_lines(app)) if "response" in drawn)
        await pilot.click(TraceTree, offset=(8, line))
        await pilot.pause()
        assert screen.query_one(TextPane).shown == "In 1911, says a."


async def test_a_method_that_does_not_search_has_a_trace_too(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    judged = judge_four(tmp_path, monkeypatch, "direct")
    async with at_sample(judged, size=(80, 24)) as (app, pilot):
        screen = await opened(pilot, app)
        assert node(screen, "call", "verdict")
        await pilot.press("e", "c", "x")
        await pilot.pause()
        assert "Choose a piece of evidence" in text(app, "#why-doing")
