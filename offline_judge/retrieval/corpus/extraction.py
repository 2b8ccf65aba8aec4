"""Reading HTML and PDF in a supervised process that is killed when a file takes too long."""

from __future__ import annotations

import json
import math
import os
import select
import subprocess
import sys
import time
from importlib.util import find_spec
from pathlib import Path

from offline_judge.errors import DataError, MissingDependencyError

# Seconds that one file may take. A book of a thousand pages takes half a minute and more.
TIME_LIMITS_S = {"html": 30.0, "pdf": 300.0}
_CHILD = "offline_judge.retrieval.corpus.extraction_child"
_NEEDS = {"html": ("trafilatura", "lxml_html_clean"), "pdf": ("pypdf",)}
_CHUNK = 1 << 16
_SPARE_S = 5


class Extractor:
    """Turns files into text, one at a time. Its process starts at first use; `close` ends it.

    Args:
        time_limit: Seconds that one file may take; None for the limit of its kind.
    """

    def __init__(self, time_limit: float | None = None) -> None:
        self._time_limit = time_limit
        self._child: subprocess.Popen[bytes] | None = None

    def read(self, path: Path, kind: str) -> dict[str, str]:
        """`title`, `text`, `url`, `date` of an `html` or `pdf` file; any may be missing or empty.

        Raises:
            DataError: it cannot be read, or takes too much time or memory.
            MissingDependencyError: the package that reads it is not installed.
        """
        for package in _NEEDS[kind]:
            if find_spec(package) is None:
                raise MissingDependencyError(
                    f"Reading {kind.upper()} needs the package `{package}`",
                    where=str(path),
                    remedy='pip install "offline-llm-judge[web]"',
                )
        child = self._started()
        limit = self._time_limit or TIME_LIMITS_S[kind]
        alarm = math.ceil(limit) + _SPARE_S
        request = {"path": os.fspath(path.absolute()), "kind": kind, "alarm": alarm}
        try:
            assert child.stdin is not None
            child.stdin.write(json.dumps(request).encode() + b"\n")
            child.stdin.flush()
            answer = json.loads(_line(child, limit))
        except (OSError, ValueError) as error:
            self.close()
            raise DataError(f"Cannot read the file: {error}", where=str(path)) from error
        if "error" in answer:
            raise DataError(f"Cannot read the file: {answer['error']}", where=str(path))
        return {name: str(value) for name, value in answer.items()}

    def close(self) -> None:
        """End the process at once. Safe to call twice; a later `read` starts another."""
        child, self._child = self._child, None
        if child is None:
            return
        child.kill()
        child.wait()
        for pipe in (child.stdin, child.stdout):
            if pipe is not None:
                pipe.close()

    def _started(self) -> subprocess.Popen[bytes]:
        if self._child is None or self._child.poll() is not None:
            self.close()
            # The child finds this program where this process found it, installed or not.
            path = os.pathsep.join(entry or str(Path.cwd()) for entry in sys.path)
            self._child = subprocess.Popen(
                [sys.executable, "-m", _CHILD],
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=subprocess.DEVNULL,
                env={**os.environ, "PYTHONPATH": path},
                bufsize=0,
            )
        return self._child


def _line(child: subprocess.Popen[bytes], limit: float) -> bytes:
    """The child's next answer.

    Raises:
        ValueError: it took longer than `limit` seconds, or ended.
    """
    assert child.stdout is not None
    deadline = time.monotonic() + limit
    answer = bytearray()
    while not answer.endswith(b"\n"):
        left = deadline - time.monotonic()
        if left <= 0 or not select.select([child.stdout], [], [], left)[0]:
            raise ValueError(f"it takes longer than {limit:g} s")
        chunk = os.read(child.stdout.fileno(), _CHUNK)
        if not chunk:
            raise ValueError(f"its reader ended with {child.wait()}")
        answer += chunk
    return bytes(answer)
