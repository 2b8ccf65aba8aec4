"""Model cards to embedders."""

from __future__ import annotations

from typing import TYPE_CHECKING

from offline_judge.errors import UsageError
from offline_judge.wiring.installation import model_card, model_store

if TYPE_CHECKING:
    from offline_judge.protocols import Embedder
    from offline_judge.settings import Settings

NO_EMBEDDER = "none"
HASHING = "hashing"


def open_embedder(settings: Settings) -> Embedder | None:
    """The embedder that the settings name; None where they want lexical search only.

    Raises:
        UsageError: the card is not one of an embedder.
        MissingModelError: no such card, or its weights are not here.
        MissingDependencyError: a package that the embedder runs on is not installed.
        WeightsError: its weights are not what the card promises.
    """
    if settings.embedder == NO_EMBEDDER:
        return None
    if settings.embedder == HASHING:
        from offline_judge.retrieval.embedding.hashing import HashingEmbedder

        return HashingEmbedder()
    card = model_card(settings.embedder, settings)
    if card.role != "embedder":
        raise UsageError(f"`{card.name}` is no embedder but a {card.role}.", where="embedder")
    model_store(settings).path(card)
    raise UsageError(f"`{card.name}` cannot be opened.", where="embedder")
