"""What an engine promises is believed only once it was seen, and looked at again in a run."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from pathlib import Path

import pytest

from offline_judge.backends.llama_cpp import LlamaCppBackend
from offline_judge.backends.options import EngineOptions
from offline_judge.backends.probe import tried
from offline_judge.backends.script import Fault, ScriptOptions
from offline_judge.backends.scripted import ScriptedBackend
from offline_judge.domain.message import Message, Prompt
from offline_judge.errors import BackendCrashedError, BackendError, BackendStartError


async def test_a_constraint_that_is_ignored_is_no_capability() -> None:
    assert (await tried(ScriptedBackend())).constraints == ("json_schema",)
    deaf = ScriptedBackend(ScriptOptions(faults=(Fault(kind="unconstrained", times=0),)))
    assert (await tried(deaf)).constraints == ()


async def test_a_seed_that_is_ignored_is_no_capability() -> None:
    assert (await tried(ScriptedBackend())).seed
    drawn = iter(range(100))
    moody = ScriptedBackend(respond=lambda *_: f"word {next(drawn)}")
    assert not (await tried(moody)).seed


async def test_a_template_without_a_switch_has_none() -> None:
    assert not (await tried(ScriptedBackend())).thinking_switch


class _Switched(ScriptedBackend):
    async def prepare(self, messages: Sequence[Message], *, thinking: bool = False) -> Prompt:
        return await super().prepare([Message(role="user", content=f"thinking {thinking}")])


async def test_a_template_with_a_switch_is_noticed() -> None:
    assert (await tried(_Switched())).thinking_switch


async def _after_a_check_that(
    found: BackendError | None, monkeypatch: pytest.MonkeyPatch
) -> LlamaCppBackend:
    """A backend that is due for a check of mix-ups, and has had it."""
    backend = LlamaCppBackend(EngineOptions(Path("none"), "none", slots=2))
    ran = asyncio.Event()

    async def check() -> None:
        ran.set()
        if found is not None:
            raise found

    monkeypatch.setattr(backend, "check_mix_ups", check)
    backend._requests.finished = 200
    backend._check_in_time()
    await ran.wait()
    await asyncio.sleep(0)
    return backend


async def test_a_mix_up_that_a_check_finds_ends_all_further_requests(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    backend = await _after_a_check_that(BackendStartError("mixed"), monkeypatch)
    for _ in range(2):
        with pytest.raises(BackendStartError, match="mixed"):
            backend._raise_mix_up()


async def test_a_check_that_a_crash_cut_short_is_forgotten(monkeypatch: pytest.MonkeyPatch) -> None:
    for found in (None, BackendCrashedError("gone")):
        backend = await _after_a_check_that(found, monkeypatch)
        backend._raise_mix_up()
        assert backend._check is None


async def test_no_check_is_made_before_its_time() -> None:
    backend = LlamaCppBackend(EngineOptions(Path("none"), "none", slots=2))
    backend._requests.finished = 199
    backend._check_in_time()
    assert backend._check is None
