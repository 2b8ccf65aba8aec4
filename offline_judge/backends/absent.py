"""What stands in the engine's place where a method asks no judge: nothing is loaded or started."""

from __future__ import annotations

from collections.abc import AsyncIterator, Sequence
from typing import ClassVar

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
from offline_judge.errors import BackendError
from offline_judge.protocols import Backend, StartListener


class AbsentBackend:
    """An engine that is not there; whoever asks it is told so."""

    name: ClassVar[str] = "none"

    @property
    def capabilities(self) -> Capabilities:
        """None at all."""
        return Capabilities(window=0, slots=0, token_level=False, label_probabilities=False)

    @property
    def facts(self) -> EngineFacts:
        """None."""
        return EngineFacts()

    async def start(self, listener: StartListener) -> None:
        """Nothing to start."""

    async def close(self) -> None:
        """Nothing to end."""

    async def prepare(
        self, messages: Sequence[Message], *, thinking: bool = False, begun: str = ""
    ) -> Prompt:
        """Refuse.

        Raises:
            BackendError: always.
        """
        del messages, thinking, begun
        raise _refusal()

    async def generate(
        self,
        prompt: Prompt,
        sampling: Sampling,
        constraint: Constraint | None = None,
        *,
        affinity: str = "",
    ) -> AsyncIterator[Delta | Generation]:
        """Refuse.

        Raises:
            BackendError: always.
        """
        del prompt, sampling, constraint, affinity
        raise _refusal()
        yield Delta()  # makes this a stream, as the protocol has it

    async def label_probabilities(
        self, prompt: Prompt, labels: Sequence[Label], *, affinity: str = ""
    ) -> Labels:
        """Refuse.

        Raises:
            BackendError: always.
        """
        del prompt, labels, affinity
        raise _refusal()


def _refusal() -> BackendError:
    return BackendError("The method names no stages, so it has no judge to ask.")


ABSENT: type[Backend] = AbsentBackend
