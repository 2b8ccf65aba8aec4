"""A run of another process as it goes on, piece by piece."""

from __future__ import annotations

from collections.abc import Iterator
from types import TracebackType
from typing import Any

from pydantic import TypeAdapter, ValidationError

from offline_judge import wiring
from offline_judge.domain.events import parse_event
from offline_judge.domain.news import News, NewsKind
from offline_judge.domain.progress import Preflight, Progress, Slots, TokenDelta
from offline_judge.runs.control_client import ControlClient, Messages
from offline_judge.settings import Settings

_SHAPES: dict[NewsKind, TypeAdapter[Any]] = {
    "preflight": TypeAdapter(Preflight),
    "progress": TypeAdapter(Progress),
    "slots": TypeAdapter(Slots),
    "delta": TypeAdapter(TokenDelta),
}


class Watch(Iterator[News]):
    """News of one run, first as it stands, until it ends. Use as a context manager.

    Kinds and shapes of news that this program does not know are passed over.
    """

    def __init__(self, messages: Messages, run_id: str) -> None:
        self._messages = messages
        self.run_id = run_id

    def __next__(self) -> News:
        """The next piece.

        Raises:
            StorageError: the run dropped this watcher because it lagged behind.
        """
        while True:
            news = _news(next(self._messages))
            if news is not None:
                return news

    def stop(self) -> None:
        """End the iteration; from any thread, also while another one waits for the next piece."""
        self._messages.interrupt()

    def __enter__(self) -> Watch:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self._messages.close()


def watch(run_id: str, settings: Settings) -> Watch:
    """News of a run that goes on; an id that is begun like it will do.

    Raises:
        RunNotFoundError: there is no such run, or it does not run.
        StorageError: it does not answer.
    """
    run_id = wiring.run_store(settings).open(run_id).run_id
    return Watch(ControlClient(settings.runtime_path, run_id).subscribe(), run_id)


def _news(message: dict[str, Any]) -> News | None:
    try:
        if "event" in message:
            return News("event", event=parse_event(message["event"]))
        if "phase" in message:
            told = message["phase"]
            return News("phase", phase=str(told["phase"]), detail=str(told["detail"]))
        for kind, shape in _SHAPES.items():
            if kind in message:
                return News(kind, **{kind: shape.validate_python(message[kind])})
    except (ValidationError, TypeError, KeyError):
        return None
    return None
