"""Starting the very process that the command line starts, apart from this one."""

from __future__ import annotations

import os
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from tempfile import NamedTemporaryFile

from offline_judge import wiring
from offline_judge.errors import InterruptedRunError, StartError, StorageError
from offline_judge.runs.atomic import storage_error
from offline_judge.runs.store import MANIFEST
from offline_judge.settings import Settings, variable

Waiting = Callable[[str], bool]
"""Told the last line that the new process said; false gives the start up."""

_POLL_S = 0.05
_END_S = 10.0
_SAID = 64 * 1024


@dataclass(frozen=True)
class Started:
    """A run that goes on in a process of its own.

    Attributes:
        run_id: The run.
        pid: Its process.
        log: What the process says, stdout and stderr.
    """

    run_id: str
    pid: int
    log: Path


def start_new(arguments: Sequence[str], settings: Settings, waiting: Waiting) -> Started:
    """Start `offline-judge` with arguments that begin a new run, and wait until there is one.

    Raises:
        StartError: the process ended before there was one; with its own words and exit code.
        InterruptedRunError: the start was given up.
        StorageError: the log cannot be written.
    """
    run_id = wiring.run_store(settings).new_id()
    begun = settings.runs_path / run_id / MANIFEST
    child = _Child([*arguments, "--run-id", run_id], run_id, settings)
    return child.wait_for(lambda _pid: begun.is_file(), waiting)


def start_again(
    run_id: str, arguments: Sequence[str], settings: Settings, waiting: Waiting
) -> Started:
    """Start `offline-judge` with arguments that take up a run, and wait until it has.

    Raises:
        RunNotFoundError: no run has this id.
        StartError: the process ended before it had; with its own words and exit code.
        InterruptedRunError: the start was given up.
        StorageError: the log cannot be written.
    """
    directory = wiring.run_store(settings).open(run_id)

    def taken(pid: int) -> bool:
        holder = directory.holder()
        return holder is not None and holder.pid == pid

    return _Child(arguments, directory.run_id, settings).wait_for(taken, waiting)


@contextmanager
def kept_text(text: str, settings: Settings) -> Iterator[Path]:
    """A text in a file that only its user may read, for as long as the block lasts.

    Raises:
        StorageError: it cannot be written.
    """
    folder = settings.cache_path / "starts"
    try:
        folder.mkdir(parents=True, exist_ok=True)
        with NamedTemporaryFile("wb", dir=folder, suffix=".txt") as file:
            file.write(text.encode("utf-8", "replace"))
            file.flush()
            yield Path(file.name)
    except OSError as error:
        raise storage_error(error, folder) from error


class _Child:
    """A process in a session of its own, so that no terminal's end reaches it."""

    def __init__(self, arguments: Sequence[str], run_id: str, settings: Settings) -> None:
        self._run_id = run_id
        self._log = settings.cache_path / "starts" / f"{run_id}.log"
        try:
            self._log.parent.mkdir(parents=True, exist_ok=True)
            with self._log.open("wb") as log:
                self._process = subprocess.Popen(
                    [sys.executable, "-m", "offline_judge", *arguments],
                    stdin=subprocess.DEVNULL,
                    stdout=log,
                    stderr=subprocess.STDOUT,
                    start_new_session=True,
                    env=_environment(settings),
                )
        except OSError as error:
            raise storage_error(error, self._log) from error
        # Whoever started it collects it, however long it lasts, so that nothing dead is left over.
        threading.Thread(target=self._process.wait, name=f"run {run_id}", daemon=True).start()

    def wait_for(self, begun: Callable[[int], bool], waiting: Waiting) -> Started:
        while not begun(self._process.pid):
            if self._process.poll() is not None:
                # It may have begun and ended between two looks.
                if begun(self._process.pid) or self._process.returncode == 0:
                    break
                raise self._failed(self._process.returncode)
            if not waiting(self._last_line()):
                self._give_up()
                raise InterruptedRunError("The start was given up.", where=self._run_id)
            time.sleep(_POLL_S)
        return Started(self._run_id, self._process.pid, self._log)

    def _give_up(self) -> None:
        self._process.terminate()
        try:
            self._process.wait(_END_S)
        except subprocess.TimeoutExpired:
            self._process.kill()

    def _said(self) -> list[str]:
        try:
            with self._log.open("rb") as log:
                log.seek(max(0, self._log.stat().st_size - _SAID))
                return log.read().decode("utf-8", "replace").splitlines()
        except OSError as error:
            raise StorageError(f"Cannot read: {error.strerror}", where=str(self._log)) from error

    def _last_line(self) -> str:
        return next((line.strip() for line in reversed(self._said()) if line.strip()), "")

    def _failed(self, code: int) -> StartError:
        """What the process told of its end: message, place and remedy, a line each."""
        said = self._said()
        first = next((n for n, line in enumerate(said) if line.startswith("error: ")), None)
        if first is None:
            words = self._last_line() or "nothing"
            return StartError(
                f"The run's process ended with {code} and said: {words}",
                where=str(self._log),
                exit_code=code,
            )
        indented = [line.strip() for line in said[first + 1 :] if line.startswith("  ")]
        places = [line.removeprefix("at ") for line in indented if line.startswith("at ")]
        remedies = [line for line in indented if not line.startswith("at ")]
        return StartError(
            said[first].removeprefix("error: "),
            where=" ".join(places),
            remedy=" ".join(remedies),
            exit_code=code,
        )


def _environment(settings: Settings) -> dict[str, str]:
    """Variables of the new process: what was set by flags here has no other way to it."""
    flags = [name for name, origin in settings.origins.items() if origin == "flag"]
    given = {variable(name): str(getattr(settings, name)) for name in flags}
    return {**os.environ, **given, "NO_COLOR": "1"}
