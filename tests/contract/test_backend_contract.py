"""Every registered backend keeps the promises of `protocols.Backend`, as far as it declares them.

The servers of other products are stood up on loopback (`fake_servers.py`); those that can be had
for real are run too, where the environment says where they are:
`OFFLINE_JUDGE_TEST_LLAMA_SERVER` (a llama-server), `OFFLINE_JUDGE_TEST_LLAMA_CPP_PYTHON` and
`OFFLINE_JUDGE_TEST_VLLM` (interpreters that have them) and `OFFLINE_JUDGE_TEST_VLLM_MODEL` (the
small weights as a folder for it).
"""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator
from contextlib import suppress
from typing import Any

import pytest
import pytest_asyncio
from contract_backends import DECLARED, MAKERS, PARAMS, WINDOW

from offline_judge.domain.message import (
    Constraint,
    Delta,
    FinishReason,
    Generation,
    Label,
    Message,
    Prompt,
    Sampling,
)
from offline_judge.errors import (
    BackendError,
    BackendResponseError,
    ContextOverflowError,
    SchemaError,
)
from offline_judge.protocols import Backend
from offline_judge.registry import BACKENDS

pytestmark = pytest.mark.asyncio(loop_scope="module")

YES_NO = (Label(name="true", text="Yes"), Label(name="false", text="No"))
SCHEMA: dict[str, Any] = {
    "type": "object",
    "properties": {
        "note": {"type": "string", "maxLength": 40},
        "cites": {"type": "array", "items": {"type": "string", "maxLength": 4}, "maxItems": 2},
        "sure": {"type": "boolean"},
        "stance": {"type": "string", "enum": ["for", "against"]},
    },
    "required": ["note", "cites", "sure", "stance"],
    "additionalProperties": False,
}


async def test_every_registered_backend_is_held_to_the_contract() -> None:
    assert set(BACKENDS.names()) <= set(MAKERS)


async def test_it_declares_all_that_it_is_known_to_do(
    backend: Backend, request: pytest.FixtureRequest
) -> None:
    name = request.node.callspec.params["backend"]
    flags = ("token_level", "label_probabilities", "seed", "reports_cached_tokens")
    found = {flag for flag in flags if getattr(backend.capabilities, flag)}
    assert found == DECLARED[name]
    assert backend.capabilities.constraints == ("json_schema",)


def needs(backend: Backend, *flags: str) -> None:
    """Leave the test out for a backend that declares not to do what it is about."""
    for flag in flags:
        if not getattr(backend.capabilities, flag):
            pytest.skip(f"{backend.name} declares no {flag}")


@pytest_asyncio.fixture(scope="module", loop_scope="module", params=PARAMS)
async def backend(request: pytest.FixtureRequest) -> AsyncIterator[Backend]:
    made = MAKERS[request.param](request)
    phases: list[str] = []
    await made.start(lambda phase, detail="": phases.append(phase))
    assert phases[-1] == "ready"
    yield made
    await made.close()
    await made.close()


async def _prompt(backend: Backend, text: str, system: str = "Answer briefly.") -> Prompt:
    turns = [Message(role="system", content=system), Message(role="user", content=text)]
    return await backend.prepare(turns)


