"""A stream for narration that nobody may be listening to any more."""

from __future__ import annotations

import contextlib
from typing import Any, TextIO


class DeafStream:
    """Passes text on to a stream; a reader that went away does not hurt the writer."""

    def __init__(self, stream: TextIO) -> None:
        self._stream = stream

    def write(self, text: str) -> int:
        """Write, or let it be."""
        with contextlib.suppress(OSError, ValueError):
            self._stream.write(text)
        return len(text)

    def flush(self) -> None:
        """Flush, or let it be."""
        with contextlib.suppress(OSError, ValueError):
            self._stream.flush()

    def __getattr__(self, name: str) -> Any:
        return getattr(self._stream, name)
