"""Owns the folder of runs and what lies in each run's directory."""

from __future__ import annotations

import errno
import json
import os
import re
import shutil
from collections.abc import Iterator, Mapping
from contextlib import suppress
from pathlib import Path
from typing import TypeVar

from pydantic import BaseModel, ValidationError

from offline_judge.domain.events import AnyEvent
from offline_judge.domain.run import RunManifest, RunSummary
from offline_judge.errors import RunNotFoundError, StorageError, UsageError
from offline_judge.runs.atomic import storage_error, sync_directory, write_atomic
from offline_judge.runs.blobs import BlobStore
from offline_judge.runs.ids import find_run_id, is_run_id, new_run_id
from offline_judge.runs.index import RunIndex
from offline_judge.runs.lock import Holder, RunLock, lock_holder
from offline_judge.runs.reader import read_events, to_event
from offline_judge.runs.reducer import RunState, fold
from offline_judge.runs.writer import EventListener, TraceWriter

M = TypeVar("M", bound=BaseModel)

MANIFEST = "run.json"
RESULTS = "results.json"

_OWN_FILE = re.compile(r"(lock|run\.json|results\.json|(blobs|index)\.sqlite.*|events-.*)\Z")
_REMOVING = ".removing-"


class RunDirectory:
    """One run on disk. Holds nothing open; any number of processes may read it.

    Args:
        path: The directory, made by `RunStore.create`.
    """

    def __init__(self, path: Path) -> None:
        self.path = path

    @property
    def run_id(self) -> str:
        """The run's id."""
        return self.path.name

    def file(self, name: str) -> Path:
        """Where a file that `RunStore.create` was given lies."""
        return self.path / name

    def manifest(self) -> RunManifest:
        """What shapes the run's judgments.

        Raises:
            StorageError: run.json is damaged or of a program that this one does not know.
        """
        return _read_model(self.path / MANIFEST, RunManifest)

    def writer(self, listener: EventListener | None = None) -> TraceWriter:
        """Take the run's lock and open its trace; close the writer to let go.

        Args:
            listener: Its method `event` is told each event after it is recorded.

        Raises:
            RunLockedError: another process owns the run; names its pid.
            StorageError: the trace cannot be opened or its last line is damaged.
        """
        return TraceWriter(self.path, listener=listener)

    def events(self) -> Iterator[AnyEvent]:
        """All events so far, large texts put back; also while the run goes on.

        Raises:
            TraceError: a line is damaged, or names a text that is missing.
        """
        return read_events(self.path)

    def state(self) -> RunState:
        """The fold over all events, with `interrupted` told from `running` by the lock.

        Raises:
            TraceError: a line is damaged.
        """
        # Asked first: a run that ends in between is then complete, not "interrupted".
        live = self.holder() is not None
        return fold(read_events(self.path, texts=False), self.run_id, live=live)

    def sample_events(self, sample_id: str) -> list[AnyEvent]:
        """The events of one sample in order, large texts put back; empty for an unknown one.

        The empty id gives those that belong to no sample.

        Raises:
            TraceError: a line is damaged, or names a text that is missing.
        """
        lines = self.index().lines(sample_id)
        with BlobStore(self.path / "blobs.sqlite", readonly=True) as blobs:
            return [to_event(line.raw, blobs.get, path, line.number) for path, line in lines]

    def index(self) -> RunIndex:
        """What is known of single samples without reading the whole trace."""
        return RunIndex(self.path)

    def blob(self, name: str) -> str:
        """The large text, or source of a template, with this hash.

        Raises:
            StorageError: there is none, or it is damaged.
        """
        with BlobStore(self.path / "blobs.sqlite", readonly=True) as blobs:
            return blobs.get(name)

    def put_blob(self, text: str) -> str:
        """Keep a text durably; returns its hash. Where a writer is open, use its own `put_blob`.

        Raises:
            StorageError: it could not be kept.
        """
        with BlobStore(self.path / "blobs.sqlite") as blobs:
            name = blobs.put([text])[0]
            blobs.sync()
        return name

    def write_results(self, summary: RunSummary) -> None:
        """Replace results.json.

        Raises:
            StorageError: it could not be written; the old one is untouched.
        """
        write_atomic(self.path / RESULTS, _as_json(summary))

    def results(self) -> RunSummary | None:
        """What results.json says; None where there is none. `state().summary()` is the truth.

        Raises:
            StorageError: it is damaged.
        """
        path = self.path / RESULTS
        return _read_model(path, RunSummary) if path.exists() else None

    def holder(self) -> Holder | None:
        """The process that owns the run now; None where none does."""
        return lock_holder(self.path / "lock")


