"""Model cards to embedders."""

from __future__ import annotations

from typing import TYPE_CHECKING

from offline_judge.errors import MissingError, UsageError
from offline_judge.wiring.installation import model_card, model_store

if TYPE_CHECKING:
    from pathlib import Path

    from offline_judge.protocols import Embedder
    from offline_judge.settings import Settings
    from offline_judge.weights.cards import ModelCard

NO_EMBEDDER = "none"
HASHING = "hashing"


def open_embedder(settings: Settings) -> Embedder | None:
    """The embedder that the settings name; None where they want lexical search only.

    Its files are compared with the card; their hashes are not computed anew while size and time
    of change are those of the last check.

    Raises:
        UsageError: the card is not one of an embedder, or says another dimension than the model.
        MissingModelError: no such card, or its weights are not here.
        MissingDependencyError: a package that the embedder runs on is not installed.
        WeightsError: its weights are not what the card promises.
        DoesNotFitError: a GGUF embedder is larger than the free memory.
        BackendError: the engine of a GGUF embedder does not start.
    """
    if settings.embedder == NO_EMBEDDER:
        return None
    if settings.embedder == HASHING:
        from offline_judge.retrieval.embedding.hashing import HashingEmbedder

        return HashingEmbedder()
    card = _card(settings)
    path = model_store(settings).path(card)
    return _open(card, path, settings)


def embedder_space(settings: Settings) -> tuple[str, int] | None:
    """Id and dimension of the embedder that `open_embedder` would open, without opening it.

    None where the settings name none, or one that is not known.

    Raises:
        UsageError: the card is not one of an embedder.
    """
    if settings.embedder == NO_EMBEDDER:
        return None
    if settings.embedder == HASHING:
        from offline_judge.retrieval.embedding.hashing import HashingEmbedder

        hashing = HashingEmbedder()
        return hashing.id, hashing.dimension
    try:
        card = _card(settings)
    except MissingError:
        return None
    assert card.embedding is not None
    return card.vectors_id, card.embedding.dimension


def _card(settings: Settings) -> ModelCard:
    card = model_card(settings.embedder, settings)
    if card.embedding is None:
        raise UsageError(
            f"`{card.name}` is no embedder but a {card.role}.",
            where="embedder",
            remedy="See which models are: offline-judge models list",
        )
    return card


def _open(card: ModelCard, path: Path, settings: Settings) -> Embedder:
    """The embedder for the kind of file; the modules behind the kinds are imported only here."""
    from offline_judge.backends.options import usable_cores

    assert card.embedding is not None
    threads = settings.threads or usable_cores()
    if card.embedding.format == "gguf":
        from offline_judge.backends.embed import GgufEmbedder
        from offline_judge.weights.fit import check_fit

        check_fit(card, path, window=card.embedding.max_tokens, slots=1)
        return GgufEmbedder(card, path, threads)
    if card.embedding.format == "e5s1":
        from offline_judge.retrieval.embedding.e5 import E5Embedder

        return E5Embedder(card, path, threads)
    from offline_judge.retrieval.embedding.onnx import OnnxEmbedder

    return OnnxEmbedder(card, path, threads)
