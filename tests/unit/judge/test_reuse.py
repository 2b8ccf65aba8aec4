"""What is found in the completion cache again, and everything that must make it miss."""

import subprocess
import sys
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any, Literal

import pytest
from judge_fakes import Bench, make_bench, make_library, said
from pydantic import BaseModel, Field

from offline_judge.domain.message import Message, Prompt, Sampling
from offline_judge.errors import UnscoredError
from offline_judge.judge import calls
from offline_judge.judge.cache import CompletionCache
from offline_judge.judge.calls import Call, Ingredients
from offline_judge.prompting import answers
from offline_judge.prompting.answers import JsonAnswer, LineAnswer
from offline_judge.prompting.library import Rendered

QUERY = LineAnswer(max_chars=30, max_tokens=20)
VALUES = {"question": "Where?"}


class Stance(BaseModel):
    stance: Literal["supports", "contradicts"]


class LongerStance(BaseModel):
    stance: Literal["supports", "contradicts"]
    why: str = Field(default="", max_length=9)


STANCE = JsonAnswer(Stance, max_tokens=20)
GOOD = '{"stance": "supports"}'


async def _ask(bench: Bench, schema: Any = QUERY, **changes: Any) -> Any:
    return await bench.judge.ask("query", VALUES, schema, **changes)


async def test_a_kept_answer_is_the_same_and_its_event_costs_nothing(tmp_path: Path) -> None:
    bench = make_bench(tmp_path, "fine", "other")
    first = await _ask(bench)
    other = bench.again()
    second = await _ask(other)
    assert second == first
    assert len(bench.backend.sent) == 1
    (call,) = other.trace.calls
    assert (call.reused, call.text, call.problem, call.finish_reason) == (True, "fine", "", "stop")
    assert call.prompt_hash == bench.trace.calls[0].prompt_hash
    assert call.usage.prompt_tokens == call.usage.completion_tokens == 0


async def test_an_answer_corrected_once_is_found_at_once_and_goes_on_alike(tmp_path: Path) -> None:
    bench = make_bench(tmp_path, "prose", GOOD)
    first = await _ask(bench, STANCE)
    other = bench.again()
    assert await _ask(other, STANCE) == first
    assert len(bench.backend.sent) == 2
    assert len(other.trace.calls) == 1


@pytest.mark.parametrize(
    "bad", ["", "w" * 31, "I can't help with that.", said("cut", reason="length"), "<think>x"]
)
async def test_a_failed_answer_is_never_kept(tmp_path: Path, bad: Any) -> None:
    kept: list[str] = []

    class Watched(CompletionCache):
        def put(self, key: str, value: Any) -> None:
            kept.append(key)

    bench = make_bench(tmp_path, bad, cache=Watched(None))
    with pytest.raises(UnscoredError):
        await _ask(bench)
    assert kept == []


Change = Callable[[Bench, Path], Bench]


def _factory(**changes: Any) -> Change:
    def change(bench: Bench, _: Path) -> Bench:
        return replace(bench, factory=replace(bench.factory, **changes)).again()

    return change


def _templates(bench: Bench, folder: Path) -> Bench:
    override = folder / "mine"
    (override / "demo").mkdir(parents=True)
    # The prompt that comes out is the same; its template is another one all the same.
    (override / "demo" / "query.user.jinja").write_text("Question: {{ question }}{# mine #}")
    library = make_library(folder, override=override)
    return replace(bench, factory=replace(bench.factory, library=library)).again()


def _unconstrained(bench: Bench, _: Path) -> Bench:
    bench.backend.constraints = ()
    return bench.again()


def _narrower(bench: Bench, _: Path) -> Bench:
    bench.backend.window = 60
    return bench.again()


CHANGES: dict[str, Change] = {
    "weights": _factory(model_sha256="cd" * 32),
    "engine version": _factory(engine_version="2"),
    "seed": _factory(seed=1),
    "template": _templates,
    "constraint": _unconstrained,
    "output limit": _narrower,
}


@pytest.mark.parametrize("name", CHANGES)
async def test_each_ingredient_makes_it_miss(tmp_path: Path, name: str) -> None:
    bench = make_bench(tmp_path, GOOD)
    await _ask(bench, STANCE)
    changed = CHANGES[name](bench, tmp_path)
    await _ask(changed, STANCE)
    assert len(bench.backend.sent) == 2


@pytest.mark.parametrize(
    "schema",
    [JsonAnswer(LongerStance, max_tokens=20), JsonAnswer(Stance, max_tokens=21)],
)
async def test_another_schema_makes_it_miss(tmp_path: Path, schema: Any) -> None:
    bench = make_bench(tmp_path, GOOD)
    await _ask(bench, STANCE)
    await _ask(bench, schema)
    assert len(bench.backend.sent) == 2


