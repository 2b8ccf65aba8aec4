"""Model cards: which weights there are, what they are for, and where each file comes from."""

from __future__ import annotations

import tomllib
from difflib import get_close_matches
from importlib.resources import files
from importlib.resources.abc import Traversable
from pathlib import Path
from typing import Literal

from pydantic import Field, ValidationError, model_validator

from offline_judge.domain.base import Frozen, content_hash
from offline_judge.errors import MissingModelError, SettingsError, WeightsError
from offline_judge.weights.sources import (
    HubListing,
    LocalSource,
    RemoteSource,
    SafeName,
    Sha256,
    Source,
)

TOKENIZER = "tokenizer.json"


class ModelFile(Frozen):
    """One file: name, bytes, SHA-256 and the sources that hold it, best first."""

    name: SafeName
    size: int = Field(gt=0)
    sha256: Sha256
    sources: tuple[Source, ...] = ()

    @property
    def lies_at(self) -> Path | None:
        """Where the file is used in its own place; None where it belongs into the store."""
        for source in self.sources:
            if isinstance(source, LocalSource):
                return Path(source.path)
        return None

    @property
    def remote(self) -> tuple[RemoteSource, ...]:
        """The sources it can be fetched from."""
        return tuple(source for source in self.sources if not isinstance(source, LocalSource))


class Quirks(Frozen):
    """What is peculiar to a model.

    Attributes:
        thinking_switch: The chat template's variable that turns thinking on and off; empty where
            the model does not think.
        system_role: The chat template knows a system turn.
        stop_tokens: Texts of the tokens that end an answer.
    """

    thinking_switch: str = ""
    system_role: bool = True
    stop_tokens: tuple[str, ...] = ()


class Embedding(Frozen):
    """How an embedder makes a vector of a text.

    Attributes:
        format: What the first file is and so what runs it: `onnx` (ONNX Runtime, beside a
            `tokenizer.json`), `gguf` (the engine) or `e5s1` (4-bit BERT with its tokenizer inside).
        dimension: Length of a vector.
        max_tokens: A text is cut behind this many tokens, prefix and special ones included.
        pooling: How the vectors of its tokens become one.
        query_prefix: What the model wants in front of a query.
        passage_prefix: What it wants in front of a passage.
    """

    format: Literal["onnx", "gguf", "e5s1"]
    dimension: int = Field(gt=0)
    max_tokens: int = Field(ge=8)
    pooling: Literal["mean", "cls", "last"] = "mean"
    query_prefix: str = ""
    passage_prefix: str = ""


class ModelCard(Frozen):
    """One model: what it is, its files and its quirks.

    Attributes:
        name: The name by which it is asked for; the card's file has the same.
        family: Models of one family share their faults.
        role: What it is meant for; any text model can be asked to judge.
        parameters: Number of weights.
        quantisation: How they are stored, such as `Q4_K_M`.
        window: Tokens of context the model was trained for.
        licence: SPDX identifier, or the name of one that has none.
        licence_url: Where its text is.
        non_commercial: The licence allows no commercial use; it is confirmed before a pull.
        gated: The hub gives the files only to those who accepted its terms; confirmed likewise.
        format: What an engine opens: `gguf`, the first file, or `hf`, the folder of them all.
            Embedders say theirs in their section.
        hub: Where the files are listed, for a card that does not name them.
        files: The first is the one an engine opens. Empty while `hub` was not asked yet.
        quirks: What is peculiar to it.
        embedding: How it makes vectors; embedders have it and no others.
    """

    name: SafeName
    family: str = Field(min_length=1)
    role: Literal["judge", "policy", "embedder"]
    parameters: int = Field(gt=0)
    quantisation: str = Field(min_length=1)
    window: int = Field(gt=0)
    licence: str = Field(min_length=1)
    licence_url: str = ""
    non_commercial: bool = False
    gated: bool = False
    format: Literal["gguf", "hf"] = "gguf"
    hub: HubListing | None = None
    files: tuple[ModelFile, ...] = ()
    quirks: Quirks = Quirks()
    embedding: Embedding | None = None

    @property
    def size(self) -> int:
        """Bytes of all files; 0 where the hub was not asked for them yet."""
        return sum(file.size for file in self.files)

    @property
    def weights_sha256(self) -> str:
        """What the weights are: the hash of the one file, or a hash of the hashes of them all."""
        hashes = [file.sha256 for file in self.files]
        return hashes[0] if len(hashes) == 1 else content_hash(hashes)

    @property
    def parameters_b(self) -> float:
        """Number of weights, in thousands of millions."""
        return self.parameters / 1e9

    @property
    def vectors_id(self) -> str:
        """Identity of the space of an embedder's vectors: the name, and 12 digits of a hash.

        The hash covers all that shapes a vector: the files' content and how they are used.
        """
        shaping = {
            "files": [file.sha256 for file in self.files],
            "embedding": self.embedding.model_dump(mode="json") if self.embedding else None,
        }
        return f"{self.name}-{content_hash(shaping)[:12]}"

    @model_validator(mode="after")
    def _files_or_hub(self) -> ModelCard:
        if self.hub is None and not self.files:
            raise ValueError("it has neither [[files]] nor a section [hub]")
        if self.hub is not None and self.files:
            raise ValueError("it has both [[files]] and a section [hub]")
        # What an embedder's vectors are called hashes its files, so they must be known.
        if self.hub is not None and self.embedding is not None:
            raise ValueError("an embedder names its [[files]]")
        return self

    @model_validator(mode="after")
    def _embedders_say_how(self) -> ModelCard:
        if (self.role == "embedder") != (self.embedding is not None):
            raise ValueError("an embedder, and nothing else, has a section [embedding]")
        if self.embedding is None:
            return self
        kind, names = self.embedding.format, [file.name for file in self.files]
        if kind == "onnx" and TOKENIZER not in names[1:]:
            raise ValueError(f"an onnx embedder has a second file called {TOKENIZER}")
        if kind == "gguf" and not names[0].lower().endswith(".gguf"):
            raise ValueError("the first file of a gguf embedder is called *.gguf")
        if kind == "e5s1" and self.embedding.pooling != "mean":
            raise ValueError("an e5s1 embedder pools by the mean")
        return self

    @model_validator(mode="after")
    def _files_differ(self) -> ModelCard:
        names = [file.name for file in self.files]
        if len(set(names)) < len(names):
            raise ValueError("two files have the same name")
        return self