class RunStore:
    """The folder of all runs.

    Args:
        runs_path: Made when the first run is.
    """

    def __init__(self, runs_path: Path) -> None:
        self._path = runs_path

    def new_id(self) -> str:
        """An id that no run has; sorts behind all earlier ones."""
        while (name := new_run_id()) in self._names():
            continue
        return name

    def create(
        self, manifest: RunManifest, *, files: Mapping[str, bytes] | None = None
    ) -> RunDirectory:
        """Make a run's directory; it counts as a run once its manifest is written, last of all.

        Args:
            manifest: Names the run.
            files: Name to content of further files the run shall keep.

        Raises:
            UsageError: a run of this id exists, or the id cannot name a directory.
            StorageError: something could not be written; then nothing stays.
        """
        if not is_run_id(manifest.run_id):
            raise UsageError(f"A run cannot be called `{manifest.run_id}`.")
        for name in files or {}:
            if not is_run_id(name) or _OWN_FILE.match(name):
                raise ValueError(f"a run cannot keep a file called {name!r}")
        path = self._path / manifest.run_id
        self._make(path)
        try:
            for name, content in (files or {}).items():
                write_atomic(path / name, content)
            write_atomic(path / MANIFEST, _as_json(manifest))
        except BaseException:
            shutil.rmtree(path, ignore_errors=True)
            raise
        return RunDirectory(path)

    def ids(self) -> list[str]:
        """Ids of all runs, oldest first; directories that never became runs are left out."""
        return [name for name in self._names() if (self._path / name / MANIFEST).is_file()]

    def open(self, run_id: str) -> RunDirectory:
        """A run by its id, a prefix that only it has, or `last` for the newest.

        Raises:
            RunNotFoundError: none or several fit.
        """
        ids = self.ids()
        if run_id not in ids and run_id in self._names():
            path = self._path / run_id
            raise RunNotFoundError(
                f"Run {run_id} was never begun: it has no {MANIFEST}.",
                where=str(path),
                remedy="Its directory may be deleted.",
            )
        return RunDirectory(self._path / find_run_id(run_id, ids))

    def remove(self, run_id: str) -> None:
        """Delete a run; only under its whole id.

        Raises:
            RunNotFoundError: no directory has this very name.
            RunLockedError: a process owns the run.
            StorageError: it could not be deleted.
        """
        path = self._path / run_id
        if run_id not in self._names():
            find_run_id(run_id, self.ids())
            raise RunNotFoundError(f"No run has the whole id `{run_id}`.")
        with RunLock(path / "lock"):
            # Renamed first, so that no half-deleted run is ever seen.
            gone = self._path / f"{_REMOVING}{run_id}"
            try:
                shutil.rmtree(gone, ignore_errors=True)
                path.rename(gone)
                shutil.rmtree(gone)
            except OSError as error:
                raise storage_error(error, path) from error

    def _names(self) -> list[str]:
        try:
            return sorted(p.name for p in self._path.iterdir() if p.is_dir() and is_run_id(p.name))
        except FileNotFoundError:
            return []
        except OSError as error:
            raise StorageError(
                f"Cannot list runs: {error.strerror}", where=str(self._path)
            ) from error

    def _make(self, path: Path) -> None:
        try:
            _make_private(self._path)
            path.mkdir(mode=0o700)
            sync_directory(self._path)
        except FileExistsError:
            raise UsageError(f"Run {path.name} exists already.", where=str(path)) from None
        except OSError as error:
            raise storage_error(error, path) from error


def _make_private(path: Path) -> None:
    """Make a directory and all above it that are absent, for this user only."""
    if path.is_dir():
        return
    if path.exists():
        raise NotADirectoryError(errno.ENOTDIR, os.strerror(errno.ENOTDIR), str(path))
    _make_private(path.parent)
    with suppress(FileExistsError):
        path.mkdir(mode=0o700)


def _as_json(model: BaseModel) -> bytes:
    # Escaped, because a path may hold bytes that no UTF-8 has.
    return json.dumps(model.model_dump(mode="json"), indent=2, allow_nan=False).encode() + b"\n"


def _read_model(path: Path, kind: type[M]) -> M:
    try:
        return kind.model_validate(json.loads(path.read_bytes()))
    except OSError as error:
        raise StorageError(f"Cannot read: {error.strerror}", where=str(path)) from error
    except ValidationError as error:
        first = error.errors()[0]
        field = ".".join(str(part) for part in first["loc"])
        raise StorageError(
            f"This file is damaged or of another version of the program: `{field}`: {first['msg']}",
            where=str(path),
        ) from None
    except ValueError as error:
        raise StorageError(f"This file is damaged: {error}", where=str(path)) from None
