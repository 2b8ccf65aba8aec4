"""The real engine as a process: it dies with its run, comes back, and is closed to strangers."""

from __future__ import annotations

import asyncio
import os
import signal
import sys
import time
from collections.abc import AsyncIterator
from pathlib import Path

import httpx
import pytest
import pytest_asyncio

from offline_judge.backends.engine import Engine
from offline_judge.backends.llama_cpp import LlamaCppBackend
from offline_judge.backends.options import EngineOptions
from offline_judge.domain.message import (
    Delta,
    FinishReason,
    Generation,
    Label,
    Message,
    Prompt,
    Sampling,
)
from offline_judge.errors import BackendCrashedError, BackendResponseError, BackendStartError


def engine_of(backend: LlamaCppBackend) -> Engine:
    assert isinstance(backend.engine, Engine)
    return backend.engine


pytestmark = [pytest.mark.engine, pytest.mark.asyncio(loop_scope="module")]

ROOT = Path(__file__).resolve().parents[2]
LONG_PROMPT = 1500


class Phases:
    """A start listener that remembers."""

    def __init__(self) -> None:
        self.seen: list[tuple[str, str]] = []

    def __call__(self, phase: str, detail: str = "") -> None:
        self.seen.append((phase, detail))


@pytest.fixture(scope="module")
def phases() -> Phases:
    return Phases()


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def backend(small_weights: Path, phases: Phases) -> AsyncIterator[LlamaCppBackend]:
    options = EngineOptions(
        small_weights, "small", window=2048, slots=2, batch=32, parameters_b=0.135, stall_s=60.0
    )
    made = LlamaCppBackend(options)
    await made.start(phases)
    yield made
    await made.close()


async def _prompt(backend: LlamaCppBackend, text: str) -> Prompt:
    return await backend.prepare([Message(role="user", content=text)])


async def _generation(
    backend: LlamaCppBackend, prompt: Prompt, sampling: Sampling, affinity: str = ""
) -> Generation:
    items = [item async for item in backend.generate(prompt, sampling, affinity=affinity)]
    assert isinstance(items[-1], Generation)
    return items[-1]


def _pid(backend: LlamaCppBackend) -> int:
    child = engine_of(backend).child
    assert child is not None
    assert child.pid is not None
    return child.pid


def _proc(backend: LlamaCppBackend, place: str) -> bytes:
    return Path(f"/proc/{_pid(backend)}/{place}").read_bytes()


def _lives(pid: int) -> bool:
    try:
        state = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0]
    except (FileNotFoundError, ProcessLookupError):
        return False
    # A zombie has ended; whether somebody has read its status is not ours to test.
    return state not in "ZX"


async def _gone_within(pid: int, seconds: float) -> bool:
    deadline = time.monotonic() + seconds
    # Not our child, so there is no event to await.
    while _lives(pid):
        if time.monotonic() > deadline:
            return False
        await asyncio.sleep(0.02)
    return True


async def test_start_up_tells_its_phases(backend: LlamaCppBackend, phases: Phases) -> None:
    names = [phase for phase, _ in phases.seen[:5]]
    assert names == ["spawn", "import", "load", "probe", "ready"]
    assert "2 slots of up to 2048 tokens" in phases.seen[4][1]
    assert backend.engine.version.startswith("20")
    assert backend.engine.start_s > 0


async def test_a_cancel_while_the_prompt_is_read_stops_the_reading(
    backend: LlamaCppBackend,
) -> None:
    text = "".join(f" The river number {at} reaches the sea." for at in range(150))
    prompt = await _prompt(backend, text)
    assert prompt.tokens >= LONG_PROMPT
    stream = backend.generate(prompt, Sampling(max_tokens=100), affinity="long")
    read = 0
    while read <= 64:
        item = await anext(stream)
        assert isinstance(item, Delta)
        read = item.prompt_read or 0
    assert read < prompt.tokens / 2
    await stream.aclose()  # type: ignore[attr-defined]  # an async generator behind the Protocol
    states = await backend.slot_states()
    assert [state["is_processing"] for state in states] == [False, False]
    again = backend.generate(prompt, Sampling(max_tokens=1), affinity="long")
    first = await anext(again)
    assert isinstance(first, Delta)
    assert first.prompt_read is not None
    assert first.prompt_read < prompt.tokens / 2, "the rest was read after the cancel"
    await again.aclose()  # type: ignore[attr-defined]  # as above
    assert backend.engine.restarts == 0


