"""Looking into runs and data piece by piece: pages, the log, prompts as sent, previews."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from api_fakes import direct, scripted_settings, write_data

from offline_judge import api
from offline_judge.backends.scripted import ScriptedBackend
from offline_judge.domain.events import CallFinished
from offline_judge.domain.message import Prompt
from offline_judge.domain.run_rows import RowQuery
from offline_judge.errors import DataError, RunLockedError, RunNotFoundError, TraceError
from offline_judge.runs import index as index_module
from offline_judge.runs.store import RunStore
from offline_judge.settings import Settings


@pytest.fixture
def settings(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Settings:
    monkeypatch.setenv("XDG_RUNTIME_DIR", str(tmp_path))
    return scripted_settings(tmp_path)


@pytest.fixture
def run_id(settings: Settings, tmp_path: Path) -> str:
    """A run of a judge that says true of the first four samples and false of the others."""
    script = tmp_path / "script.json"
    rules = [
        {"match": r"It is [0-3]\.", "masses": {"true": 0.9}},
        {"match": "", "masses": {"false": 0.8, "true": 0.1}},
    ]
    script.write_text(json.dumps({"label_rules": rules}))
    settings = replace(settings, judge=f"scripted:{script}")
    data = write_data(tmp_path / "data.jsonl", 7)
    return api.run(direct(data), settings).manifest.run_id


def ids(run_id: str, settings: Settings, **query: Any) -> list[str]:
    rows, total = api.run_rows(run_id, settings, RowQuery(**query))
    assert total >= len(rows)
    return [row.sample_id for row in rows]


def test_pages_hold_every_sample_once_in_any_order(settings: Settings, run_id: str) -> None:
    whole = {row.id: row for row in api.load_run(run_id, settings).rows}
    assert ids(run_id, settings) == list(whole)
    orders: list[Any] = ["taken", "id", "probability", "outcome", "seconds"]
    for order in orders:
        offsets = (0, 3, 6)
        paged = [i for n in offsets for i in ids(run_id, settings, order=order, offset=n, limit=3)]
        assert sorted(paged) == sorted(whole)
        assert ids(run_id, settings, order=order, reverse=True) == paged[::-1]
    by_share = ids(run_id, settings, order="probability")
    shares = [whole[name].probability for name in by_share]
    assert shares == sorted(share for share in shares if share is not None)


def test_samples_are_found_by_text_outcome_and_disagreement(
    settings: Settings, run_id: str
) -> None:
    assert ids(run_id, settings, text="WHAT IS 2") == ["s4", "s5"]
    assert ids(run_id, settings, text="s6") == ["s6"]
    assert ids(run_id, settings, outcome="unscored") == []
    rows = api.load_run(run_id, settings).rows
    wrong = [row.id for row in rows if row.verdict is not row.label]
    assert wrong == ["s1", "s3", "s4", "s6"]
    assert ids(run_id, settings, disagree=True) == wrong
    assert ids(run_id, settings, disagree=True, text="nothing has this") == []


def test_the_log_tells_starts_ends_and_what_went_wrong(settings: Settings, tmp_path: Path) -> None:
    script = tmp_path / "script.json"
    masses = [{"match": "It is 1", "masses": {"true": 0.1}}]
    script.write_text(json.dumps({"label_rules": masses}))
    settings = replace(settings, judge=f"scripted:{script}")
    run = api.run(direct(write_data(tmp_path / "d.jsonl", 2)), settings)
    lines = api.run_log(run.manifest.run_id, settings)
    assert [line.kind for line in lines] == ["run", "engine", "failure", "run"]
    assert lines[0].text == "begun: 2 samples"
    assert (lines[2].sample_id, lines[2].text.split(":")[:2]) == ("s1", ["unscored", " off-menu"])
    assert lines[-1].text == "ended, completed"
    assert api.run_log(run.manifest.run_id, settings, limit=1) == lines[-1:]


def test_the_index_is_made_step_by_step_and_what_is_done_stays_done(
    settings: Settings, run_id: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(index_module, "_AT_ONCE", 5)
    told: list[tuple[int, int]] = []

    def once(done: int, of: int) -> bool:
        told.append((done, of))
        return False

    trace = settings.runs_path / run_id / "events-main.jsonl"
    assert not api.index_run(run_id, settings, once)
    assert not api.index_run(run_id, settings, once)
    assert told[0][0] < told[1][0] < told[1][1] == trace.stat().st_size
    assert api.index_run(run_id, settings)
    assert ids(run_id, settings) == [row.id for row in api.load_run(run_id, settings).rows]


def test_prompts_are_told_as_they_were_sent(
    settings: Settings, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    sent: list[Prompt] = []
    prepare = ScriptedBackend.prepare

    async def noted(self: ScriptedBackend, messages: Any, **how: Any) -> Prompt:
        sent.append(await prepare(self, messages, **how))
        return sent[-1]

    monkeypatch.setattr(ScriptedBackend, "prepare", noted)
    documents = tmp_path / "docs.jsonl"
    documents.write_text(json.dumps({"id": "d", "title": "T", "text": "What is 0? A digit."}))
    settings = replace(settings, search="corpus:tiny", embedder="none")
    api.corpus_build("tiny", documents, settings)
    request = api.RunRequest("sage", write_data(tmp_path / "d.jsonl", 2))
    run = api.run(request, settings).manifest.run_id
    known = {tuple(prompt.messages) for prompt in sent}
    seen = 0
    for sample in ("s0", "s1"):
        events = api.show(run, sample, settings).events
        for number, event in enumerate(events):
            if isinstance(event, CallFinished):
                prompt = api.call_prompt(run, events, number, settings)
                assert prompt.messages in known
                assert prompt.answer == event.text
                seen += len(prompt.messages) > 2
    assert seen, "no prompt that follows another one"


def test_a_prompt_that_the_trace_does_not_hold_whole_is_said_to_be_none(
    settings: Settings, run_id: str
) -> None:
    events = list(api.show(run_id, "s0", settings).events)
    number = next(n for n, event in enumerate(events) if isinstance(event, CallFinished))
    call = events[number]
    assert isinstance(call, CallFinished)
    events[number] = call.model_copy(update={"values": {**call.values, "question": "Another?"}})
    with pytest.raises(TraceError, match="as it was sent"):
        api.call_prompt(run_id, events, number, settings)
    with pytest.raises(TraceError, match="no call"):
        api.call_prompt(run_id, events, 0, settings)
    events[number] = call.model_copy(update={"follows": "0" * 64})
    with pytest.raises(TraceError, match="follows is not in the trace"):
        api.call_prompt(run_id, events, number, settings)


def test_the_prompt_of_an_answer_that_was_cut_in_its_thinking_is_shown_too(
    settings: Settings, tmp_path: Path
) -> None:
    script = tmp_path / "script.json"
    script.write_text(json.dumps({"rules": [{"match": "", "answers": ["<think>so many things"]}]}))
    settings = replace(settings, judge=f"scripted:{script}")
    run = api.run(direct(write_data(tmp_path / "d.jsonl", 1)), settings).manifest.run_id
    events = api.show(run, "s0", settings).events
    number = next(n for n, e in enumerate(events) if isinstance(e, CallFinished) and e.text)
    prompt = api.call_prompt(run, events, number, settings)
    assert len(prompt.messages) > 1
    assert (prompt.thinking, prompt.answer) == ("<think>so many things", "")


def test_a_preview_names_what_is_wrong_and_refuses_nothing(tmp_path: Path) -> None:
    data = write_data(tmp_path / "d.jsonl", 5, s1={"response": ""}, s3={"label": "maybe"})
    found = api.preview(direct(data), rows=2)
    assert found.columns == ("id", "question", "response", "label", "source")
    assert [row["id"] for row in found.rows] == ["s0", "s1"]
    assert (found.total, found.labelled) == (3, 3)
    assert [sample.id for sample in found.samples] == ["s0", "s2"]
    assert [problem.split(":")[0] for problem in found.problems] == ["line 2", "line 4"]
    assert found.refusal is None


def test_a_preview_tells_why_a_file_cannot_be_used(tmp_path: Path) -> None:
    table = tmp_path / "d.csv"
    table.write_text("ask,answer\nWho?,Me.\n")
    found = api.preview(direct(table))
    assert found.columns == ("ask", "answer")
    assert isinstance(found.refusal, DataError)
    assert "question" in str(found.refusal)
    mapped = direct(table, mapping={"ask": "question", "answer": "response"})
    assert api.preview(mapped).samples[0].response == "Me."
    absent = api.preview(direct(tmp_path / "none.jsonl"))
    assert absent.refusal is not None
    assert absent.rows == ()


def test_a_run_is_deleted_under_its_whole_id_only_and_not_while_it_is_held(
    settings: Settings, run_id: str
) -> None:
    for given in ("last", run_id[:-1]):
        with pytest.raises(RunNotFoundError):
            api.remove_run(given, settings)
    directory = RunStore(settings.runs_path).open(run_id)
    with directory.writer(), pytest.raises(RunLockedError):
        api.remove_run(run_id, settings)
    assert api.run_holder(run_id, settings) == 0
    api.remove_run(run_id, settings)
    assert api.list_runs(settings) == []
    assert not directory.path.exists()


def test_methods_tell_their_options() -> None:
    methods = {method.name: method for method in api.methods_list()}
    assert list(methods)[:4] == ["direct", "lexical", "reference", "sage"]
    assert methods["sage"].searches
    assert not methods["lexical"].asks
    options = {option.name: option for option in methods["sage"].options}
    assert (options["rounds"].kind, options["rounds"].default) == ("whole number", 3)
    assert options["rounds"].meaning.endswith("(at least 1, at most 10)")
    metric = methods["lexical"].options[0]
    assert metric.kind == "contains | exact | f1"
    for method in methods.values():
        assert all(option.meaning for option in method.options), method.name
