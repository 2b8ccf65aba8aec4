"""Vectors by the text they stand for and the embedder that made them, in one SQLite file."""

from __future__ import annotations

import sqlite3
from collections.abc import Collection, Iterator, Sequence
from contextlib import closing, contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

from offline_judge.errors import StorageError

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

_BUSY_S = 10.0
_DAMAGED = (sqlite3.SQLITE_CORRUPT, sqlite3.SQLITE_NOTADB)
_SCHEMA = (
    "CREATE TABLE IF NOT EXISTS vectors (embedder TEXT NOT NULL, key BLOB NOT NULL, "
    "vector BLOB NOT NULL, PRIMARY KEY (embedder, key))"
)


class VectorStore:
    """The vectors of one embedder. One process writes at a time: the holder of the build lock.

    A damaged file is deleted and begun anew, since everything in it can be computed again.

    Args:
        path: The file.
        embedder: Content identity of the embedder.
        dimension: Length of its vectors; those of another length count as absent.

    Raises:
        StorageError: the file cannot be opened or written.
    """

    def __init__(self, path: Path, embedder: str, dimension: int) -> None:
        self._path = path
        self._embedder = embedder
        self._dimension = dimension
        with self._errors():
            try:
                self._open()
            except sqlite3.DatabaseError as error:
                if getattr(error, "sqlite_errorcode", 0) & 0xFF not in _DAMAGED:
                    raise
                path.unlink()
                path.with_name(f"{path.name}-journal").unlink(missing_ok=True)
                self._open()

    def __contains__(self, key: object) -> bool:
        """Whether the text of this key has a vector."""
        return key in self._known

    def get(self, keys: Sequence[bytes]) -> NDArray[np.float32]:
        """Shape (number of keys, dimension), in their order; each must have a vector."""
        import numpy as np

        found: dict[bytes, bytes] = {}
        with self._errors():
            for key in dict.fromkeys(keys):
                query = "SELECT vector FROM vectors WHERE rowid = ?"
                (found[key],) = self._database.execute(query, (self._known[key],)).fetchone()
        joined = b"".join(found[key] for key in keys)
        return np.frombuffer(joined, dtype="<f4").reshape(len(keys), self._dimension)

    def put(self, keys: Sequence[bytes], vectors: NDArray[np.float32]) -> None:
        """Keep vectors; they are on disk when this returns.

        Raises:
            StorageError: the disk is full or cannot be written; earlier vectors stay.
        """
        with self._errors(), self._database:
            for key, vector in zip(keys, vectors, strict=True):
                row = (self._embedder, key, vector.astype("<f4").tobytes())
                query = "INSERT OR REPLACE INTO vectors VALUES (?, ?, ?)"
                self._known[key] = self._database.execute(query, row).lastrowid or 0

    def keep_only(self, keys: Collection[bytes]) -> None:
        """Forget the vectors of all other texts, by whatever embedder."""
        with self._errors(), self._database:
            every = self._database.execute("SELECT rowid, key FROM vectors").fetchall()
            gone = [(rowid,) for rowid, key in every if key not in keys]
            self._database.executemany("DELETE FROM vectors WHERE rowid = ?", gone)
        for key in self._known.keys() - set(keys):
            del self._known[key]

    def close(self) -> None:
        """Let go of the file. Safe to call twice."""
        self._database.close()

    def _open(self) -> None:
        self._database = sqlite3.connect(self._path, timeout=_BUSY_S)
        try:
            self._database.execute(_SCHEMA)
            query = "SELECT key, rowid FROM vectors WHERE embedder = ? AND length(vector) = ?"
            rows = self._database.execute(query, (self._embedder, 4 * self._dimension))
            self._known: dict[bytes, int] = dict(rows.fetchall())
        except BaseException:
            self._database.close()
            raise

    @contextmanager
    def _errors(self) -> Iterator[None]:
        try:
            yield
        except (sqlite3.Error, OSError) as error:
            raise StorageError(
                f"Cannot keep the vectors: {error}",
                where=str(self._path),
                remedy="Make room and call again: what is embedded is not embedded twice.",
            ) from error


def embedded_counts(path: Path) -> dict[str, int]:
    """Embedder to the texts it has embedded; empty where there is no readable file."""
    if not path.exists():
        return {}
    try:
        with closing(sqlite3.connect(f"file:{path}?mode=ro", uri=True, timeout=1.0)) as database:
            query = "SELECT embedder, count(*) FROM vectors GROUP BY embedder"
            return dict(database.execute(query).fetchall())
    except sqlite3.Error:
        return {}
