"""Reading llama.cpp's events: runaway answers, alternatives, label plans, checks of the end."""

from __future__ import annotations

import ast
import math
import sys
from pathlib import Path
from typing import Any

import pytest

from offline_judge.backends import llama_child
from offline_judge.backends.answer import StreamedAnswer
from offline_judge.backends.dialect import completion_body, finish_reason
from offline_judge.backends.labels import Alternatives, MassCount, Tokens, plan_labels
from offline_judge.backends.options import EngineOptions, usable_cores
from offline_judge.backends.probe import check_mix_up
from offline_judge.backends.rates import Rates
from offline_judge.backends.requests import check_final
from offline_judge.backends.runaway import Runaway
from offline_judge.domain.message import (
    Constraint,
    FinishReason,
    Label,
    Prompt,
    Sampling,
    Timings,
    Usage,
)
from offline_judge.errors import BackendResponseError, BackendStartError, SchemaError

PROMPT = Prompt(messages=(), token_ids=(1, 2, 3), tokens=3)
YES, NO = Label(name="true", text="Yes"), Label(name="false", text="No")


def _final(**changes: Any) -> dict[str, Any]:
    timings = {"cache_n": 1, "prompt_n": 2, "prompt_ms": 500.0, "predicted_ms": 1500.0}
    final = {
        "stop": True,
        "content": "",
        "tokens": [],
        "id_slot": 0,
        "stop_type": "eos",
        "truncated": False,
        "tokens_predicted": 2,
        "timings": timings,
    }
    return final | changes


def test_whitespace_without_end_is_a_runaway() -> None:
    watch = Runaway()
    assert not watch.feed("text", [1])
    assert not any(watch.feed(" \n", [2, at]) for at in range(19))
    assert watch.feed("\t ", [3])


def test_whitespace_between_words_is_not() -> None:
    watch = Runaway()
    assert not any(watch.feed(" " * 39 + "x", [at]) for at in range(50))


def test_a_short_cycle_of_tokens_is_a_runaway() -> None:
    watch = Runaway()
    assert [watch.feed("na", [at % 3]) for at in range(96)] == [False] * 95 + [True]


def test_tokens_that_only_almost_repeat_are_not() -> None:
    watch = Runaway()
    assert not any(watch.feed("x", [at % 9]) for at in range(300))


def test_a_runaway_answer_ends_as_too_long_with_the_counts_seen() -> None:
    answer = StreamedAnswer(PROMPT)
    answer.take({"prompt_progress": {"cache": 2, "processed": 3, "total": 3}})
    for at in range(50):
        answer.take({"content": " ", "tokens": [at]})
    assert answer.runaway
    made = answer.generation()
    assert made.finish_reason is FinishReason.LENGTH
    assert made.usage == Usage(prompt_tokens=3, cached_tokens=2, completion_tokens=50)


def test_the_placeholder_token_of_a_progress_event_is_no_output() -> None:
    answer = StreamedAnswer(PROMPT)
    progress = {"content": "", "tokens": [0], "prompt_progress": {"cache": 0, "processed": 3}}
    delta = answer.take(progress)
    assert delta is not None
    assert delta.prompt_read == 3
    answer.take({"content": "Yes", "tokens": [9]})
    answer.take(_final())
    assert answer.generation().token_ids == (9,)
    assert answer.generation().timings == Timings(prompt_s=0.5, generate_s=1.5)


@pytest.mark.parametrize(
    ("kind", "reason"),
    [("eos", FinishReason.STOP), ("word", FinishReason.STOP), ("limit", FinishReason.LENGTH)],
)
def test_reasons_to_stop(kind: str, reason: FinishReason) -> None:
    assert finish_reason(_final(stop_type=kind)) is reason


def test_an_unknown_reason_to_stop_is_no_answer() -> None:
    with pytest.raises(BackendResponseError, match="none"):
        finish_reason(_final(stop_type="none"))


@pytest.mark.parametrize(
    "changes",
    [{"truncated": True}, {"id_slot": 1}, {"timings": {"cache_n": 0, "prompt_n": 2}}],
    ids=["truncated", "another slot", "fewer tokens than sent"],
)
def test_an_answer_to_another_prompt_than_ours_is_refused(changes: dict[str, Any]) -> None:
    check_final(_final(), PROMPT, 0)
    with pytest.raises(BackendResponseError):
        check_final(_final(**changes), PROMPT, 0)


def test_an_end_without_counts_is_refused() -> None:
    with pytest.raises(BackendResponseError, match="no counts"):
        check_final(_final(timings={}), PROMPT, 0)


def test_a_request_switches_off_the_servers_own_sampling_and_free_whitespace() -> None:
    schema = {"type": "object"}
    body = completion_body((1,), 2, Sampling(max_tokens=5, seed=-1), Constraint(json_schema=schema))
    assert (body["top_k"], body["min_p"], body["n_predict"]) == (0, 0.0, 5)
    assert body["json_schema"]["x-guidance"] == {"whitespace_flexible": False}
    assert body["return_progress"]
    assert 0 <= body["seed"] < 2**32
    assert schema == {"type": "object"}


