"""The vectors of a corpus: the matrix that is searched, and whether it is there."""

from __future__ import annotations

import shutil
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from pydantic import ValidationError

from offline_judge.domain.base import Frozen
from offline_judge.errors import SearchError
from offline_judge.retrieval.corpus.store import CorpusManifest, check_files

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

VECTORS = "vectors.json"
VECTORS_PREFIX = "vectors-"
MATRIX = "matrix.npy"
PLACES = "places.npy"


class VectorManifest(Frozen):
    """Which vectors a corpus has; written when they are complete.

    Attributes:
        embedder: Content identity of what made them.
        dimension: Length of a vector.
        index: Folder of the word index whose passages they are, in its order.
        folder: Where the matrix is, beside this manifest.
        files: File to its size in bytes and its CRC-32.
    """

    embedder: str
    dimension: int
    index: str
    folder: str
    files: dict[str, tuple[int, int]]


@dataclass(frozen=True)
class Vectors:
    """A matrix of unit rows, and where the passage of each row lies in the word index.

    Attributes:
        matrix: Float32, shape (passages, dimension), mapped from disk.
        places: Uint64, shape (passages,), ascending; segment in the upper 32 bits, number of the
            passage in its segment in the lower ones.
    """

    matrix: NDArray[np.float32]
    places: NDArray[np.uint64]


def read_vector_manifest(folder: Path, manifest: CorpusManifest) -> VectorManifest | None:
    """What the complete vectors of this very index are; None where there are none.

    Args:
        folder: The corpus's own folder.
        manifest: The index in use.
    """
    try:
        found = VectorManifest.model_validate_json((folder / VECTORS).read_bytes())
    except (OSError, ValidationError):
        return None
    return found if found.index == manifest.index else None


def sweep_vectors(folder: Path, manifest: CorpusManifest | None) -> None:
    """Delete matrices that belong to no index in use."""
    current = read_vector_manifest(folder, manifest) if manifest else None
    for path in folder.glob(f"{VECTORS_PREFIX}*"):
        if current is None or path.name != current.folder:
            shutil.rmtree(path)


def open_vectors(folder: Path, manifest: CorpusManifest, embedder: str) -> Vectors:
    """Map the vectors of an index into memory; their files are read once to check them.

    Raises:
        SearchError: they are not complete, damaged, or another embedder made them.
    """
    import numpy as np

    found = read_vector_manifest(folder, manifest)
    remedy = f"Make them with `offline-judge corpus embed {manifest.name}`."
    if found is None:
        raise SearchError(f"The vectors of `{manifest.name}` are not complete", remedy=remedy)
    if found.embedder != embedder:
        raise SearchError(
            f"The vectors of `{manifest.name}` were made by {found.embedder}, not {embedder}",
            remedy=remedy,
        )
    try:
        check_files(manifest.name, found.files, folder / found.folder)
        matrix = np.load(folder / found.folder / MATRIX, mmap_mode="r", allow_pickle=False)
        places = np.load(folder / found.folder / PLACES, allow_pickle=False)
    except (SearchError, OSError, ValueError) as error:
        raise SearchError(
            f"The vectors of `{manifest.name}` are damaged: {error}", remedy=remedy
        ) from error
    return Vectors(matrix, places)
