"""`read`: label masses, the least mass inside, and the conversation that follows."""

from pathlib import Path

import pytest
from judge_fakes import make_bench

from offline_judge.domain.message import Label, Message
from offline_judge.errors import (
    BackendCrashedError,
    BackendResponseError,
    ContextOverflowError,
    UnscoredError,
)
from offline_judge.judge.cache import CompletionCache
from offline_judge.protocols import At, Untrusted, Values

LABELS = (Label(name="true", text="Yes"), Label(name="false", text="No"))
VALUES: Values = {"question": "Where?", "response": Untrusted("Paris", "response")}
SURE = {"true": 0.2, "false": 0.7}
UNSURE = {"true": 0.3, "false": 0.15}


async def test_a_reading_goes_on_as_if_the_best_label_was_answered(tmp_path: Path) -> None:
    bench = make_bench(tmp_path, SURE)
    reading = await bench.judge.read("verdict", VALUES, LABELS, at=At(round=1))
    (call,) = bench.trace.calls
    assert reading.labels.masses == SURE
    assert reading.turn.messages[-1] == Message(role="assistant", content="No")
    assert reading.turn.messages[:-1] == bench.backend.sent[0].prompt.messages
    assert reading.turn.prompt_hash == call.prompt_hash
    assert bench.backend.sent[0].affinity == "2/verdict"
    assert (call.stage, call.round, call.masses, call.text) == ("verdict", 1, SURE, "")
    assert call.outside == pytest.approx(0.1)
    assert call.problem == ""


async def test_too_little_mass_on_the_labels_is_off_menu_with_the_numbers(tmp_path: Path) -> None:
    bench = make_bench(tmp_path, UNSURE)
    with pytest.raises(UnscoredError, match=r"0\.450.*0\.550.*0\.5 ") as caught:
        await bench.judge.read("verdict", VALUES, LABELS)
    assert caught.value.reason == "off-menu"
    (call,) = bench.trace.calls
    assert call.masses == UNSURE
    assert call.problem.startswith("off-menu")


async def test_the_least_mass_is_the_caller_s_to_set(tmp_path: Path) -> None:
    bench = make_bench(tmp_path, UNSURE)
    reading = await bench.judge.read("verdict", VALUES, LABELS, minimum_inside=0.4)
    assert reading.labels.best() == "true"


async def test_a_kept_reading_is_measured_against_the_minimum_again(tmp_path: Path) -> None:
    bench = make_bench(tmp_path, UNSURE)
    await bench.judge.read("verdict", VALUES, LABELS, minimum_inside=0.0)
    with pytest.raises(UnscoredError):
        await bench.judge.read("verdict", VALUES, LABELS)
    assert len(bench.backend.sent) == 1


async def test_a_kept_reading_comes_back_whole_and_without_usage(tmp_path: Path) -> None:
    bench = make_bench(tmp_path, SURE)
    first = await bench.judge.read("verdict", VALUES, LABELS)
    other = bench.again()
    second = await other.judge.read("verdict", VALUES, LABELS)
    assert second.turn == first.turn
    assert second.labels.masses == first.labels.masses
    assert (second.labels.outside, second.labels.unseen) == (first.labels.outside, 0.01)
    (call,) = other.trace.calls
    assert call.reused
    assert call.usage.prompt_tokens == call.usage.completion_tokens == 0
    assert len(bench.backend.sent) == 1


@pytest.mark.parametrize(
    "labels",
    [
        (LABELS[0], Label(name="false", text="Nope")),
        (LABELS[0], Label(name="wrong", text="No")),
        (*LABELS, Label(name="unknown", text="Unknown")),
    ],
)
async def test_other_labels_are_another_reading(tmp_path: Path, labels: tuple[Label, ...]) -> None:
    bench = make_bench(tmp_path, SURE, {label.name: 0.3 for label in labels})
    await bench.judge.read("verdict", VALUES, LABELS)
    await bench.judge.read("verdict", VALUES, labels)
    assert len(bench.backend.sent) == 2


