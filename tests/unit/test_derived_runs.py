"""A sample judged again with a passage of one's own: linked, resumable, its parent untouched."""

from __future__ import annotations

import json
import signal
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from api_fakes import Ears, scripted_settings

from offline_judge import api
from offline_judge.api import OwnPassage, RunRequest
from offline_judge.domain.events import (
    AnyEvent,
    CallFinished,
    RoundFinished,
    SampleFinished,
    SearchFinished,
    WarningRaised,
)
from offline_judge.errors import RunChangedError, UsageError
from offline_judge.runs.store import RunStore
from offline_judge.settings import Settings

FACT = "The harbour bridge of Ostend opened in 1911."
# Whatever is asked with the passage in sight is affirmed, and denied without it.
SCRIPT: dict[str, Any] = {
    "rules": [{"match": "", "answers": ["Ostend bridge"]}],
    "label_rules": [
        {"match": "opened in 1911", "masses": {"true": 0.9, "relevant": 0.9}},
        {"match": "", "masses": {"false": 0.9, "irrelevant": 0.9}},
    ],
}
HANG = {"kind": "hang", "match": "opened in 1911"}


@pytest.fixture
def settings(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Settings:
    monkeypatch.setenv("XDG_RUNTIME_DIR", str(tmp_path))
    script = tmp_path / "script.json"
    script.write_text(json.dumps(SCRIPT))
    corpus(tmp_path, "A town by the sea.")
    found = scripted_settings(tmp_path)
    return replace(found, judge=f"scripted:{script}", search="corpus:tiny", embedder="none")


def corpus(folder: Path, text: str) -> None:
    documents = folder / "documents.jsonl"
    documents.write_text(json.dumps({"id": "d", "title": "Ostend bridge", "text": text}) + "\n")
    settings = replace(scripted_settings(folder), embedder="none")
    api.corpus_build("tiny", documents, settings)


@pytest.fixture
def parent(settings: Settings, tmp_path: Path) -> str:
    rows = [
        {
            "id": name,
            "question": "When did the bridge of Ostend open?",
            "response": f"In 1911, {name}.",
            "reference": ["1911", "in 1911"],
            "label": True,
            "group": 7,
        }
        for name in ("a", "b")
    ]
    data = tmp_path / "data.jsonl"
    data.write_text("".join(json.dumps(row) + "\n" for row in rows))
    options = {"rounds": 2, "rationale": False, "rewrite_first": True}
    view = api.run(RunRequest("sage", data, options=options), settings)
    assert view.summary.outcomes == {"scored": 2}
    return view.manifest.run_id


def content(settings: Settings, run_id: str) -> dict[str, bytes]:
    files = (settings.runs_path / run_id).iterdir()
    return {file.name: file.read_bytes() for file in files if file.name != "index.sqlite"}


def add(settings: Settings, parent: str, text: str = FACT, **more: Any) -> api.RunView:
    passage = OwnPassage(text, title="Harbour office")
    return api.evidence_add(parent, more.pop("sample", "b"), passage, settings, **more)


def searches(events: tuple[AnyEvent, ...]) -> list[list[str]]:
    found = [event for event in events if isinstance(event, SearchFinished)]
    return [[hit.passage.source for hit in event.hits] for event in found]


def test_the_passage_reaches_the_judge_and_the_verdict_turns(
    settings: Settings, parent: str
) -> None:
    view = add(settings, parent)
    assert view.before is not None
    assert (view.before.id, view.before.verdict) == ("b", False)
    assert [(row.id, row.verdict) for row in view.rows] == [("b", True)]
    assert view.rows[0].metadata == {"group": 7}
    assert view.rows[0].label is True


def test_the_new_run_names_its_parent_and_judges_alike(settings: Settings, parent: str) -> None:
    before, now = api.load_run(parent, settings).manifest, add(settings, parent).manifest
    assert now.parent is not None
    assert (now.parent.run_id, now.parent.sample_id) == (parent, "b")
    assert len(now.parent.passages) == 1
    assert before.parent is None
    for name in ("method", "options", "judge", "prompts"):
        assert getattr(now, name) == getattr(before, name)
    assert now.search == before.search | {"own": list(now.parent.passages)}


def test_it_stands_behind_what_the_first_search_finds_and_in_no_other(
    settings: Settings, parent: str
) -> None:
    run_id = add(settings, parent).manifest.run_id
    shown = api.show(run_id, "b", settings)
    first, *others = searches(shown.events)
    assert first == ["corpus:tiny", "person"]
    assert others
    assert all("person" not in sources for sources in others)
    rounds = [event for event in shown.events if isinstance(event, RoundFinished)]
    assert "own:" in rounds[0].evidence["E2"]
    assert shown.parent is not None
    assert shown.before is not None


def test_nothing_of_the_parent_changes(settings: Settings, parent: str) -> None:
    before = content(settings, parent)
    assert any(name.startswith("events-") for name in before)
    add(settings, parent)
    assert content(settings, parent) == before


def test_a_parent_that_is_still_running_can_be_added_to(settings: Settings, parent: str) -> None:
    with RunStore(settings.runs_path).open(parent).writer() as writer:
        before = content(settings, parent)
        assert add(settings, parent).summary.outcomes == {"scored": 1}
        assert content(settings, parent) == before
        writer.emit(WarningRaised(message="still here"))


def test_calls_before_the_passage_are_taken_from_the_cache(settings: Settings, parent: str) -> None:
    run_id = add(settings, parent).manifest.run_id
    events = api.show(run_id, "b", settings).events
    calls = [event for event in events if isinstance(event, CallFinished)]
    assert calls[0].stage == "query"
    assert calls[0].reused


def test_an_interrupted_one_resumes_with_the_passage(
    settings: Settings, parent: str, tmp_path: Path
) -> None:
    # The first call with the passage in sight never ends, so the signal comes in time.
    (tmp_path / "script.json").write_text(json.dumps(SCRIPT | {"faults": [HANG]}))

    def stop(event: AnyEvent) -> None:
        if isinstance(event, SearchFinished):
            signal.raise_signal(signal.SIGTERM)

    view = add(settings, parent, listener=Ears(stop))
    run_id = view.manifest.run_id
    assert view.summary.status == "cancelled"
    (tmp_path / "script.json").write_text(json.dumps(SCRIPT))
    again = api.resume(run_id, settings)
    assert [(row.id, row.verdict) for row in again.rows] == [("b", True)]
    assert api.show(run_id, "b", settings).row.verdict is True


def test_passages_pile_up_from_run_to_run(settings: Settings, parent: str) -> None:
    first = add(settings, parent).manifest
    second = add(settings, first.run_id, "It was built by Ann Lee.").manifest
    assert first.parent is not None
    assert second.parent is not None
    assert second.parent.run_id == first.run_id
    assert second.parent.passages[0] == first.parent.passages[0]
    assert len(second.parent.passages) == 2
    with pytest.raises(UsageError, match="already"):
        add(settings, second.run_id)


def test_a_derived_run_outlives_its_parent(settings: Settings, parent: str) -> None:
    run_id = add(settings, parent).manifest.run_id
    RunStore(settings.runs_path).remove(parent)
    view = api.load_run(run_id, settings)
    assert view.before is None
    assert view.rows[0].verdict is True


def test_another_judge_than_the_parents_is_refused(
    settings: Settings, parent: str, tmp_path: Path
) -> None:
    (tmp_path / "script.json").write_text(json.dumps(SCRIPT | {"label_rules": []}))
    with pytest.raises(RunChangedError, match="weights of the judge"):
        add(settings, parent)
    assert len(api.list_runs(settings)) == 1


def test_a_corpus_that_changed_since_is_told(
    settings: Settings, parent: str, tmp_path: Path
) -> None:
    corpus(tmp_path, "Another town by the sea.")
    ears = Ears()
    assert add(settings, parent, listener=ears).summary.outcomes == {"scored": 1}
    warnings = [event.message for event in ears.events if isinstance(event, WarningRaised)]
    assert any("`tiny`" in message and "more than the change" in message for message in warnings)


def test_a_passage_that_a_prompt_does_not_show_to_its_end_is_told(
    settings: Settings, parent: str
) -> None:
    ears = Ears()
    add(settings, parent, f"{FACT} " + "Nothing of note happened. " * 60, listener=ears)
    warnings = [event.message for event in ears.events if isinstance(event, WarningRaised)]
    assert any("first 1,200 characters" in message for message in warnings)


def test_an_unchanged_corpus_is_not_told(settings: Settings, parent: str) -> None:
    ears = Ears()
    add(settings, parent, listener=ears)
    assert not [event for event in ears.events if isinstance(event, WarningRaised)]


@pytest.mark.parametrize(
    ("passage", "told"),
    [
        (OwnPassage("  \n"), "empty"),
        (OwnPassage("x" * 8001), "8,001"),
        (OwnPassage(FACT, title="t" * 201), "201"),
        (OwnPassage(FACT, date="soon"), "`soon`"),
        (OwnPassage(FACT, date="2025-02-30"), "2025-02-30"),
        (OwnPassage("half \udc80 a character"), "Unicode"),
    ],
)
def test_a_passage_that_cannot_be_used_is_refused_before_anything_begins(
    settings: Settings, parent: str, passage: OwnPassage, told: str
) -> None:
    with pytest.raises(UsageError, match=told):
        api.evidence_add(parent, "b", passage, settings)
    assert len(api.list_runs(settings)) == 1


@pytest.mark.parametrize("date", ["2025", "2025-03", "2025-03-14", ""])
def test_dates_may_be_of_a_year_or_a_month(settings: Settings, parent: str, date: str) -> None:
    view = api.evidence_add(parent, "b", OwnPassage(FACT, date=date), settings)
    events = api.show(view.manifest.run_id, "b", settings).events
    first = next(event for event in events if isinstance(event, SearchFinished))
    assert first.hits[-1].passage.date == date


def test_a_passage_is_left_out_and_what_a_run_left_out_is_carried_on(
    settings: Settings, parent: str
) -> None:
    added = add(settings, parent)
    events = api.show(parent, "b", settings).events
    found = next(event for event in events if isinstance(event, SearchFinished)).hits[0].passage.id
    view = api.evidence_drop(added.manifest.run_id, "b", found, settings)
    assert view.manifest.parent is not None
    assert view.manifest.parent.without == (found,)
    assert view.manifest.search["without"] == [found]
    again = api.show(view.manifest.run_id, "b", settings)
    assert searches(again.events)[0] == ["person"]
    assert view.rows[0].verdict is True
    (mine,) = view.manifest.parent.passages
    without = api.evidence_drop(view.manifest.run_id, "b", mine, settings)
    assert without.manifest.parent is not None
    assert without.manifest.parent.without == (found,)
    assert without.manifest.parent.passages == ()
    assert without.rows[0].evidence_state == "none_found"


def test_an_interrupted_one_resumes_without_the_passage(settings: Settings, parent: str) -> None:
    events = api.show(parent, "b", settings).events
    found = next(event for event in events if isinstance(event, SearchFinished)).hits[0].passage.id
    view = api.evidence_drop(parent, "b", found, settings)
    trace = settings.runs_path / view.manifest.run_id / "events-main.jsonl"
    trace.write_bytes(b"".join(trace.read_bytes().splitlines(keepends=True)[:3]))
    assert api.resume(view.manifest.run_id, settings).rows[0].evidence_state == "none_found"


def test_only_a_passage_that_was_found_can_be_left_out(settings: Settings, parent: str) -> None:
    with pytest.raises(UsageError, match="No search of this sample found a passage `x`"):
        api.evidence_drop(parent, "b", "x", settings)
    assert len(api.list_runs(settings)) == 1


def test_an_unknown_sample_gets_the_nearest(settings: Settings, parent: str) -> None:
    with pytest.raises(UsageError, match="Did you mean `b`"):
        add(settings, parent, sample="bb")


def test_a_method_that_does_not_search_takes_no_passage(
    settings: Settings, tmp_path: Path, parent: str
) -> None:
    view = api.run(RunRequest("direct", tmp_path / "data.jsonl"), settings)
    with pytest.raises(UsageError, match="does not search"):
        add(settings, view.manifest.run_id)


def test_columns_named_like_fields_are_kept_apart(settings: Settings, tmp_path: Path) -> None:
    data = tmp_path / "other.jsonl"
    row = {"prompt": "When did the bridge open?", "answer": "In 1911.", "question": "a column"}
    data.write_text(json.dumps(row | {"id": "q"}) + "\n")
    mapping = {"prompt": "question", "answer": "response"}
    request = RunRequest("sage", data, mapping=mapping, options={"rounds": 1})
    run_id = api.run(request, settings).manifest.run_id
    (after,) = add(settings, run_id, sample="q").rows
    assert after.question == "When did the bridge open?"
    assert after.metadata == {"metadata.question": "a column"}


def test_a_long_response_is_judged_whole(settings: Settings, tmp_path: Path) -> None:
    # Long texts lie beside the trace, and the sample is put together again from both.
    data = tmp_path / "long.jsonl"
    response = "It opened in 1911, as everybody knows. " * 60
    data.write_text(json.dumps({"id": "q", "question": "When?", "response": response}) + "\n")
    run_id = api.run(RunRequest("sage", data, options={"rounds": 1}), settings).manifest.run_id
    view = add(settings, run_id, sample="q")
    events = api.show(view.manifest.run_id, "q", settings).events
    assert api.show(view.manifest.run_id, "q", settings).sample.response == response
    assert isinstance(events[-1], SampleFinished)
