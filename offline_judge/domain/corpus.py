"""What is told of a corpus: while it is built, and as it lies on disk."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Protocol


class BuildListener(Protocol):
    """Watches a corpus being built. Must not raise and must not block."""

    def indexed(self, documents: int, passages: int) -> None:
        """So many can be searched by words once the build is through."""

    def embedded(self, done: int, total: int) -> None:
        """So many distinct texts have their vector."""

    def note(self, text: str) -> None:
        """What happens, for people."""

    def warn(self, text: str) -> None:
        """What is not as the user will have wanted it."""


@dataclass(frozen=True)
class CorpusState:
    """A corpus as it lies on disk.

    Attributes:
        name: The corpus.
        documents: Number of documents.
        passages: Number of passages.
        embedded: Texts that have a vector; all of them where `complete`.
        complete: The search goes by vectors too.
        embedder: Content identity of what made the vectors, empty where there are none.
        size: Bytes on disk.
        paths: Files and folders it was built from.
        left_out: What was left out of it and why, a sentence each.
        problem: Why it cannot be searched, else empty.
    """

    name: str
    documents: int = 0
    passages: int = 0
    embedded: int = 0
    complete: bool = False
    embedder: str = ""
    size: int = 0
    paths: tuple[str, ...] = ()
    left_out: tuple[str, ...] = ()
    problem: str = ""