def load_cards(extra: Path | None = None, added: Path | None = None) -> dict[str, ModelCard]:
    """All cards by name: the shipped ones, then those of two folders of the user's, which win.

    Args:
        extra: A folder that the user named; must be there.
        added: The folder that `models add` writes into; may be absent.

    Raises:
        SettingsError: a card is not TOML, or has an unknown, missing or wrong key (named), or the
            folder is not there.
        WeightsError: this installation has lost its own cards.
    """
    cards = _read_folder(_shipped_folder())
    if added is not None and added.is_dir():
        cards |= _read_folder(added)
    if extra is not None:
        if not extra.is_dir():
            raise SettingsError(f"There is no folder of model cards at {extra}.", where="cards_dir")
        cards |= _read_folder(extra)
    return dict(sorted(cards.items()))


def find_card(name: str, extra: Path | None = None, added: Path | None = None) -> ModelCard:
    """The card of this name; the folders are those of `load_cards`.

    Raises:
        MissingModelError: no card has this name; says which names come close.
        SettingsError: as `load_cards`.
    """
    cards = load_cards(extra, added)
    if name in cards:
        return cards[name]
    close = get_close_matches(name.lower(), cards, n=2, cutoff=0.5)
    hint = f"Did you mean {' or '.join(close)}?" if close else f"Known: {', '.join(cards)}."
    raise MissingModelError(f"No model card is called {name!r}.", remedy=hint)


def read_card(text: str, where: str) -> ModelCard:
    """Check the TOML of one card; `where` names its file in errors.

    Raises:
        SettingsError: it is not TOML, or a key is unknown, missing or wrong.
    """
    try:
        raw = tomllib.loads(text)
    except tomllib.TOMLDecodeError as error:
        raise SettingsError(f"The model card is not TOML: {error}.", where=where) from error
    try:
        card = ModelCard.model_validate(raw)
    except ValidationError as error:
        problems = "; ".join(_problems(error))
        raise SettingsError(f"The model card cannot be used: {problems}.", where=where) from error
    stem = Path(where).name.removesuffix(".toml")
    if card.name != stem:
        raise SettingsError(
            f"The model card cannot be used: name: is {card.name!r}, but the file is called "
            f"{stem!r}.",
            where=where,
        )
    return card


def _read_folder(folder: Traversable) -> dict[str, ModelCard]:
    cards = {}
    for entry in folder.iterdir():
        if not entry.name.endswith(".toml"):
            continue
        try:
            text = entry.read_text(encoding="utf-8")
        except (OSError, UnicodeDecodeError) as error:
            raise SettingsError(
                f"The model card cannot be read: {error}.", where=str(entry)
            ) from error
        card = read_card(text, str(entry))
        cards[card.name] = card
    return cards


def _shipped_folder() -> Traversable:
    package = files("offline_judge")
    in_wheel = package / "cards"
    if in_wheel.is_dir():
        return in_wheel
    # An editable installation: the cards are beside the package, in the repository.
    in_repository = Path(str(package)).parent / "models" / "cards"
    if in_repository.is_dir():
        return in_repository
    raise WeightsError(
        "This installation has no model cards.", remedy="Install offline-llm-judge again."
    )


def _problems(error: ValidationError) -> list[str]:
    found = [(item["loc"], item["msg"]) for item in error.errors()]
    inner = {location[:depth] for location, _ in found for depth in range(1, len(location))}
    return [_problem(location, message) for location, message in found if location not in inner]


def _problem(location: tuple[int | str, ...], message: str) -> str:
    kinds = {"huggingface", "packages", "local"}
    # A union puts its member's tag, which is also a key of a source, behind the list's index.
    parts = [
        str(part)
        for before, part in zip((None, *location), location, strict=False)
        if not (part in kinds and isinstance(before, int))
    ]
    message = message.removeprefix("Value error, ")
    message = message.replace("Extra inputs are not permitted", "is no key of a card")
    if "[0-9a-f]{64}" in message:
        message = "must be 64 hexadecimal digits"
    return f"{'.'.join(parts)}: {message}" if parts else message
