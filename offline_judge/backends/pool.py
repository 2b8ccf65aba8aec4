"""Several servers of one model as one backend; a dead one is left out until it is back."""

from __future__ import annotations

import asyncio
from collections import Counter, OrderedDict
from collections.abc import AsyncIterator, Awaitable, Callable, Sequence
from contextlib import aclosing, asynccontextmanager, suppress
from dataclasses import dataclass, field
from typing import ClassVar, TypeVar

from offline_judge.domain.capability import EngineFacts
from offline_judge.domain.message import (
    Capabilities,
    Constraint,
    Delta,
    Generation,
    Label,
    Labels,
    Message,
    Prompt,
    Sampling,
)
from offline_judge.errors import BackendCrashedError, BackendError, BackendStartError
from offline_judge.protocols import Backend, StartListener

T = TypeVar("T")

_REMEMBERED = 4096
_FIRST_LOOK_S = 0.5
_LONGEST_LOOK_S = 30.0
_TRIES_OF_ALL = 8
_TURNS = (Message(role="user", content="Say a word."),)


@dataclass
class Member:
    """One server, how busy it is, and whether it is up."""

    backend: Backend
    name: str
    up: bool = True
    busy: int = 0
    tries: int = 0
    looking: asyncio.Task[None] | None = field(default=None, repr=False)

    @property
    def free(self) -> int:
        """Requests it could take at once."""
        return self.backend.capabilities.slots - self.busy if self.up else 0


