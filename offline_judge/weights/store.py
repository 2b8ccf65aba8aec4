"""The local store: which weights are here, where they lie, and whether they are the card's."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Literal

from offline_judge.errors import DownloadError, HashMismatchError, MissingModelError, WeightsError
from offline_judge.weights.cards import ModelCard, ModelFile
from offline_judge.weights.checking import CheckNotes, check_gguf, file_problem, gguf_problem
from offline_judge.weights.disk import check_space, storing
from offline_judge.weights.fetching import FetchOptions, Meter, PullProgress
from offline_judge.weights.listing import list_files
from offline_judge.weights.pins import PIN, Pin, read_pin, write_pin
from offline_judge.weights.pulling import Puller

__all__ = ["FileCheck", "ModelState", "ModelStore", "PullProgress", "Stored", "VerifyReport"]

ModelState = Literal["present", "partial", "absent"]
Listener = Callable[[PullProgress], None]


@dataclass(frozen=True)
class FileCheck:
    """What `verify` found of one file; `problem` is empty where it is as the card promises."""

    name: str
    path: Path
    problem: str = ""


@dataclass(frozen=True)
class VerifyReport:
    """What `verify` found of a model's files, all of them read anew.

    Attributes:
        model: Name of the card.
        files: One check a file; none where the hub was not asked yet which files there are.
        remedy: What to do where they are not right.
    """

    model: str
    files: tuple[FileCheck, ...]
    remedy: str = ""

    @property
    def ok(self) -> bool:
        """Every file is there and is what the card promises."""
        return bool(self.files) and not any(file.problem for file in self.files)


@dataclass(frozen=True)
class Stored:
    """What the store holds of a model.

    Attributes:
        files: Files in the models folder, the pin among them.
        size: Bytes of them and of what an interrupted download has kept.
        elsewhere: Files that are used where they lie, which the store does not own.
    """

    files: tuple[Path, ...]
    size: int
    elsewhere: tuple[Path, ...]


class ModelStore:
    """Weights on this machine, a folder a card: `<models path>/<card>/<file>`.

    A file may be pulled, placed by hand, or lie elsewhere where its card says so. Its content is
    hashed once; that it was right is noted in the cache together with size and time of change, so
    later starts need not hash it again.

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
        self._puller = Puller(self._downloads, self._notes, self._options)

    def resolved(self, card: ModelCard) -> ModelCard:
        """The card with the files that were pinned for it; itself where it names them, or none is.

        A pin that is damaged counts as none here; `pull` says what is wrong with it.
        """
        with suppress(WeightsError):
            pin = read_pin(card, self.folder(card))
            return pin.resolve(card) if pin else card
        return card

    def folder(self, card: ModelCard) -> Path:
        """Where the card's files belong, unless they are used where they lie."""
        return self._models_path / card.name

    def location(self, card: ModelCard) -> Path:
        """What an engine opens, whether it is there or not: the first file, or the folder."""
        if not card.files:
            return self.folder(card)
        first = self._target(card, card.files[0])
        return first.parent if card.format == "hf" else first

    def path(self, card: ModelCard) -> Path:
        """What an engine opens, after a check that all the card's files are right.

        Raises:
            MissingModelError: a file is not there.
            GgufError: a file is no GGUF or is cut short.
            HashMismatchError: a file's size or content is not what the card promises.
            StorageError: a file cannot be read.
        """
        if not card.files:
            raise _missing(card, self.folder(card), "", self.remedy(card))
        for file in card.files:
            target = self._target(card, file)
            if not target.is_file():
                begun = " (a download of it has begun)" if self._puller.begun(file) else ""
                raise _missing(card, target, begun, self.remedy(card))
            problem = file_problem(file, target, self._notes, known=True)
            if problem:
                check_gguf(file, target)
                raise HashMismatchError(
                    f"The file is not the one that the card {card.name} names: {problem}.",
                    where=str(target),
                    remedy=_again(card, file) or f"Fetch the right one in its place: {_pull(card)}",
                )
        return self.location(card)

    def remedy(self, card: ModelCard) -> str:
        """How weights that are not here, or not right, come to be."""
        again = next((told for file in card.files if (told := _again(card, file))), "")
        return again or f"Fetch them: {_pull(card)}"

    def state(self, card: ModelCard) -> ModelState:
        """Whether the files are here, by name and size; cheap, so content is not looked at."""
        found = 0
        begun = False
        for file in card.files:
            target = self._target(card, file)
            size = target.stat().st_size if target.is_file() else 0
            found += size == file.size
            begun = begun or size > 0 or self._puller.begun(file) > 0
        if card.files and found == len(card.files):
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
                meter = _meter(progress, card, file)
                problem = file_problem(file, target, self._notes, known=False, meter=meter)
                problem = gguf_problem(file, target) or problem
            else:
                problem = "it is not there"
            checks.append(FileCheck(file.name, target, problem))
        return VerifyReport(card.name, tuple(checks), self.remedy(card))

    def pull(
        self, card: ModelCard, progress: Listener | None = None, *, repin: bool = False
    ) -> Path:
        """Make all files of a card present and right; go on where an earlier pull ended.

        Which files a card means that names a repository only is asked once and pinned. An
        exception that `progress` raises cancels the pull, as Ctrl-C does; what was fetched is kept
        for the next one. A file in place that is not the card's is replaced, but never one that
        lies elsewhere.

        Args:
            card: The model, resolved or not.
            progress: Told how far it is.
            repin: Take what the hub lists now, whatever was pinned.

        Raises:
            DownloadError: every source failed (each with its reason), the hub's list cannot be
                had, or another process fetches the same file.
            GgufError: the file the card names is no whole GGUF.
            StorageError: too little space, or a file cannot be written.
            MissingModelError: the card's files lie elsewhere, and one is not there.
            HashMismatchError: likewise, and one has changed.
        """
        if any(file.lies_at for file in card.files):
            return self.path(card)
        if card.hub is None:
            self._pull_files(card, progress)
            return self.location(card)
        return self._pull_pinned(card, progress or _silent, repin=repin)

    def stored(self, card: ModelCard) -> Stored:
        """What the store holds of a card, and what it only knows the place of."""
        own = [self._target(card, file) for file in card.files if not file.lies_at]
        here = [path for path in (*own, self.folder(card) / PIN) if path.is_file()]
        size = sum(path.stat().st_size for path in here)
        size += sum(self._puller.begun(file) for file in card.files)
        elsewhere = tuple(place for file in card.files if (place := file.lies_at))
        return Stored(tuple(here), size, elsewhere)

    def remove(self, card: ModelCard) -> Stored:
        """Delete what the store holds of a card, and nothing else; tells what it was.

        Raises:
            DownloadError: it is being fetched now.
            StorageError: a file cannot be deleted.
        """
        gone = self.stored(card)
        for file in card.files:
            self._puller.discard(file)
        for path in gone.files:
            with storing(path):
                path.unlink(missing_ok=True)
        with suppress(OSError):  # what somebody else put there stays, and the folder with it
            self.folder(card).rmdir()
        return gone

    def remember(self, card: ModelCard) -> None:
        """Note that the card's files were hashed just now, so that the next start need not."""
        for file in card.files:
            self._notes.remember(file, self._target(card, file))

    def _pull_pinned(self, card: ModelCard, tell: Listener, *, repin: bool) -> Path:
        """Pull by the pin; the first time, and with `repin`, by what the hub lists now."""
        assert card.hub is not None
        folder = self.folder(card)
        old = None if repin else read_pin(card, folder)
        pin = old or Pin(hub=card.hub, listing=list_files(card.hub, self._options))
        if old is not None:
            self._tell_changes(card, old, tell)
        elif not repin:
            # At once, so that an interrupted pull goes on with the same files.
            write_pin(pin, folder)
        self._pull_files(pin.resolve(card), tell)
        if repin:
            before = self._pinned_names(card)
            write_pin(pin, folder)
            for name in before - {file.name for file in pin.listing.files}:
                with storing(folder):
                    (folder / name).unlink(missing_ok=True)
        return self.location(pin.resolve(card))

    def _pinned_names(self, card: ModelCard) -> set[str]:
        return {file.name for file in self.resolved(card).files}

    def _tell_changes(self, card: ModelCard, pin: Pin, tell: Listener) -> None:
        """Say where the hub has other files by now; that it cannot be asked matters to nobody."""
        assert card.hub is not None
        try:
            now = list_files(card.hub, replace(self._options, attempts=1))
        except DownloadError:
            return
        if now.files != pin.listing.files:
            told = (
                "the hub has other files by now; those pinned at the first pull, of commit "
                f"{pin.listing.commit[:12]}, are used. To take the new: {_pull(card)} --repin"
            )
            tell(PullProgress(card.name, card.hub.pattern, "note", card.hub.label, 0, 0, told))

    def _pull_files(self, card: ModelCard, progress: Listener | None) -> None:
        absent = [file for file in card.files if not self._target(card, file).is_file()]
        if len(absent) > 1:
            left = sum(file.size - min(self._puller.begun(file), file.size) for file in absent)
            check_space(self._downloads, left)
        for file in card.files:
            self._puller.pull(file, self._target(card, file), _meter(progress, card, file))

    def _target(self, card: ModelCard, file: ModelFile) -> Path:
        return file.lies_at or self.folder(card) / file.name


def _missing(card: ModelCard, where: Path, begun: str, remedy: str) -> MissingModelError:
    return MissingModelError(
        f"The weights of {card.name} are not here{begun}.", where=str(where), remedy=remedy
    )


def _pull(card: ModelCard) -> str:
    return f"offline-judge models pull {card.name}"


def _again(card: ModelCard, file: ModelFile) -> str:
    """What to do about a file that lies elsewhere; empty for one that can be fetched."""
    if not file.lies_at:
        return ""
    return (
        "It is used where it lay when it was added. Add it again from where it is, as it is: "
        f"offline-judge models add PATH --name {card.name}"
    )


def _meter(progress: Listener | None, card: ModelCard, file: ModelFile) -> Meter:
    return Meter(progress or _silent, card.name, file.name, file.size)


def _silent(progress: PullProgress) -> None:
    """The listener of a caller who does not want to know."""
