"""Makes cards of weights that the user has: described, hashed, and left, copied or moved."""

from __future__ import annotations

import os
import re
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

import tomli_w
from pydantic import ValidationError

from offline_judge.errors import HashMismatchError, UsageError
from offline_judge.weights.cards import ModelCard, ModelFile, Quirks, read_card
from offline_judge.weights.checking import content_problem
from offline_judge.weights.describing import Described, describe
from offline_judge.weights.disk import (
    check_space,
    copy_durably,
    file_sha256,
    move_durably,
    reading,
    storing,
    write_text,
)
from offline_judge.weights.fetching import Meter, PullProgress
from offline_judge.weights.sources import SAFE_NAME, LocalSource
from offline_judge.weights.splits import stem_of
from offline_judge.weights.store import ModelStore

Listener = Callable[[PullProgress], None]
_UNSAFE = re.compile(r"[^A-Za-z0-9._-]+")
_ADDED = "# Written by `offline-judge models add`; what it says may be changed by hand.\n"


@dataclass(frozen=True)
class AddOptions:
    """What the user says of weights that are added; the rest is read from them.

    Attributes:
        name: Name of the card; made of the file's name where it is empty.
        window: Tokens of context; 0 takes what the weights say.
        family: Models of one family share their faults; told by their names where it is empty.
        licence: What they are licensed under; as they say it where it is empty.
        keep: `refer` uses the files where they lie; `copy` and `move` bring them into the store.
    """

    name: str = ""
    window: int = 0
    family: str = ""
    licence: str = ""
    keep: Literal["refer", "copy", "move"] = "refer"


@dataclass(frozen=True)
class Added:
    """A card that was made, and what could not be told and was assumed."""

    card: ModelCard
    notes: tuple[str, ...]


class Shelf:
    """The folder of cards that `models add` writes.

    Args:
        folder: Made when the first card is.
        store: Where weights are.
    """

    def __init__(self, folder: Path, store: ModelStore) -> None:
        self._folder = folder
        self._store = store

    def card_file(self, name: str) -> Path:
        """Where the card of a name is, if it was added."""
        return self._folder / f"{name}.toml"

    def add(
        self,
        path: Path,
        options: AddOptions,
        known: Mapping[str, ModelCard],
        progress: Listener | None = None,
    ) -> Added:
        """Make a card of the weights at a path; all parts of a file, all files of a folder.

        Args:
            path: A GGUF file, one of its parts, or a folder in Hugging Face format.
            options: What the user says.
            known: All cards there are, which the new one must differ from.
            progress: Told how far the hashing is.

        Raises:
            UsageError: the name is another model's, or the weights do not say what they must.
            DataError: there is no model at the path.
            WeightsError: a file is damaged.
            StorageError: a file cannot be read or written.
        """
        _check_name(options.name)
        # Without detours such as `..`; a link may be what the user changes later, so it is kept.
        found = describe(Path(os.path.abspath(path.expanduser())))  # noqa: PTH100 - links stay
        name = options.name or _UNSAFE.sub("-", stem_of(found_name(found)).lower()).strip("-._")
        if name in known and not self.card_file(name).is_file():
            raise UsageError(
                f"There is a model called {name} already.",
                where=str(path),
                remedy="Give this one another name: --name NAME",
            )
        files = tuple(_hashed(name, each, progress) for each in found.paths)
        families = {card.family for card in known.values()}
        try:
            card, notes = _card(name, found, files, options, families)
        except ValidationError as error:
            first = error.errors()[0]
            raise UsageError(
                f"No card can be made: {first['loc'][0]}: {first['msg']}.",
                where=str(path),
                remedy="Names have letters, digits, dots, dashes and underscores: --name NAME",
            ) from error
        self._refuse_other(known.get(name), card, found.paths)
        if options.keep != "refer":
            card = card.model_copy(update={"files": tuple(map(_without_place, card.files))})
            self._bring(card, found.paths, move=options.keep == "move")
        text = _ADDED + to_toml(card)
        target = self.card_file(card.name)
        # Written only if it can be read again: one bad card would stop every command.
        card = read_card(text, str(target))
        with storing(target):
            target.parent.mkdir(parents=True, exist_ok=True)
            write_text(target, text)
        self._store.remember(card)
        return Added(card, notes)

    def remove(self, name: str) -> bool:
        """Delete the card of a name, if it was added; tells whether it was.

        Raises:
            StorageError: it cannot be deleted.
        """
        path = self.card_file(name)
        was = path.is_file()
        with storing(path):
            path.unlink(missing_ok=True)
        return was

    def _refuse_other(self, old: ModelCard | None, new: ModelCard, paths: tuple[Path, ...]) -> None:
        """An added card is replaced by one of the same content or the same place only."""
        if old is None:
            return
        same = [file.sha256 for file in old.files] == [file.sha256 for file in new.files]
        if not same and [file.lies_at for file in old.files] != list(paths):
            raise UsageError(
                f"Another model was added as {new.name}.",
                where=str(self.card_file(new.name)),
                remedy=f"Give this one another name with --name, or remove that one: "
                f"offline-judge models rm {new.name}",
            )

    def _bring(self, card: ModelCard, paths: tuple[Path, ...], *, move: bool) -> None:
        folder = self._store.folder(card)
        if not move:
            check_space(folder, card.size)
        for file, source in zip(card.files, paths, strict=True):
            target = folder / file.name
            if target.exists() and target.samefile(source):
                continue
            with storing(target, file.size):
                if move:
                    move_durably(source, target)
                else:
                    copy_durably(source, target, _check_copy(file, source))


