"""A handle on the process that holds Chroma: requests with a time limit, and its end."""

from __future__ import annotations

import json
import os
import selectors
import subprocess
import sys
import tempfile
import time
from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

OPEN_S = 120.0
_ASK_S = 60.0
_END_S = 20.0
_PIECE = 1 << 16


class IndexFaultError(Exception):
    """Chroma crashed, hung, or answered what cannot be right. Never leaves this package."""


class ChromaProcess:
    """Chroma in a child process, for one collection.

    Args:
        folder: Chroma's own folder.
        collection: Its name.
        dimension: Length of a vector.
        lock: Descriptor of the lock on the index. The child inherits it, so that the lock holds
            until the child has ended too.
        room: Bytes that a file of Chroma's may grow to.

    Raises:
        IndexFaultError: it does not open.
    """

    def __init__(self, folder: Path, collection: str, dimension: int, lock: int, room: int) -> None:
        self._words = tempfile.TemporaryFile()  # noqa: SIM115 - lives as long as the child
        module = "offline_judge.retrieval.evidence.chroma_child"
        self._process = subprocess.Popen(
            [sys.executable, "-m", module, str(folder), collection, str(dimension), str(room)],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=self._words,
            env=_environment(),
            # Chroma reads settings from a file `.env` where it stands: here is none.
            cwd=folder,
            pass_fds=(lock,),
            bufsize=0,
            # A Ctrl-C in the terminal is for the program, which then ends the child.
            start_new_session=True,
        )
        self._rest = b""
        self._receive(OPEN_S)

    @property
    def pid(self) -> int:
        """The child's."""
        return self._process.pid

    def ask(self, operation: str, *, seconds: float = _ASK_S, **more: Any) -> dict[str, Any]:
        """Send a request and wait for its answer.

        Raises:
            IndexFaultError: the child died or did not answer in time; it is gone now.
        """
        return self._send({"op": operation, **more}, b"", seconds)

    def add(self, passages: Sequence[int], vectors: NDArray[np.float32]) -> None:
        """Add vectors, shape (passages, dimension), or replace those of the same passages.

        Raises:
            IndexFaultError: as `ask`.
        """
        payload = vectors.astype("<f4").tobytes()
        request = {"op": "add", "ids": [int(n) for n in passages], "bytes": len(payload)}
        self._send(request, payload, OPEN_S)

    def query(
        self, vectors: NDArray[np.float32], count: int
    ) -> tuple[list[list[int]], list[list[float]]]:
        """For each vector the nearest passages and their cosine distances.

        Raises:
            IndexFaultError: as `ask`.
        """
        payload = vectors.astype("<f4").tobytes()
        request = {"op": "query", "count": count, "bytes": len(payload)}
        answer = self._send(request, payload, _ASK_S)
        return answer["ids"], answer["distances"]

    def close(self) -> bool:
        """End the child; whether it ended in good order. Safe to call twice."""
        with suppress(OSError):
            self._pipe_in().close()
        try:
            code = self._process.wait(_END_S)
        except subprocess.TimeoutExpired:
            code = -1
        self._end()
        self._words.close()
        return code == 0

    def _send(self, request: dict[str, Any], payload: bytes, seconds: float) -> dict[str, Any]:
        try:
            pipe = self._pipe_in()
            data = memoryview(json.dumps(request).encode() + b"\n" + payload)
            while data:
                data = data[pipe.write(data) or 0 :]
        except (OSError, ValueError) as error:
            raise self._fault(f"it does not listen any more ({error})") from error
        return self._receive(seconds)

    def _receive(self, seconds: float) -> dict[str, Any]:
        deadline = time.monotonic() + seconds
        with selectors.DefaultSelector() as selector:
            selector.register(self._pipe_out(), selectors.EVENT_READ)
            while b"\n" not in self._rest:
                left = deadline - time.monotonic()
                if left <= 0 or not selector.select(left):
                    raise self._fault(f"no answer within {seconds:.0f} s")
                piece = os.read(self._pipe_out().fileno(), _PIECE)
                if not piece:
                    raise self._fault("it ended")
                self._rest += piece
        line, _, self._rest = self._rest.partition(b"\n")
        answer: dict[str, Any] = json.loads(line)
        return answer

    def _fault(self, what: str) -> IndexFaultError:
        with suppress(subprocess.TimeoutExpired):
            # A child that closed its pipe is on its way out; how it ends tells why.
            self._process.wait(0 if "no answer" in what else 5)
        code = self._process.poll()
        self._end()
        ended = f", exit status {code}" if code is not None else ""
        words = self._last_words()
        return IndexFaultError(f"{what}{ended}{f': {words}' if words else ''}")

    def _last_words(self) -> str:
        with suppress(OSError, ValueError):
            self._words.seek(0)
            lines = self._words.read().decode("utf-8", "replace").split("\n")
            self._words.close()
            return next((line.strip()[:200] for line in reversed(lines) if line.strip()), "")
        return ""

    def _end(self) -> None:
        if self._process.poll() is None:
            self._process.kill()
            self._process.wait()
        for pipe in (self._process.stdin, self._process.stdout):
            if pipe is not None:
                with suppress(OSError):
                    pipe.close()

    def _pipe_in(self) -> Any:
        return self._process.stdin

    def _pipe_out(self) -> Any:
        return self._process.stdout


def _environment() -> dict[str, str]:
    """This process's, without settings of Chroma, and with this very package to import."""
    kept = {k: v for k, v in os.environ.items() if not k.upper().startswith(("CHROMA", "OTEL"))}
    root = str(Path(__file__).resolve().parents[3])
    paths = [root, *filter(None, [kept.get("PYTHONPATH", "")])]
    return kept | {"PYTHONPATH": os.pathsep.join(paths), "ANONYMIZED_TELEMETRY": "False"}
