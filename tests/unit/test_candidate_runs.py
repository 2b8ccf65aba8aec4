"""Runs whose responses a candidate writes first: trace, resume, limits, and what is no answer."""

from __future__ import annotations

import json
import re
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from api_fakes import Ears, direct, scripted_settings

from offline_judge import api
from offline_judge.domain.events import (
    AnyEvent,
    CallFinished,
    EngineStarted,
    ResponseWritten,
    RunFinished,
    SampleStarted,
    WarningRaised,
)
from offline_judge.errors import DataError, MissingModelError, RunChangedError, UsageError
from offline_judge.reuse import find_same_run
from offline_judge.runs.store import RunStore
from offline_judge.settings import Settings

QUESTIONS = 6


@pytest.fixture
def settings(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Settings:
    monkeypatch.setenv("XDG_RUNTIME_DIR", str(tmp_path))
    # Answers of an earlier process must not stand in for a sample judged again.
    return replace(scripted_settings(tmp_path), cache=False)


@pytest.fixture
def data(tmp_path: Path) -> Path:
    path = tmp_path / "questions.jsonl"
    rows = ({"id": f"q{n}", "question": f"What is {n}?"} for n in range(QUESTIONS))
    path.write_text("".join(json.dumps(row) + "\n" for row in rows))
    return path


@pytest.fixture
def script(tmp_path: Path) -> Callable[..., str]:
    def write(**script: Any) -> str:
        path = tmp_path / "candidate.json"
        path.write_text(json.dumps(script))
        return f"scripted:{path}"

    return write


def _rule(says: str, answer: str) -> dict[str, Any]:
    return {"match": re.escape(says), "answers": [answer]}


def _events(settings: Settings, kind: type[Any]) -> list[Any]:
    run = RunStore(settings.runs_path).open("last")
    return [event for event in run.events() if isinstance(event, kind)]


def test_every_response_is_written_before_anything_is_judged(
    settings: Settings, data: Path
) -> None:
    view = api.run(direct(data, candidate="scripted"), settings)
    assert view.summary.outcomes == {"scored": QUESTIONS}
    assert view.summary.responses_written == QUESTIONS
    kinds = [event.event for event in RunStore(settings.runs_path).open("last").events()]
    last = len(kinds) - 1 - kinds[::-1].index("response_written")
    assert last < kinds.index("sample_started")
    roles = [event.role for event in _events(settings, EngineStarted)]
    assert roles == ["candidate", "judge"]
    written = {event.sample_id: event.response for event in _events(settings, ResponseWritten)}
    judged = {event.sample_id: event.sample for event in _events(settings, SampleStarted)}
    assert {name: sample.response for name, sample in judged.items()} == written
    assert all(sample.metadata["candidate"] == "scripted" for sample in judged.values())


def test_the_manifest_tells_weights_prompts_and_options_of_the_candidate(
    settings: Settings, data: Path, script: Callable[..., str]
) -> None:
    name = script(rules=[_rule("What is 1?", "One.")])
    candidate = api.run(direct(data, candidate=name), settings).manifest.candidate
    assert candidate is not None
    assert candidate.name == name
    assert candidate.model.sha256
    assert list(candidate.prompts) == ["candidate/candidate"]
    assert candidate.options["temperature"] == 0
    run = RunStore(settings.runs_path).open("last")
    assert "{{ question }}" in run.blob(candidate.prompts["candidate/candidate"])


def test_an_empty_answer_is_no_verdict_and_a_cut_one_is_marked(
    settings: Settings, data: Path, script: Callable[..., str]
) -> None:
    name = script(
        rules=[_rule("What is 1?", "  "), _rule("What is 2?", "word " * 500)],
    )
    view = api.run(direct(data, candidate=name), settings)
    rows = {row.id: row for row in view.rows}
    assert (rows["q1"].outcome, rows["q1"].reason) == ("unscored", "empty")
    assert rows["q2"].outcome == "scored"
    assert rows["q2"].metadata["candidate_cut"] is True
    assert "candidate_cut" not in rows["q3"].metadata
    summary = view.summary
    assert (summary.responses_cut, summary.responses_missing) == (1, 1)
    assert not [e for e in _events(settings, CallFinished) if e.sample_id == "q1" and e.masses]


def test_an_answer_is_never_asked_for_twice(
    settings: Settings, data: Path, script: Callable[..., str]
) -> None:
    name = script(rules=[_rule("What is 1?", "")])
    api.run(direct(data, candidate=name), settings)
    calls = [e for e in _events(settings, CallFinished) if e.stage == "candidate"]
    assert len(calls) == QUESTIONS


def test_a_question_that_does_not_fit_the_candidate_is_unscored(
    settings: Settings, data: Path, script: Callable[..., str]
) -> None:
    rows = [{"id": "long", "question": "why " * 3000}, {"id": "short", "question": "Why?"}]
    data.write_text("".join(json.dumps(row) + "\n" for row in rows))
    view = api.run(direct(data, candidate=script(window=600)), settings)
    found = {row.id: (row.outcome, row.reason) for row in view.rows}
    assert found == {"long": ("unscored", "overflow"), "short": ("scored", "")}


def test_a_candidate_that_crashes_on_one_question_answers_the_others(
    settings: Settings, data: Path, script: Callable[..., str]
) -> None:
    name = script(faults=[{"kind": "crash", "match": r"What is 3\?", "times": 0}])
    view = api.run(direct(data, candidate=name), settings)
    assert view.summary.outcomes == {"scored": QUESTIONS - 1, "unscored": 1}
    assert view.summary.reasons == {"backend": 1}
    assert view.summary.status == "completed"


def _stop_at(number: int, run: Callable[[], None]) -> Ears:
    seen: list[str] = []

    def look(event: AnyEvent) -> None:
        if isinstance(event, ResponseWritten):
            seen.append(event.sample_id)
            if len(seen) == number:
                run()

    return Ears(look)


@pytest.mark.parametrize("drain", [True, False])
def test_a_run_stopped_while_writing_goes_on_without_writing_again(
    settings: Settings, data: Path, drain: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    from offline_judge.runner import launch
    from offline_judge.runner.stopping import StopSwitch

    switches: list[StopSwitch] = []

    class Switch(StopSwitch):
        def __init__(self) -> None:
            super().__init__()
            switches.append(self)

    monkeypatch.setattr(launch, "StopSwitch", Switch)
    ears = _stop_at(3, lambda: switches[-1].drain() if drain else switches[-1].cancel())
    first = api.run(direct(data, candidate="scripted"), settings, ears)
    assert first.summary.status == ("drained" if drain else "cancelled")
    assert first.summary.outcomes == {}
    assert first.summary.responses_written == 3
    early = {event.sample_id: event.response for event in _events(settings, ResponseWritten)}

    second = api.resume("last", settings)
    assert second.summary.status == "completed"
    assert second.summary.outcomes == {"scored": QUESTIONS}
    names = [event.sample_id for event in _events(settings, ResponseWritten)]
    assert sorted(names) == sorted(set(names)) == [f"q{n}" for n in range(QUESTIONS)]
    assert {row.id: row.response for row in second.rows}.items() >= early.items()


def test_a_resumed_run_keeps_what_was_judged_and_starts_no_candidate(
    settings: Settings, data: Path
) -> None:
    run_id = api.run(direct(data, candidate="scripted"), settings).manifest.run_id
    (trace,) = (settings.runs_path / run_id).glob("events-*.jsonl")
    lines = trace.read_bytes().splitlines(keepends=True)
    cut = next(n for n, line in enumerate(lines) if b'"sample_finished"' in line)
    trace.write_bytes(b"".join(lines[: cut + 1]))
    ears = Ears()
    view = api.resume(run_id, settings, listener=ears)
    assert view.summary.outcomes == {"scored": QUESTIONS}
    assert len(ears.judged()) == QUESTIONS - 1
    started = [event.role for event in ears.events if isinstance(event, EngineStarted)]
    assert started == ["judge"]


def test_a_limit_holds_for_writing_too_and_a_wider_one_writes_the_rest(
    settings: Settings, data: Path
) -> None:
    view = api.run(direct(data, candidate="scripted", limit=2), settings)
    assert (view.summary.status, view.summary.responses_written) == ("limit", 2)
    wider = api.resume("last", settings, limit=5)
    assert (wider.summary.responses_written, wider.summary.outcomes) == (5, {"scored": 5})


def test_writing_leaves_half_of_the_time_to_judging(
    settings: Settings, data: Path, script: Callable[..., str]
) -> None:
    name = script(rules=[_rule("What", "one two three four")], latency_s=0.05)
    view = api.run(direct(data, candidate=name, minutes=0.02), settings)
    assert view.summary.status == "limit"
    assert 0 < view.summary.responses_written < QUESTIONS
    assert view.summary.outcomes == {"scored": view.summary.responses_written}


def test_another_candidate_on_resume_is_refused(
    settings: Settings, data: Path, script: Callable[..., str]
) -> None:
    name = script(rules=[_rule("What is 1?", "One.")])
    api.run(direct(data, candidate=name, limit=2), settings)
    script(rules=[_rule("What is 1?", "Two.")])
    with pytest.raises(RunChangedError, match="candidate changed"):
        api.resume("last", settings, limit=4)


def test_the_same_weights_on_both_sides_are_warned_of(settings: Settings, data: Path) -> None:
    view = api.run(direct(data, candidate="scripted"), settings)
    warned = [event.message for event in _events(settings, WarningRaised)]
    assert any("the same weights" in message for message in warned)
    assert any("the same weights" in message for message in view.summary.warnings)


def test_other_weights_bring_no_warning(
    settings: Settings, data: Path, script: Callable[..., str]
) -> None:
    name = script(rules=[_rule("What is 1?", "One.")])
    assert api.run(direct(data, candidate=name), settings).summary.warnings == ()


def test_rows_with_responses_keep_them(settings: Settings, data: Path) -> None:
    with data.open("a") as file:
        file.write('{"id": "own", "question": "Who?", "response": "I."}\n')
    view = api.run(direct(data, candidate="scripted"), settings)
    row = next(row for row in view.rows if row.id == "own")
    assert (row.response, row.metadata) == ("I.", {})
    assert view.summary.responses_written == QUESTIONS


def test_nothing_to_write_is_refused(settings: Settings, tmp_path: Path) -> None:
    path = tmp_path / "full.jsonl"
    path.write_text('{"question": "Q", "response": "R"}\n')
    with pytest.raises(DataError, match="none to write"):
        api.run(direct(path, candidate="scripted"), settings)


def test_a_candidate_without_weights_is_refused_before_a_run_exists(
    settings: Settings, data: Path
) -> None:
    with pytest.raises(MissingModelError):
        api.run(direct(data, candidate="smollm2-135m-instruct"), settings)
    with pytest.raises(MissingModelError):
        api.run(direct(data, candidate="nobody"), settings)
    with pytest.raises(UsageError, match="embedder"):
        api.run(direct(data, candidate="all-minilm-l6-v2-int8"), settings)
    assert api.list_runs(settings) == []


def test_an_engine_that_does_not_start_fails_the_run_and_it_goes_on_later(
    settings: Settings, data: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    from offline_judge.backends.scripted import ScriptedBackend
    from offline_judge.errors import BackendStartError

    async def dead(*_: object) -> None:
        raise BackendStartError("no such engine")

    with monkeypatch.context() as patched:
        patched.setattr(ScriptedBackend, "start", dead)
        with pytest.raises(BackendStartError):
            api.run(direct(data, candidate="scripted"), settings)
    assert [event.status for event in _events(settings, RunFinished)] == ["failed"]
    assert api.resume("last", settings).summary.outcomes == {"scored": QUESTIONS}


def test_a_run_with_written_responses_is_not_the_run_of_the_same_data(
    settings: Settings, data: Path
) -> None:
    with data.open("a") as file:
        file.write('{"id": "own", "question": "Who?", "response": "I."}\n')
    api.run(direct(data, candidate="scripted", skip_bad=True), settings)
    data.write_text('{"id": "own", "question": "Who?", "response": "I."}\n')
    assert find_same_run("direct", data, settings) is None


def test_the_candidate_may_be_prompted_otherwise(
    settings: Settings, data: Path, tmp_path: Path
) -> None:
    folder = tmp_path / "prompts" / "candidate"
    folder.mkdir(parents=True)
    (folder / "candidate.user.jinja").write_text("Tell me: {{ question }}")
    changed = replace(settings, prompts_dir=str(tmp_path / "prompts"))
    plain = api.run(direct(data, candidate="scripted"), settings).manifest.candidate
    own = api.run(direct(data, candidate="scripted"), changed).manifest.candidate
    assert plain is not None
    assert own is not None
    assert plain.prompts != own.prompts


def test_one_sample_is_shown_with_how_its_response_came_about(
    settings: Settings, data: Path
) -> None:
    api.run(direct(data, candidate="scripted"), settings)
    events = [event.event for event in api.show("last", "q2", settings).events]
    assert events[:3] == ["call_finished", "response_written", "sample_started"]
    exported = {row["id"]: row for row in api.export_rows("last", settings)}
    assert exported["q2"]["response"]
    assert exported["q2"]["candidate"] == "scripted"


def test_a_changed_file_is_told_apart_from_written_responses(
    settings: Settings, data: Path
) -> None:
    api.run(direct(data, candidate="scripted", limit=2), settings)
    with data.open("a") as file:
        file.write('{"id": "more", "question": "Who?"}\n')
    with pytest.raises(RunChangedError, match="are all there as they were"):
        api.resume("last", settings)


def test_joined_responses_are_recorded_and_must_not_change(
    settings: Settings, data: Path, tmp_path: Path
) -> None:
    answers = tmp_path / "answers.jsonl"
    rows = [{"id": f"q{n}", "response": f"It is {n}."} for n in range(QUESTIONS - 1)]
    answers.write_text("".join(json.dumps(row) + "\n" for row in rows))
    view = api.run(direct(data, responses=answers, limit=2), settings)
    joined = view.manifest.data.responses
    assert joined is not None
    assert joined.path == str(answers)
    assert any("1 questions without a response" in warning for warning in view.summary.warnings)
    assert api.resume("last", settings, limit=3).summary.outcomes == {"scored": 3}
    with answers.open("a") as file:
        file.write('{"id": "q5", "response": "It is 5."}\n')
    with pytest.raises(RunChangedError, match="file of responses is not the one"):
        api.resume("last", settings, limit=4)
    answers.unlink()
    with pytest.raises(DataError, match="file of responses of this run is gone"):
        api.resume("last", settings, limit=4)


def test_a_public_set_is_judged_and_resumed_under_its_form(
    settings: Settings, tmp_path: Path
) -> None:
    rows = [
        {
            "question": f"who is {n}",
            "golden_answer": "Ida",
            "answer_a": "Ida",
            "judge_a": True,
            "improper": n == 0,
        }
        for n in range(4)
    ]
    path = tmp_path / "NQ.json"
    path.write_text(json.dumps(rows))
    view = api.run(direct(path, format="evouna", limit=1), settings)
    assert view.manifest.data.format == "evouna"
    assert view.manifest.data.left_out == {"questions flagged as improper": 1}
    assert api.resume("last", settings, limit=3).summary.outcomes == {"scored": 3}
    assert view.summary.agreement is not None


def test_responses_are_joined_or_written_not_both(
    settings: Settings, data: Path, tmp_path: Path
) -> None:
    with pytest.raises(UsageError, match="joined or written"):
        api.run(direct(data, candidate="scripted", responses=tmp_path / "a.csv"), settings)


def test_responses_are_written_for_a_method_without_a_judge(
    settings: Settings, tmp_path: Path, script: Callable[..., str]
) -> None:
    path = tmp_path / "open.jsonl"
    rows = [{"question": f"who is {n}", "answer": ["Ida Berg"]} for n in range(2)]
    path.write_text("".join(json.dumps(row) + "\n" for row in rows))
    name = script(rules=[_rule("who is 0", "Ida Berg"), _rule("who is 1", "Olaf")])
    request = api.RunRequest("lexical", path, format="nq-open", candidate=name)
    view = api.run(request, settings)
    assert [row.verdict for row in view.rows] == [True, False]
    assert [event.role for event in _events(settings, EngineStarted)] == ["candidate"]
    assert view.summary.warnings == ()