async def test_a_prompt_that_does_not_fit_is_never_read(tmp_path: Path) -> None:
    bench = make_bench(tmp_path, SURE)
    bench.backend.window = await bench.tokens("verdict", VALUES)
    with pytest.raises(UnscoredError) as caught:
        await bench.judge.read("verdict", VALUES, LABELS)
    assert caught.value.reason == "overflow"
    assert bench.backend.sent == []


@pytest.mark.parametrize(
    ("error", "sent", "reason"),
    [
        (BackendCrashedError("died"), 2, "backend"),
        (BackendResponseError("noise"), 2, "backend"),
        (ContextOverflowError("too long"), 1, "overflow"),
    ],
)
async def test_faults_of_the_engine_are_bounded(
    tmp_path: Path, error: Exception, sent: int, reason: str
) -> None:
    bench = make_bench(tmp_path, error)
    with pytest.raises(UnscoredError) as caught:
        await bench.judge.read("verdict", VALUES, LABELS)
    assert caught.value.reason == reason
    assert len(bench.backend.sent) == len(bench.trace.calls) == sent


async def test_masses_of_other_labels_are_a_broken_answer(tmp_path: Path) -> None:
    bench = make_bench(tmp_path, {"yes": 1.0}, SURE)
    reading = await bench.judge.read("verdict", VALUES, LABELS)
    assert reading.labels.masses == SURE
    assert [bool(call.problem) for call in bench.trace.calls] == [True, False]


async def test_an_engine_without_label_probabilities_answers_with_a_label(tmp_path: Path) -> None:
    bench = make_bench(tmp_path, '"No"', gives_labels=False)
    reading = await bench.judge.read("verdict", VALUES, LABELS)
    (call,) = bench.trace.calls
    assert reading.labels.chosen_only
    assert reading.labels.best() == "false"
    assert reading.turn.messages[-1] == Message(role="assistant", content="No")
    # Nothing in the trace looks like a probability.
    assert (call.text, call.masses, call.outside) == ('"No"', None, None)
    constraint = bench.backend.sent[0].constraint
    assert constraint is not None
    assert constraint.json_schema == {"type": "string", "enum": ["Yes", "No"]}


@pytest.mark.parametrize("said", ["Perhaps", "No evidence at all", "Yes and No", '{"a": "Yes"}'])
async def test_an_answer_that_is_no_label_is_no_verdict(tmp_path: Path, said: str) -> None:
    bench = make_bench(tmp_path, said, gives_labels=False)
    with pytest.raises(UnscoredError) as caught:
        await bench.judge.read("verdict", VALUES, LABELS)
    assert caught.value.reason == "off-menu"


async def test_an_empty_answer_is_no_verdict(tmp_path: Path) -> None:
    bench = make_bench(tmp_path, "<think>Surely Yes.</think>", gives_labels=False)
    with pytest.raises(UnscoredError) as caught:
        await bench.judge.read("verdict", VALUES, LABELS)
    assert caught.value.reason == "empty"


async def test_an_answered_label_is_found_again_and_never_as_a_reading(tmp_path: Path) -> None:
    cache = CompletionCache(None)
    answering = make_bench(tmp_path, '"No"', gives_labels=False, cache=cache)
    for _ in range(2):
        assert (await answering.judge.read("verdict", VALUES, LABELS)).labels.chosen_only
    assert len(answering.backend.sent) == 1
    reading = make_bench(tmp_path, SURE, cache=cache)
    assert (await reading.judge.read("verdict", VALUES, LABELS)).labels.masses == SURE


async def test_a_damaged_kept_reading_is_read_anew(tmp_path: Path) -> None:
    class Odd(CompletionCache):
        def get(self, key: str) -> object:
            return {"masses": {"true": "much"}, "outside": None}

    bench = make_bench(tmp_path, SURE, cache=Odd(None))
    reading = await bench.judge.read("verdict", VALUES, LABELS)
    assert reading.labels.masses == SURE