async def test_a_second_cancel_does_not_leave_the_slot_behind(backend: LlamaCppBackend) -> None:
    prompt = await _prompt(backend, "Tell a very long story.")
    begun = asyncio.Event()

    async def consume() -> None:
        async for _ in backend.generate(prompt, Sampling(max_tokens=500), affinity="twice"):
            begun.set()

    task = asyncio.create_task(consume())
    await begun.wait()
    task.cancel()
    await asyncio.sleep(0)
    task.cancel()
    await asyncio.gather(task, return_exceptions=True)
    async with asyncio.timeout(60):
        await _generation(backend, prompt, Sampling(max_tokens=1), "twice")
    assert backend.engine.restarts == 0


async def test_forced_decoding_finds_a_likely_label_of_several_tokens(
    backend: LlamaCppBackend,
) -> None:
    prompt = await backend.prepare(
        [
            Message(role="user", content="Count to ten."),
            Message(role="assistant", content="1 one, 2 two, 3 three, 4 four, 5"),
        ]
    )
    labels = (Label(name="right", text="five, 6 six"), Label(name="wrong", text="green houses"))
    found = await backend.label_probabilities(prompt, labels, affinity="forced")
    assert found.masses["right"] > 0.3
    assert found.masses["wrong"] < 0.01


async def test_a_runaway_answer_is_cut_and_counts_as_too_long(backend: LlamaCppBackend) -> None:
    prompt = await backend.prepare(
        [
            Message(role="user", content="Repeat."),
            Message(role="assistant", content="na na na na na na na na na na na na na na na na"),
        ]
    )
    answer = await _generation(backend, prompt, Sampling(max_tokens=600), "runaway")
    assert answer.finish_reason is FinishReason.LENGTH
    assert 96 <= len(answer.token_ids) < 600
    assert backend.engine.restarts == 0


async def test_mix_up_checks_keep_the_prefix_caches(
    backend: LlamaCppBackend, monkeypatch: pytest.MonkeyPatch
) -> None:
    prompt = await _prompt(backend, "Is the sea salt? " * 20)
    await _generation(backend, prompt, Sampling(max_tokens=1), "kept")
    await backend.check_mix_ups()
    again = await _generation(backend, prompt, Sampling(max_tokens=1), "kept")
    assert again.usage.cached_tokens >= prompt.tokens - 2


async def test_a_wrong_key_is_refused(backend: LlamaCppBackend) -> None:
    async with httpx.AsyncClient(trust_env=False, base_url=backend.engine.address) as client:
        wrong = {"Authorization": "Bearer guess"}
        for headers in ({}, wrong):
            answer = await client.post("/completion", json={"prompt": "x"}, headers=headers)
            assert answer.status_code == 401


async def test_a_web_page_of_another_origin_is_not_let_in(backend: LlamaCppBackend) -> None:
    async with httpx.AsyncClient(trust_env=False, base_url=backend.engine.address) as client:
        origin = {"Origin": "http://evil.example", "Access-Control-Request-Method": "POST"}
        answer = await client.options("/completion", headers=origin)
        for header in ("origin", "credentials", "methods", "headers"):
            assert answer.headers.get(f"access-control-allow-{header}", "") in ("", "false")
        assert (await client.get("/")).status_code == 404


@pytest.mark.skipif(sys.platform != "linux", reason="reads /proc")
async def test_it_listens_on_loopback_only(backend: LlamaCppBackend) -> None:
    port = int(backend.engine.address.rpartition(":")[2])
    listening = [
        fields[1]
        for table in ("tcp", "tcp6")
        for line in _proc(backend, f"net/{table}").decode().splitlines()[1:]
        if (fields := line.split())[3] == "0A" and int(fields[1].rpartition(":")[2], 16) == port
    ]
    assert [address.partition(":")[0] for address in listening] == ["0100007F"]


@pytest.mark.skipif(sys.platform != "linux", reason="reads /proc")
async def test_the_key_shows_in_no_process_list(backend: LlamaCppBackend) -> None:
    key = backend.engine.api_key
    assert len(key) >= 32
    for place in ("cmdline", "environ"):
        assert key.encode() not in _proc(backend, place)