async def _long_prompt(backend: Backend, tokens: int) -> Prompt:
    """A prompt of at least `tokens` tokens, and not many more."""
    text, prompt = "", await _prompt(backend, "")
    while prompt.tokens < tokens:
        text += " river" * max(1, (tokens - prompt.tokens) // 2)
        prompt = await _prompt(backend, text)
    return prompt


async def _all(
    backend: Backend, prompt: Prompt, affinity: str = "a", **sampling: Any
) -> list[Delta | Generation]:
    wanted = Sampling(**({"max_tokens": 12} | sampling))
    return [item async for item in backend.generate(prompt, wanted, affinity=affinity)]


async def _generation(
    backend: Backend, prompt: Prompt, affinity: str = "a", **sampling: Any
) -> Generation:
    last = (await _all(backend, prompt, affinity, **sampling))[-1]
    assert isinstance(last, Generation)
    return last


async def test_deltas_come_first_and_make_up_the_one_generation(backend: Backend) -> None:
    *deltas, last = await _all(backend, await _prompt(backend, "Name a river."))
    assert isinstance(last, Generation)
    assert all(isinstance(item, Delta) for item in deltas)
    assert "".join(item.text for item in deltas) == last.text != ""


async def test_usage_adds_up(backend: Backend) -> None:
    prompt = await _prompt(backend, "Name a city.")
    usage = (await _generation(backend, prompt, max_tokens=5)).usage
    assert 0 < usage.prompt_tokens <= prompt.tokens
    assert 0 < usage.read_anew <= prompt.tokens
    if backend.capabilities.token_level:
        assert usage.prompt_tokens == prompt.tokens == len(prompt.token_ids)
    assert 0 < usage.completion_tokens <= 5


async def test_the_output_limit_is_told_from_an_end(backend: Backend) -> None:
    prompt = await _prompt(backend, "Tell a long story about a ship.")
    cut = await _generation(backend, prompt, max_tokens=3)
    assert cut.finish_reason is FinishReason.LENGTH
    assert cut.usage.completion_tokens == 3
    if backend.capabilities.token_level:
        assert len(cut.token_ids) == 3


async def test_a_stop_text_ends_the_answer_before_it(backend: Backend) -> None:
    prompt = await _prompt(backend, "Tell a long story about a ship.")
    whole = (await _generation(backend, prompt)).text
    stop = whole.split()[2]
    stopped = await _generation(backend, prompt, stop=(stop,))
    assert stopped.finish_reason is FinishReason.STOP
    assert stopped.text == whole[: whole.index(stop)]


async def test_a_repeated_prefix_is_not_read_again(backend: Backend) -> None:
    needs(backend, "reports_cached_tokens")
    head = "You are a careful judge. " * 24
    first = await _prompt(backend, "Is the sea salt?", head)
    second = await _prompt(backend, "Is the moon a cheese?", head)
    await _generation(backend, first, "same", max_tokens=1)
    again = (await _generation(backend, first, "same", max_tokens=1)).usage
    other = (await _generation(backend, second, "same", max_tokens=1)).usage
    # vLLM finds whole blocks again, of 32 tokens here; llama.cpp all but the last token.
    assert again.read_anew <= 32
    assert second.tokens / 2 < other.cached_tokens < second.tokens


async def test_temperature_zero_repeats_itself(backend: Backend) -> None:
    prompt = await _prompt(backend, "What is a treaty?")
    await _generation(backend, prompt)
    texts = {(await _generation(backend, prompt, seed=seed)).text for seed in (1, 2)}
    assert len(texts) == 1


async def test_a_seed_repeats_a_draw_and_another_seed_does_not(backend: Backend) -> None:
    assert backend.capabilities.seed
    prompt = await _prompt(backend, "Write any words that come to mind.")
    await _generation(backend, prompt)
    drawn = [
        (await _generation(backend, prompt, temperature=1.0, seed=seed)).text for seed in (3, 3, 4)
    ]
    assert drawn[0] == drawn[1] != drawn[2]


async def test_label_masses_and_outside_are_one(backend: Backend) -> None:
    needs(backend, "label_probabilities")
    prompt = await _prompt(backend, "Is Paris in France? Answer Yes or No.")
    labels = await backend.label_probabilities(prompt, YES_NO, affinity="a")
    assert set(labels.masses) == {"true", "false"}
    assert min(labels.masses.values()) >= 0
    assert labels.inside + labels.outside == pytest.approx(1, abs=1e-6)
    assert 0 <= labels.unseen <= labels.outside
    assert labels.inside > 0.2
    assert 0 < labels.usage.prompt_tokens <= prompt.tokens


async def test_label_masses_do_not_depend_on_the_order_of_labels(backend: Backend) -> None:
    needs(backend, "label_probabilities")
    prompt = await _prompt(backend, "Is Rome in Spain? Answer Yes or No.")
    await backend.label_probabilities(prompt, YES_NO, affinity="a")
    one = await backend.label_probabilities(prompt, YES_NO, affinity="a")
    two = await backend.label_probabilities(prompt, YES_NO[::-1], affinity="a")
    assert two.masses == pytest.approx(one.masses, abs=1e-4)


async def test_labels_of_several_tokens_are_scored_whole(backend: Backend) -> None:
    needs(backend, "label_probabilities", "token_level")
    prompt = await _prompt(backend, "Is it so?")
    wanted = (
        Label(name="unknown", text="Not enough evidence here"),
        Label(name="supported", text="Supported by everything"),
    )
    labels = await backend.label_probabilities(prompt, wanted, affinity="a")
    assert labels.inside + labels.outside == pytest.approx(1, abs=1e-6)
    assert labels.usage.prompt_tokens == prompt.tokens


async def test_labels_that_share_a_first_token_are_refused(backend: Backend) -> None:
    needs(backend, "label_probabilities", "token_level")
    prompt = await _prompt(backend, "Is it so?")
    clash = (Label(name="no", text="No"), Label(name="none", text="No evidence at all"))
    with pytest.raises(SchemaError, match="first token"):
        await backend.label_probabilities(prompt, clash)


async def test_a_prompt_longer_than_the_window_is_an_overflow(backend: Backend) -> None:
    prompt = await _long_prompt(backend, WINDOW)
    with pytest.raises(ContextOverflowError):
        await _generation(backend, prompt)
    if backend.capabilities.label_probabilities:
        with pytest.raises(ContextOverflowError):
            await backend.label_probabilities(prompt, YES_NO)


async def test_output_is_clamped_to_what_the_window_has_left(backend: Backend) -> None:
    # Where tokens are only estimated, the estimate moves while such a prompt is looked for.
    prompt = await _long_prompt(
        backend, WINDOW - (60 if backend.capabilities.token_level else WINDOW // 3)
    )
    answer = await _generation(backend, prompt, max_tokens=400)
    assert prompt.tokens + answer.usage.completion_tokens <= WINDOW


async def test_a_json_constraint_is_obeyed(backend: Backend) -> None:
    assert "json_schema" in backend.capabilities.constraints
    prompt = await _prompt(backend, "Tell me something about the sea.")
    sampling = Sampling(max_tokens=150)
    constraint = Constraint(json_schema=SCHEMA)
    items = [item async for item in backend.generate(prompt, sampling, constraint)]
    last = items[-1]
    assert isinstance(last, Generation)
    assert last.finish_reason is FinishReason.STOP
    found = json.loads(last.text)
    assert set(found) == set(SCHEMA["properties"])
    assert found["stance"] in ("for", "against")
    assert len(found["note"]) <= 40


async def test_a_schema_that_cannot_be_compiled_costs_one_request_and_no_engine(
    backend: Backend,
) -> None:
    prompt = await _prompt(backend, "Say a word.")
    broken = Constraint(json_schema={"$ref": "#/definitions/nothing"})
    # Refusing is right; llama.cpp's in-process server answers freely, which is noticed elsewhere.
    with suppress(BackendResponseError):
        async for _ in backend.generate(prompt, Sampling(max_tokens=4), broken):
            pass
    assert (await _generation(backend, prompt, max_tokens=4)).text


async def test_a_closed_stream_frees_its_slot(backend: Backend) -> None:
    prompt = await _prompt(backend, "Count as far as you can.")
    stream = backend.generate(prompt, Sampling(max_tokens=200), affinity="closed")
    async for item in stream:
        if isinstance(item, Delta) and item.text:
            break
    await stream.aclose()  # type: ignore[attr-defined]  # an async generator behind the Protocol
    async with asyncio.timeout(30):
        assert (await _generation(backend, prompt, "closed", max_tokens=2)).text


async def test_a_cancelled_task_frees_its_slot(backend: Backend) -> None:
    prompt = await _prompt(backend, "Count as far as you can.")
    begun = asyncio.Event()

    async def consume() -> None:
        async for _ in backend.generate(prompt, Sampling(max_tokens=200), affinity="task"):
            begun.set()
            await asyncio.sleep(0)

    task = asyncio.create_task(consume())
    await begun.wait()
    task.cancel()
    await asyncio.gather(task, return_exceptions=True)
    async with asyncio.timeout(30):
        assert (await _generation(backend, prompt, "task", max_tokens=2)).text


async def test_more_requests_than_slots_are_all_answered_for_themselves(backend: Backend) -> None:
    words = ["apple", "river", "stone", "cloud"]
    prompts = [await _prompt(backend, f"{word} " * 12 + f"Say {word}.") for word in words]
    alone = [(await _generation(backend, p, w)).text for p, w in zip(prompts, words, strict=True)]
    async with asyncio.timeout(120):
        together = await asyncio.gather(
            *(_generation(backend, p, w) for p, w in zip(prompts, words, strict=True))
        )
    for text, answer, prompt in zip(alone, together, prompts, strict=True):
        if backend.capabilities.token_level:
            assert answer.usage.prompt_tokens == prompt.tokens
        assert answer.text.split()[:1] == text.split()[:1]


async def test_a_conversation_that_ends_with_the_assistant_is_left_open(backend: Backend) -> None:
    needs(backend, "token_level")
    turns = [
        Message(role="user", content="Count."),
        Message(role="assistant", content="One, two, three,"),
    ]
    prompt = await backend.prepare(turns)
    assert prompt.text.endswith("One, two, three,")
    assert prompt.messages == tuple(turns)


async def test_an_answer_that_is_begun_is_gone_on_with_word_by_word(backend: Backend) -> None:
    turns = [Message(role="user", content="Count.")]
    if not backend.capabilities.token_level:
        with pytest.raises(BackendError, match="begun"):
            await backend.prepare(turns, begun="One, two,")
        return
    bare = await backend.prepare(turns)
    begun = await backend.prepare(turns, begun="One, two,")
    assert begun.text == bare.text + "One, two,"
    assert begun.token_ids[: bare.tokens] == bare.token_ids


async def test_a_turn_that_follows_keeps_the_prefix(backend: Backend) -> None:
    needs(backend, "token_level")
    turns = [Message(role="user", content="Is it so?"), Message(role="assistant", content="Yes")]
    before = await backend.prepare(turns[:1])
    after = await backend.prepare([*turns, Message(role="user", content="Why?")])
    assert after.token_ids[: before.tokens] == before.token_ids


async def test_the_window_is_the_one_asked_for(backend: Backend) -> None:
    assert backend.capabilities.window == WINDOW
    assert backend.capabilities.slots == {"llama_cpp_python": 1, "pool": 4}.get(backend.name, 2)