def found_name(found: Described) -> Path:
    """What the weights are named after: the first file, or the folder."""
    return found.paths[0].parent if found.format == "hf" else found.paths[0]


def to_toml(card: ModelCard) -> str:
    """A card as TOML that reads as the same card."""
    return tomli_w.dumps(card.model_dump(mode="json", exclude_defaults=True))


def _check_name(name: str) -> None:
    """Refuse a name before hours of hashing."""
    if name and not SAFE_NAME.fullmatch(name):
        raise UsageError(
            f"`{name}` cannot be the name of a model.",
            where="--name",
            remedy="Names have letters, digits, dots, dashes and underscores, and begin with a "
            "letter or digit.",
        )


def _hashed(model: str, path: Path, progress: Listener | None) -> ModelFile:
    name = _UNSAFE.sub("-", path.name).lstrip("-._")
    try:
        str(path).encode("utf-8")
    except UnicodeEncodeError as error:
        raise UsageError(
            "A card cannot name this path: it is no UTF-8.",
            where=ascii(str(path)),
            remedy="Rename the file or folder.",
        ) from error
    with reading(path):
        size = path.stat().st_size
    meter = Meter(progress or (lambda _: None), model, name, size)
    digest = file_sha256(path, lambda done: meter.at("check", str(path), done))
    place = LocalSource(kind="local", path=str(path))
    return ModelFile(name=name, size=size, sha256=digest, sources=(place,))


def _card(
    name: str,
    found: Described,
    files: tuple[ModelFile, ...],
    options: AddOptions,
    families: Iterable[str],
) -> tuple[ModelCard, tuple[str, ...]]:
    window = options.window or found.window
    if not window:
        raise UsageError(
            "These weights do not say how many tokens they were trained for.",
            where=str(found.paths[0]),
            remedy="Say it: --window N",
        )
    family = options.family or _family(found, families)
    licence = options.licence or found.licence or "unknown"
    notes = []
    if found.window and window > found.window:
        notes.append(f"the window is larger than the {found.window:,} tokens it was trained for")
    if found.system_role is None:
        notes.append("its chat template could not be tried, so it is taken to know a system turn")
    if not options.family:
        notes.append(f"its family is taken to be {family}; --family says otherwise")
    if licence == "unknown":
        notes.append("it does not say its licence; --licence does")
    card = ModelCard(
        name=name,
        family=family,
        role="judge",
        parameters=max(1, found.parameters),
        quantisation=found.quantisation,
        window=window,
        licence=licence,
        format=found.format,
        files=files,
        quirks=Quirks(
            thinking_switch=found.thinking_switch,
            system_role=found.system_role is not False,
        ),
    )
    return card, tuple(notes)


def _family(found: Described, families: Iterable[str]) -> str:
    """The longest family known whose name the weights bear; else what they are built like."""
    names = "\n".join(re.sub(r"[\s_]+", "-", name.lower()) for name in found.called)
    borne = [family for family in families if family in names]
    return max(borne, key=len, default=found.architecture or "unknown")


def _without_place(file: ModelFile) -> ModelFile:
    return file.model_copy(update={"sources": ()})


def _check_copy(file: ModelFile, source: Path) -> Callable[[Path], None]:
    def check(copy: Path) -> None:
        if problem := content_problem(file, copy, None, str(source)):
            raise HashMismatchError(
                f"The copy is not what was read before: {problem}.",
                where=str(source),
                remedy="The file changed meanwhile, or the disk is at fault. Add it again.",
            )

    return check