async def test_a_killed_engine_is_an_error_and_then_up_again(
    backend: LlamaCppBackend, phases: Phases
) -> None:
    prompt = await _prompt(backend, "Tell a very long story.")
    before = _pid(backend)
    stream = backend.generate(prompt, Sampling(max_tokens=1000, temperature=1.0), affinity="x")
    await anext(stream)
    os.kill(before, signal.SIGKILL)
    with pytest.raises(BackendCrashedError, match="SIGKILL"):
        async for _ in stream:
            pass
    answer = await _generation(backend, prompt, Sampling(max_tokens=2), "x")
    assert answer.text
    assert _pid(backend) != before
    assert backend.engine.restarts == 1
    assert "restart" in [phase for phase, _ in phases.seen]


async def test_many_waiters_share_one_restart(backend: LlamaCppBackend) -> None:
    prompt = await _prompt(backend, "Name a city.")
    restarts = backend.engine.restarts
    os.kill(_pid(backend), signal.SIGKILL)
    await engine_of(backend).child.wait()  # type: ignore[union-attr]  # it was there a line ago
    answers = await asyncio.gather(
        *(_generation(backend, prompt, Sampling(max_tokens=1), f"{at}") for at in range(4))
    )
    assert len(answers) == 4
    assert backend.engine.restarts == restarts + 1


async def test_a_prompt_that_kills_the_engine_twice_is_not_sent_again(
    backend: LlamaCppBackend,
) -> None:
    prompt = await _prompt(backend, "A prompt of death.")
    for _ in range(2):
        stream = backend.generate(prompt, Sampling(max_tokens=1000, temperature=1.0))
        await anext(stream)
        os.kill(_pid(backend), signal.SIGKILL)
        with pytest.raises(BackendCrashedError):
            async for _ in stream:
                pass
    with pytest.raises(BackendResponseError, match="not sent again"):
        await _generation(backend, prompt, Sampling(max_tokens=1))
    other = await _prompt(backend, "A harmless prompt.")
    assert (await _generation(backend, other, Sampling(max_tokens=1))).token_ids


async def test_a_silent_engine_is_killed_and_started_again(backend: LlamaCppBackend) -> None:
    prompt = await _prompt(backend, "Tell a very long story.")
    stream = backend.generate(prompt, Sampling(max_tokens=400, temperature=1.0))
    await anext(stream)
    os.kill(_pid(backend), signal.SIGSTOP)
    patience, engine_of(backend).stall_s = engine_of(backend).stall_s, 1.0
    async with asyncio.timeout(60):
        with pytest.raises(BackendCrashedError, match="no sign of life"):
            async for _ in stream:
                pass
    engine_of(backend).stall_s = patience
    assert (await _generation(backend, prompt, Sampling(max_tokens=1))).token_ids


async def test_close_leaves_no_engine(small_weights: Path) -> None:
    options = EngineOptions(small_weights, "small", window=512, parameters_b=0.135)
    backend = LlamaCppBackend(options)
    await backend.start(lambda phase, detail="": None)
    pid = _pid(backend)
    await backend.close()
    assert not _lives(pid)


@pytest.mark.skipif(sys.platform != "linux", reason="reads /proc")
async def test_no_engine_outlives_a_killed_run(small_weights: Path) -> None:
    parent = await asyncio.create_subprocess_exec(
        sys.executable,
        str(Path(__file__).with_name("parent_of_engine.py")),
        str(small_weights),
        stdout=asyncio.subprocess.PIPE,
        env={**os.environ, "PYTHONPATH": str(ROOT)},
    )
    assert parent.stdout is not None
    line = await asyncio.wait_for(parent.stdout.readline(), 120)
    pid = int(line)
    assert _lives(pid)
    parent.kill()
    await parent.wait()
    assert await _gone_within(pid, 5.0)


async def test_weights_that_cannot_be_read_are_told_in_the_engines_words(tmp_path: Path) -> None:
    path = tmp_path / "broken.gguf"
    path.write_bytes(b"this is no model")
    backend = LlamaCppBackend(EngineOptions(path, "broken"))
    with pytest.raises(BackendStartError, match="invalid magic characters"):
        await backend.start(lambda phase, detail="": None)
    child = engine_of(backend).child
    assert child is not None
    assert not child.alive