class PoolBackend:
    """Requests of one lane keep to one server, for its prefix cache, while it has a free slot.

    Args:
        backends: Not started, of one kind and model.
        names: What each is called in messages, such as its address.
        look_s: Seconds until a dead one is looked at again; doubles up to half a minute.
    """

    name: ClassVar[str] = "pool"

    def __init__(
        self, backends: Sequence[Backend], names: Sequence[str], *, look_s: float = _FIRST_LOOK_S
    ) -> None:
        self.members = [Member(b, name) for b, name in zip(backends, names, strict=True)]
        self._look_s = look_s
        self._homes: OrderedDict[str, Member] = OrderedDict()
        self._changed = asyncio.Condition()
        self._capabilities: Capabilities | None = None
        self._listener: StartListener = _silent

    @property
    def capabilities(self) -> Capabilities:
        """What all of them do; slots are those of all together."""
        assert self._capabilities is not None, "read before `start`"
        return self._capabilities

    @property
    def facts(self) -> EngineFacts:
        """Of those that are up: their versions, and what is to be known of any."""
        found = [member.backend.facts for member in self.members if member.up]
        return EngineFacts(
            version=", ".join(dict.fromkeys(one.version for one in found if one.version)),
            notes=tuple(dict.fromkeys(note for one in found for note in one.notes)),
        )

    async def start(self, listener: StartListener) -> None:
        """Start all; those that are not there are left out and looked at again.

        Raises:
            BackendStartError: none is there, or they differ in what must be alike.
        """
        self._listener = listener
        found = await asyncio.gather(
            *(member.backend.start(self._hearing(member)) for member in self.members),
            return_exceptions=True,
        )
        problems = []
        for member, problem in zip(self.members, found, strict=True):
            if isinstance(problem, BackendError):
                problems.append(problem)
                self._left_out(member, str(problem))
            elif problem is not None:
                await self.close()
                raise problem
        if len(problems) == len(self.members):
            await self.close()
            raise problems[0]
        try:
            self._capabilities = await self._common()
        except BaseException:
            await self.close()
            raise
        up = sum(member.up for member in self.members)
        listener("ready", f"{up} of {len(self.members)} servers, {self.capabilities.slots} slots")

    async def close(self) -> None:
        """Let go of all. Safe to call twice."""
        tasks = [member.looking for member in self.members if member.looking is not None]
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)
        await asyncio.gather(*(member.backend.close() for member in self.members))

    async def prepare(
        self, messages: Sequence[Message], *, thinking: bool = False, begun: str = ""
    ) -> Prompt:
        """As the first that is up prepares it."""
        while True:
            member = await self._any_up()
            try:
                return await member.backend.prepare(messages, thinking=thinking, begun=begun)
            except (BackendCrashedError, BackendStartError) as error:
                self._left_out(member, str(error))

    async def generate(
        self,
        prompt: Prompt,
        sampling: Sampling,
        constraint: Constraint | None = None,
        *,
        affinity: str = "",
    ) -> AsyncIterator[Delta | Generation]:
        """Stream from one of them; one that breaks off before its first word is replaced.

        Raises:
            BackendError: as the one that answered.
        """
        while True:
            said = False
            async with self._held(affinity) as member:
                stream = member.backend.generate(prompt, sampling, constraint, affinity=affinity)
                try:
                    async with aclosing(stream) as items:  # type: ignore[type-var]  # generators behind the Protocol
                        async for item in items:
                            said = said or not (isinstance(item, Delta) and not item.text)
                            yield item
                    return
                except (BackendCrashedError, BackendStartError) as error:
                    self._left_out(member, str(error))
                    if said:
                        raise

    async def label_probabilities(
        self, prompt: Prompt, labels: Sequence[Label], *, affinity: str = ""
    ) -> Labels:
        """Read by one of them; another one takes over where it breaks off.

        Raises:
            BackendError: as the one that answered.
        """
        return await self._by_one(
            affinity,
            lambda backend: backend.label_probabilities(prompt, labels, affinity=affinity),
        )

    async def _by_one(self, affinity: str, ask: Callable[[Backend], Awaitable[T]]) -> T:
        while True:
            async with self._held(affinity) as member:
                try:
                    return await ask(member.backend)
                except (BackendCrashedError, BackendStartError) as error:
                    self._left_out(member, str(error))

    @asynccontextmanager
    async def _held(self, affinity: str) -> AsyncIterator[Member]:
        member = await self._take(affinity.partition("/")[0])
        try:
            yield member
        finally:
            member.busy -= 1
            await self._tell()

    async def _take(self, lane: str) -> Member:
        """The lane's own server where it is free, else the one with most free slots."""
        async with self._changed:
            while True:
                home = self._homes.get(lane)
                if home is None or home.free <= 0:
                    lanes = Counter(id(member) for member in self._homes.values())
                    best = max(self.members, key=lambda one: (one.free, -lanes[id(one)]))
                    home = best if best.free > 0 else None
                if home is not None:
                    home.busy += 1
                    self._remember(lane, home)
                    return home
                self._check_hope()
                await self._changed.wait()

    def _remember(self, lane: str, member: Member) -> None:
        if lane:
            self._homes[lane] = member
            self._homes.move_to_end(lane)
            while len(self._homes) > _REMEMBERED:
                self._homes.popitem(last=False)

    async def _any_up(self) -> Member:
        async with self._changed:
            while True:
                up = [member for member in self.members if member.up]
                if up:
                    return min(up, key=lambda member: member.busy)
                self._check_hope()
                await self._changed.wait()

    def _hearing(self, member: Member) -> StartListener:
        """Passes on what a member says, with its name; that one is ready is not that all are."""

        def listener(phase: str, detail: str = "") -> None:
            said = f"{member.name}: {'ready, ' if phase == 'ready' else ''}{detail}"
            self._listener("server" if phase == "ready" else phase, said)

        return listener

    def _check_hope(self) -> None:
        """Give up once every server is down and was looked at often enough."""
        if all(not member.up and member.tries >= _TRIES_OF_ALL for member in self.members):
            names = ", ".join(member.name for member in self.members)
            raise BackendStartError(
                f"None of the servers came back: {names}",
                remedy="Start one again, then `offline-judge resume RUN`.",
            )

    def _left_out(self, member: Member, reason: str) -> None:
        if member.up:
            member.up, member.tries = False, 0
            self._listener("left out", f"{member.name}: {reason}")
        if member.looking is None or member.looking.done():
            member.looking = asyncio.create_task(self._look(member))

    async def _look(self, member: Member) -> None:
        """Look at a dead one again and again, until it answers."""
        pause_s = self._look_s
        while not member.up:
            await asyncio.sleep(pause_s)
            pause_s = min(2 * pause_s, _LONGEST_LOOK_S)
            member.tries += 1
            # What it says meanwhile was told when it was left out.
            with suppress(BackendError):
                await self._greet(member)
                member.up = True
                self._listener("back", member.name)
            await self._tell()

    async def _greet(self, member: Member) -> None:
        """Have it answer something; one that never came up is started first.

        Raises:
            BackendError: it does not, or is not what the others are.
        """
        try:
            prompt = await member.backend.prepare(_TURNS)
        except (AssertionError, BackendCrashedError):
            await member.backend.start(self._hearing(member))
            prompt = await member.backend.prepare(_TURNS)
        others = [one for one in self.members if one.up and one is not member]
        if others and prompt.token_ids != (await others[0].backend.prepare(_TURNS)).token_ids:
            raise BackendStartError(f"{member.name} renders or counts otherwise than the others")

    async def _tell(self) -> None:
        async with self._changed:
            self._changed.notify_all()

    async def _common(self) -> Capabilities:
        """What those that are up have in common.

        Raises:
            BackendStartError: one gives label probabilities and another does not, or they make
                other tokens of the same turns: their answers would be mixed in one figure.
        """
        up = [member for member in self.members if member.up]
        told = [member.backend.capabilities for member in up]
        for flag in ("token_level", "label_probabilities"):
            if len({getattr(one, flag) for one in told}) > 1:
                lacking = [m.name for m in up if not getattr(m.backend.capabilities, flag)]
                raise BackendStartError(
                    f"The servers differ: {', '.join(lacking)} has no {flag.replace('_', ' ')}, "
                    "and two ways of judging must not be mixed.",
                    remedy="Leave it out, or give all of them the same version.",
                )
        prompts = [await member.backend.prepare(_TURNS) for member in up]
        for member, prompt in zip(up, prompts, strict=True):
            if prompt.token_ids != prompts[0].token_ids:
                raise BackendStartError(
                    f"{member.name} makes other tokens of the same turns than {up[0].name}: they "
                    "have different models or templates."
                )
        first = told[0]
        return first.model_copy(
            update={
                "window": min(one.window for one in told),
                "slots": sum(one.slots for one in told),
                "constraints": tuple(
                    kind for kind in first.constraints if all(kind in o.constraints for o in told)
                ),
                "seed": all(one.seed for one in told),
                "reports_cached_tokens": all(one.reports_cached_tokens for one in told),
                "thinking_modes": tuple(
                    mode
                    for mode in first.thinking_modes
                    if all(mode in one.thinking_modes for one in told)
                ),
            }
        )


def _silent(phase: str, detail: str = "") -> None:
    """Stands in until `start` brings a listener, and where it has heard enough."""
