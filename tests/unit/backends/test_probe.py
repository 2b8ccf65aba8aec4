"""What an engine promises is believed only once it was seen, and looked at again in a run."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence

import pytest

from offline_judge.backends.mixups import CALLS_BETWEEN_CHECKS, MixUpWatch
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
    async def prepare(
        self, messages: Sequence[Message], *, thinking: bool = False, begun: str = ""
    ) -> Prompt:
        return await super().prepare([Message(role="user", content=f"thinking {thinking}")])


async def test_a_template_with_a_switch_is_noticed() -> None:
    assert (await tried(_Switched())).thinking_switch


async def _after_a_check_that(found: BackendError | None) -> MixUpWatch:
    """A watch that was due for a check of mix-ups, and has had it."""
    ran = asyncio.Event()

    async def check() -> None:
        ran.set()
        if found is not None:
            raise found

    watch = MixUpWatch(check)
    watch.finished(CALLS_BETWEEN_CHECKS)
    await ran.wait()
    await asyncio.sleep(0)
    return watch


async def test_a_mix_up_that_a_check_finds_ends_all_further_requests() -> None:
    watch = await _after_a_check_that(BackendStartError("mixed"))
    with pytest.raises(BackendStartError, match="mixed"):
        watch.raise_found()
    with pytest.raises(BackendStartError, match="mixed"):
        watch.raise_found()
    await watch.close()


async def test_a_check_that_a_crash_cut_short_is_forgotten() -> None:
    for found in (None, BackendCrashedError("gone")):
        watch = await _after_a_check_that(found)
        watch.raise_found()
        watch.raise_found()


async def test_a_check_is_made_every_two_hundred_calls_and_not_before() -> None:
    checks = 0

    async def check() -> None:
        nonlocal checks
        checks += 1

    watch = MixUpWatch(check)
    for calls in range(1, 450):
        watch.finished(calls)
        await asyncio.sleep(0)
        watch.raise_found()
    assert checks == 2
