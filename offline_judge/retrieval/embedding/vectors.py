"""What all embedders of model cards share: texts as they reach a model, rows of length 1."""

from __future__ import annotations

from typing import TYPE_CHECKING, Literal

from offline_judge.errors import (
    BackendError,
    MissingDependencyError,
    SettingsError,
    WeightsError,
)
from offline_judge.weights.cards import Embedding, ModelCard

if TYPE_CHECKING:
    from pathlib import Path

    import numpy as np
    from numpy.typing import NDArray

Kind = Literal["query", "passage"]
# No passage is anywhere near this long; it bounds what one text may cost before tokens are counted.
MAX_CHARACTERS = 100_000


def model_text(text: str, kind: Kind, how: Embedding) -> str:
    """The text with its prefix, as UTF-8 can hold it: lone surrogates become question marks."""
    prefix = how.query_prefix if kind == "query" else how.passage_prefix
    cut = text[:MAX_CHARACTERS]
    return prefix + cut.encode("utf-8", "replace").decode("utf-8")


def unit_rows(rows: NDArray[np.float32]) -> NDArray[np.float32]:
    """The rows with length 1, as float32.

    Args:
        rows: Shape (texts, dimension).

    Raises:
        BackendError: a row is zero or not finite, which sound weights never give.
    """
    import numpy as np

    lengths = np.linalg.norm(rows, axis=1, keepdims=True)
    if not (np.isfinite(lengths).all() and (lengths > 0).all()):
        raise BackendError(
            "The embedder gave a vector without a direction.",
            remedy="Its weights may be damaged: offline-judge models verify NAME",
        )
    unit: NDArray[np.float32] = (rows / lengths).astype(np.float32)
    return unit


def check_dimension(card: ModelCard, found: int) -> None:
    """Compare what the model gives with what its card says.

    Raises:
        SettingsError: they differ.
    """
    assert card.embedding is not None
    if found != card.embedding.dimension:
        raise SettingsError(
            f"The embedder {card.name} gives vectors of {found} numbers, but its card says "
            f"{card.embedding.dimension}.",
            where="embedding.dimension",
            remedy=f"Correct the card: dimension = {found}",
        )


def unusable(card: ModelCard, path: Path, kind: str, reason: object) -> WeightsError:
    """The error for a file that is not of the kind its card says."""
    return WeightsError(
        f"A file of the embedder {card.name} is no usable {kind}: {reason}",
        where=str(path),
        remedy="Correct `format` or the file in its card, or fetch the file anew: "
        f"offline-judge models pull {card.name}",
    )


def missing(card: ModelCard, error: ModuleNotFoundError) -> MissingDependencyError:
    """The error for an optional package that the embedder runs on."""
    return MissingDependencyError(
        f"The embedder {card.name} needs `{error.name}`, which is not installed.",
        where="embedder",
        remedy='pip install "offline-llm-judge[evidence]"',
    )
