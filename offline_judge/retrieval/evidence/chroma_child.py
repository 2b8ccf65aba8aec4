"""The process that holds Chroma: it may crash there without taking anything with it.

Run as `python -m offline_judge.retrieval.evidence.chroma_child FOLDER COLLECTION DIMENSION ROOM`.
It reads requests from stdin, each a line of JSON and behind it as many bytes of float32 vectors
as the line says, and answers each by a line of JSON on stdout. It ends when stdin does, and at the
first fault, whose last words are on stderr. No file of its may grow beyond ROOM bytes.
"""

from __future__ import annotations

import json
import os
import resource
import sys
from typing import TYPE_CHECKING, Any, BinaryIO

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

_SEARCHED = 200  # ef_search, twice Chroma's own: a little slower, and finds more


def open_collection(folder: str, name: str) -> Any:
    """The collection for vectors of our own; made where absent. No telemetry, no embedder."""
    import chromadb
    from chromadb.config import Settings

    client = chromadb.PersistentClient(folder, settings=Settings(anonymized_telemetry=False))
    hnsw: Any = {"space": "cosine", "ef_search": _SEARCHED, "num_threads": 1}
    return client.get_or_create_collection(
        name, embedding_function=None, configuration={"hnsw": hnsw}
    )


class Child:
    """Answers requests on one collection."""

    def __init__(self, collection: Any, dimension: int) -> None:
        self._collection = collection
        self._dimension = dimension

    def answer(self, request: dict[str, Any], payload: bytes) -> dict[str, Any]:
        """What `op` asks for: `count`, `ids`, `add`, `delete` or `query`."""
        operation = request["op"]
        if operation == "count":
            return {"count": self._collection.count()}
        if operation == "ids":
            return {"ids": [int(name) for name in self._collection.get(include=[])["ids"]]}
        if operation == "delete":
            self._collection.delete(ids=[str(number) for number in request["ids"]])
            return {}
        vectors = self._vectors(payload)
        if operation == "add":
            self._collection.upsert(ids=[str(n) for n in request["ids"]], embeddings=vectors)
            return {}
        found = self._collection.query(
            query_embeddings=vectors, n_results=request["count"], include=["distances"]
        )
        ids = [[int(name) for name in row] for row in found["ids"]]
        return {"ids": ids, "distances": found["distances"]}

    def _vectors(self, payload: bytes) -> NDArray[np.float32]:
        import numpy as np

        return np.frombuffer(payload, "<f4").reshape(-1, self._dimension)


def serve(child: Child, requests: BinaryIO, answers: BinaryIO) -> None:
    """Answer requests until they end."""
    while line := requests.readline():
        request = json.loads(line)
        payload = requests.read(request.get("bytes", 0))
        _say(answers, child.answer(request, payload))


def main() -> None:
    """Open, say that it is open, and serve."""
    folder, collection, dimension, room = sys.argv[1:]
    # A damaged index may go on writing one file until the disk is full.
    resource.setrlimit(resource.RLIMIT_FSIZE, (int(room), int(room)))
    answers = os.fdopen(os.dup(sys.stdout.fileno()), "wb")
    # Whatever Chroma prints must not look like an answer.
    os.dup2(sys.stderr.fileno(), sys.stdout.fileno())
    child = Child(open_collection(folder, collection), int(dimension))
    _say(answers, {"open": True})
    serve(child, sys.stdin.buffer, answers)


def _say(answers: BinaryIO, answer: dict[str, Any]) -> None:
    answers.write(json.dumps(answer).encode() + b"\n")
    answers.flush()


if __name__ == "__main__":
    main()
