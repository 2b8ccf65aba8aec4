"""Owns the other end of a run's control socket: watch, pause, drain or cancel it from outside."""

from __future__ import annotations

import json
import os
import socket
from collections.abc import Iterator
from contextlib import suppress
from typing import Any

from offline_judge.errors import RunNotFoundError, StorageError
from offline_judge.runs.lines import encode
from offline_judge.runs.socket_path import check_own_directory, socket_path

_ANSWER_S = 10.0


class ControlClient:
    """Speaks to a running run; opens a connection for each call.

    Args:
        runtime_path: Where sockets lie.
        run_id: The whole id of the run.
        answer_s: Seconds to wait for an answer.
    """

    def __init__(
        self, runtime_path: os.PathLike[str], run_id: str, *, answer_s: float = _ANSWER_S
    ) -> None:
        self._path = socket_path(runtime_path, run_id)
        self._run_id = run_id
        self._answer_s = answer_s

    def drain(self) -> None:
        """Let the run finish the samples in flight and end.

        Raises:
            RunNotFoundError: the run is not running.
            StorageError: it does not answer, or refuses.
        """
        self.ask("drain")

    def cancel(self) -> None:
        """Let the run give up the samples in flight and end; raises as `drain`."""
        self.ask("cancel")

    def pause(self) -> None:
        """Let nothing new begin; raises as `drain`."""
        self.ask("pause")

    def go_on(self) -> None:
        """End a pause; raises as `drain`."""
        self.ask("resume")

    def status(self) -> dict[str, Any]:
        """What the run says of itself; raises as `drain`."""
        return self.ask("status")

    def ask(self, command: str) -> dict[str, Any]:
        """Send one command and return the fields of its answer; raises as `drain`."""
        with self._open(command) as messages:
            return messages.first

    def subscribe(self) -> Messages:
        """What happens from now on, one message each, until the run ends.

        Raises:
            RunNotFoundError: the run is not running.
            StorageError: it does not answer.
        """
        return self._open("subscribe")

    def _open(self, command: str) -> Messages:
        connection = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
        try:
            connection.settimeout(self._answer_s)
            check_own_directory(self._path.parent)
            connection.connect(str(self._path))
            connection.sendall(encode({"cmd": command}))
            return Messages(connection, self._run_id)
        except (FileNotFoundError, ConnectionRefusedError):
            connection.close()
            raise RunNotFoundError(
                f"Run {self._run_id} is not running.",
                remedy=f"To go on with it: offline-judge resume {self._run_id}",
            ) from None
        except OSError as error:
            connection.close()
            raise StorageError(
                f"Run {self._run_id} does not answer: {error.strerror or error}",
                where=str(self._path),
            ) from error
        except BaseException:
            connection.close()
            raise


class Messages(Iterator[dict[str, Any]]):
    """A run's messages as they come, each with one key, as `ControlServer` tells.

    Ends with the run. Use as a context manager, or close it.

    Attributes:
        first: The fields of the answer to the command.
    """

    def __init__(self, connection: socket.socket, run_id: str) -> None:
        self._connection = connection
        self._run_id = run_id
        self._lines = connection.makefile("rb")
        try:
            self.first = self._read()
            if self.first.pop("ok", None) is None:
                raise StorageError(f"Run {run_id} ended before it answered.")
            # From here on there is news when there is news.
            connection.settimeout(None)
        except BaseException:
            self._lines.close()
            raise

    def __next__(self) -> dict[str, Any]:
        """The next message.

        Raises:
            StorageError: the run dropped this watcher because it lagged behind.
        """
        message = self._read()
        if not message:
            raise StopIteration
        return message

    def interrupt(self) -> None:
        """End the iteration; unlike `close`, from any thread, also while another one waits."""
        with suppress(OSError):
            self._connection.shutdown(socket.SHUT_RDWR)

    def close(self) -> None:
        """Leave. Safe to call twice."""
        self._lines.close()
        self._connection.close()

    def __enter__(self) -> Messages:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def _read(self) -> dict[str, Any]:
        """The next line's object; empty where the run has gone."""
        try:
            line = self._lines.readline()
        except ConnectionError:
            return {}
        if not line.endswith(b"\n"):
            return {}
        try:
            message = json.loads(line)
        except ValueError:
            message = None
        if not isinstance(message, dict):
            raise StorageError(f"Run {self._run_id} answered with something that is not JSON.")
        if message.get("ok") is False:
            raise StorageError(f"Run {self._run_id}: {message.get('error')}")
        return message