def test_spellings_of_one_token_are_summed_and_others_left_out() -> None:
    tokens: dict[str, Tokens] = {
        text: (at,) for at, text in enumerate(YES.variants() + NO.variants())
    }
    tokens["YES"] = (70, 71)
    plan = plan_labels((YES, NO), tokens)
    assert (70, 71) not in plan.spellings["true"]
    assert len(plan.spellings["true"]) == len(YES.variants()) - 1
    assert plan.longest == 1


def test_a_label_without_a_spelling_of_one_token_is_scored_whole() -> None:
    long = Label(name="unknown", text="Not known")
    tokens: dict[str, Tokens] = dict.fromkeys(long.variants(), (1, 2))
    tokens |= dict.fromkeys(YES.variants(), (9,))
    tokens[" Not known"] = (3, 2)
    assert plan_labels((long, YES), tokens).spellings["unknown"] == ((1, 2), (3, 2))


def test_a_space_of_its_own_is_no_clash() -> None:
    ten, twenty = Label(name="10", text="10"), Label(name="20", text="20")
    tokens = {"10": (1, 0), " 10": (32, 1, 0), "20": (2, 0), " 20": (32, 2, 0)}
    plan = plan_labels((ten, twenty), tokens)
    assert plan.spellings == {"10": ((1, 0),), "20": ((2, 0),)}


def test_labels_that_share_a_first_token_are_refused() -> None:
    long = Label(name="unknown", text="No idea")
    tokens: dict[str, Tokens] = dict.fromkeys(long.variants(), (7, 8))
    tokens |= dict.fromkeys(NO.variants(), (7,))
    with pytest.raises(SchemaError, match="`unknown` and `false` share a first token"):
        plan_labels((long, NO), tokens)


def test_one_label_or_a_name_twice_is_refused() -> None:
    tokens = dict.fromkeys(YES.variants(), (1,))
    for labels in ((YES,), (YES, YES)):
        with pytest.raises(SchemaError, match="two or more"):
            plan_labels(labels, tokens)


def test_alternatives_beyond_the_list_are_unseen() -> None:
    found = Alternatives.parse(
        [{"id": 1, "logprob": math.log(0.5)}, {"id": 2, "logprob": math.log(0.2)}]
    )
    assert found.masses == pytest.approx({1: 0.5, 2: 0.2})
    assert found.unseen == pytest.approx(0.3)


@pytest.mark.parametrize(
    "items",
    [
        [],
        [{"id": 1, "logprob": 0.0}, {"id": 2, "logprob": -0.1}],
        [{"id": 1, "logprob": math.nan}],
        [{"id": 1, "logprob": None}],
        [{"id": 1}],
    ],
    ids=["none", "more than one in sum", "nan", "null", "missing"],
)
def test_alternatives_that_are_no_distribution_are_refused(items: list[dict[str, Any]]) -> None:
    with pytest.raises(BackendResponseError):
        Alternatives.parse(items)


def test_masses_and_outside_are_one_even_after_rounding() -> None:
    count = MassCount()
    count.add("a", 0.6)
    count.add("a", 0.2)
    count.add("b", 0.2004)
    masses, outside = count.settle()
    assert sum(masses.values()) + outside == pytest.approx(1, abs=1e-12)
    count.add("b", 0.1)
    with pytest.raises(BackendResponseError):
        count.settle()


def test_an_answer_with_the_other_requests_word_stops_the_run() -> None:
    check_mix_up([" walrus walrus", " lantern"])
    with pytest.raises(BackendStartError, match=r"asked to repeat `walrus`.*lantern"):
        check_mix_up([" walrus lantern", " lantern"])


def test_a_batch_is_taken_at_its_slowest_of_late() -> None:
    rates = Rates()
    assert rates.batch_s(64) == 1.0
    rates.add(Usage(prompt_tokens=64), Timings(prompt_s=0.5))
    assert rates.batch_s(64) == 0.5
    rates.gap(4.0)
    assert rates.batch_s(64) == 4.0


@pytest.mark.parametrize(("billions", "batch"), [(0.135, 256), (0.5, 128), (1.5, 64), (7.0, 32)])
def test_a_batch_is_what_the_model_reads_in_a_second(billions: float, batch: int) -> None:
    assert EngineOptions(Path("m"), "m", parameters_b=billions).chosen_batch() == batch


def test_a_given_batch_holds_a_token_for_every_slot() -> None:
    assert EngineOptions(Path("m"), "m", batch=2, slots=5).chosen_batch() == 5


def test_cores_obey_the_control_group(tmp_path: Path) -> None:
    quota = tmp_path / "cpu.max"
    free = usable_cores(quota)
    assert free >= 1
    quota.write_text("50000 100000\n")
    assert usable_cores(quota) == 1
    quota.write_text("max 100000\n")
    assert usable_cores(quota) == free


def test_the_child_needs_the_standard_library_and_the_engine_only() -> None:
    tree = ast.parse(Path(llama_child.__file__).read_text("utf-8"))
    names = {
        alias.name if isinstance(node, ast.Import) else node.module or ""
        for node in ast.walk(tree)
        if isinstance(node, ast.Import | ast.ImportFrom)
        for alias in node.names
    }
    roots = {name.partition(".")[0] for name in names}
    assert roots - set(sys.stdlib_module_names) == {"xllamacpp"}
