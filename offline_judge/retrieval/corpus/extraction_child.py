"""The process that reads HTML and PDF: one request a line on stdin, one answer a line on stdout.

Whatever a file makes of it (endless work, a full memory, a crash) stays in this process, which its
parent kills and starts anew.
"""

from __future__ import annotations

import json
import os
import resource
import signal
import sys
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from typing import Any

from offline_judge.retrieval.corpus.html_text import read_html
from offline_judge.retrieval.corpus.pdf_text import read_pdf

MEMORY_BYTES = 2 << 30

_READERS: dict[str, Callable[[bytes], dict[str, str]]] = {"html": read_html, "pdf": read_pdf}


def main() -> None:
    """Answer until stdin ends."""
    with suppress(ValueError, OSError):
        resource.setrlimit(resource.RLIMIT_AS, (MEMORY_BYTES, MEMORY_BYTES))
    answers = os.dup(1)
    # Whatever a library prints must not get among the answers.
    os.dup2(2, 1)
    for line in sys.stdin.buffer:
        request = json.loads(line)
        # Ends this process whatever it is doing, should its parent be gone by then.
        signal.alarm(request["alarm"])
        answer = json.dumps(_answer(request)).encode() + b"\n"
        signal.alarm(0)
        view = memoryview(answer)
        while view:
            view = view[os.write(answers, view) :]


def _answer(request: dict[str, Any]) -> dict[str, str]:
    try:
        return _READERS[request["kind"]](Path(request["path"]).read_bytes())
    except MemoryError:
        return {"error": "reading it takes too much memory"}
    except (ValueError, OSError, RecursionError) as error:
        return {"error": str(error)}


if __name__ == "__main__":
    main()
