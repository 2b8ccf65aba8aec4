"""A shelf with its store and a folder of a user's own weights, for tests of what is added."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from weights_helpers import gguf_bytes, make_store

from offline_judge.weights.adding import Added, AddOptions, Shelf
from offline_judge.weights.cards import ModelCard, load_cards
from offline_judge.weights.store import ModelStore

FACTS: dict[str, str | int] = {
    "general.architecture": "never-heard-of",
    "general.name": "Qwen2.5 Coder 7B",
    "general.file_type": 15,
    "general.license": "apache-2.0",
    "never-heard-of.context_length": 4096,
    "tokenizer.chat_template": "{% for m in messages %}{{ m.content }}{% endfor %}",
}
CONTENT = gguf_bytes(more=FACTS)


class Place:
    """A shelf, its store, and a folder with a user's own weights."""

    def __init__(self, folder: Path) -> None:
        self.store: ModelStore = make_store(folder)
        self.cards = folder / "data" / "cards"
        self.shelf = Shelf(self.cards, self.store)
        self.own = folder / "own"
        self.own.mkdir()

    def put(self, name: str = "My Model.Q4_K_M.gguf", content: bytes = CONTENT) -> Path:
        path = self.own / name
        path.write_bytes(content)
        return path

    def known(self) -> dict[str, ModelCard]:
        return load_cards(None, self.cards)

    def add(self, path: Path, **options: Any) -> Added:
        return self.shelf.add(path, AddOptions(**options), self.known())
