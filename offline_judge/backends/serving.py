"""What a dialect needs of whatever keeps its server up: a child of ours, or somebody else's."""

from __future__ import annotations

from typing import Protocol

from offline_judge.backends.options import EngineOptions
from offline_judge.backends.process import ChildSpec
from offline_judge.backends.wire import Wire
from offline_judge.errors import BackendCrashedError
from offline_judge.protocols import StartListener


class Serving(Protocol):
    """A server that answers, is brought back where that can be done, and is let go of."""

    @property
    def options(self) -> EngineOptions:
        """What it was started with, or is asked with."""

    @property
    def version(self) -> str:
        """As it tells; empty before the start."""

    @property
    def address(self) -> str:
        """Where it listens; empty before the start."""

    @property
    def api_key(self) -> str:
        """Its key."""

    @property
    def start_s(self) -> float:
        """Seconds the last start took."""

    @property
    def restarts(self) -> int:
        """Times it was started again, or came back."""

    @property
    def offloaded(self) -> tuple[int, int] | None:
        """Layers on a GPU, of how many; None where it does not tell."""

    async def start(self, listener: StartListener) -> None:
        """Bring it up, or look whether it is up.

        Raises:
            BackendStartError: it is not.
        """

    async def wire(self) -> Wire:
        """A wire to a server that is up, once it is.

        Raises:
            BackendStartError: it failed too often without one finished request between.
        """

    def succeeded(self) -> None:
        """A request was finished: earlier failures no longer count."""

    async def crashed(self, error: BackendCrashedError, wire: Wire) -> BackendCrashedError:
        """Take note of a broken connection, and give the error to raise."""

    async def restart(self, reason: str) -> None:
        """Begin it anew, where it is ours."""

    async def close(self) -> None:
        """Let go of it. Safe to call twice."""


class Launcher(Protocol):
    """How the child of one kind of engine is begun."""

    def spec(self, options: EngineOptions, api_key: str, connections: int) -> ChildSpec:
        """What to run. The child's last phase, `ready`, carries `version` and `address`.

        Raises:
            BackendStartError: it cannot even be tried.
        """

    def amended(self, options: EngineOptions, log: tuple[str, ...]) -> tuple[EngineOptions, str]:
        """What may start after a start that failed with this log, and why.

        The options come back unchanged where nothing can be done.
        """