async def test_every_variant_is_a_draw_of_its_own(tmp_path: Path) -> None:
    bench = make_bench(tmp_path, "zero", "one", "two")
    drawn = [(await _ask(bench, variant=variant)).value for variant in (0, 1, 2, 1)]
    assert drawn == ["zero", "one", "two", "one"]


async def test_another_parser_makes_it_miss(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    bench = make_bench(tmp_path, GOOD)
    await _ask(bench, STANCE)
    monkeypatch.setattr(answers, "PARSER_VERSION", answers.PARSER_VERSION + 1)
    await _ask(bench, STANCE)
    monkeypatch.setattr(calls, "JUDGE_VERSION", calls.JUDGE_VERSION + 1)
    await _ask(bench, STANCE)
    assert len(bench.backend.sent) == 3


@pytest.mark.parametrize("stored", [{"text": "w" * 31}, {"text": 1}, {}, "fine", 7])
async def test_a_kept_value_that_does_not_pass_is_asked_for_anew(
    tmp_path: Path, stored: Any
) -> None:
    class Odd(CompletionCache):
        def get(self, key: str) -> Any:
            return stored

    bench = make_bench(tmp_path, "fine", cache=Odd(None))
    assert (await _ask(bench)).value == "fine"
    assert len(bench.backend.sent) == 1


def _call(**changes: Any) -> Call:
    messages = (Message(role="user", content="q"),)
    prompt = Prompt(**{"messages": messages, "text": "q", "token_ids": (1, 2), "tokens": 2,
                       **changes})  # fmt: skip
    return Call("query", 0, Rendered(messages, "demo/query", "th", {}), prompt)


def test_the_engine_s_own_view_of_a_prompt_counts_most() -> None:
    ingredients = Ingredients("w", "fake", "1")
    keys = [
        ingredients.key(_call(**changes), {})
        for changes in (
            {},
            {"text": "other rendering, same tokens"},
            {"token_ids": (1, 3)},
            {"token_ids": ()},
            {"token_ids": (), "text": "r"},
            {"token_ids": (), "text": ""},
        )
    ]
    assert keys[0] == keys[1]
    assert len(set(keys)) == 5


def test_every_part_of_the_sampling_is_in_the_key() -> None:
    ingredients = Ingredients("w", "fake", "1")
    base = Sampling(max_tokens=9)
    others: list[dict[str, Any]] = [
        {"temperature": 0.5}, {"top_p": 0.5}, {"seed": 1}, {"max_tokens": 8}, {"stop": ("x",)},
    ]  # fmt: skip
    assert {key for change in others for key in change} == set(Sampling.model_fields)
    draws = [base, *(base.model_copy(update=change) for change in others)]
    keys = {ingredients.key(_call(), {"sampling": draw.model_dump(mode="json")}) for draw in draws}
    assert len(keys) == len(draws)


_PROGRAM = """
import asyncio, sys
from pathlib import Path
from judge_fakes import make_bench
from offline_judge.judge.cache import CompletionCache
from offline_judge.prompting.answers import LineAnswer

async def main(folder):
    cache = CompletionCache(folder / "cache.sqlite")
    bench = make_bench(folder / sys.argv[2], sys.argv[2], cache=cache)
    query = LineAnswer(max_chars=30, max_tokens=20)
    answer = await bench.judge.ask("query", {"question": "Where?"}, query)
    print(answer.value, len(bench.backend.sent))
    cache.close()

asyncio.run(main(Path(sys.argv[1])))
"""


def test_another_process_finds_it_again(tmp_path: Path) -> None:
    here = Path(__file__).parent
    outputs = []
    for number, answer in enumerate(("first", "second")):
        (tmp_path / answer).mkdir()
        environment = {"PYTHONPATH": f"{here.parents[2]}:{here}", "PYTHONHASHSEED": str(number)}
        command = [sys.executable, "-c", _PROGRAM, str(tmp_path), answer]
        done = subprocess.run(command, env=environment, capture_output=True, text=True, check=True)
        outputs.append(done.stdout.split())
    assert outputs == [["first", "1"], ["first", "0"]]


async def test_two_repeats_that_share_a_seed_are_told_apart(tmp_path: Path) -> None:
    bench = make_bench(tmp_path, "one", "two")
    await _ask(bench, variant=2)
    shifted = replace(bench, factory=replace(bench.factory, seed=1000)).again()
    assert (await _ask(shifted, variant=1)).value == "two"
    assert [draw.seed for draw in bench.drawn] == [2000, 2000]
