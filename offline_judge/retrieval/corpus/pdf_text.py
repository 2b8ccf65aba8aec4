"""PDF to text. Runs in the child process of `extraction.py`, as some files take forever."""

from __future__ import annotations

import io
import re

# A word parted at the end of a line.
_PARTED = re.compile(r"([^\W\d_])-\n([^\W\d_])")
_INNER_BREAK = re.compile(r"(?<![.!?:\n])\n(?!\n)")
# What the parser raises on damaged files besides errors of its own.
_DAMAGE = (LookupError, TypeError, AttributeError, ArithmeticError, RuntimeError)
_DATE = re.compile(r"D:(\d{4})(\d{2})(\d{2})")


def read_pdf(raw: bytes) -> dict[str, str]:
    """`title`, `text` with pages parted by blank lines, and `date`.

    Raises:
        ValueError: it is no PDF, is damaged, or asks for a password.
    """
    import pypdf
    from pypdf.errors import DependencyError, PyPdfError

    try:
        reader = pypdf.PdfReader(io.BytesIO(raw))
        if reader.is_encrypted and not reader.decrypt(""):
            raise ValueError("it is locked by a password")
        pages = [page.extract_text() or "" for page in reader.pages]
        about = reader.metadata
        title = str(about.get("/Title") or "") if about else ""
        made = str(about.get("/CreationDate") or "") if about else ""
    except (PyPdfError, DependencyError, OSError, *_DAMAGE) as error:
        raise ValueError(f"it cannot be read: {error}") from error
    date = _DATE.match(made)
    return {
        "title": " ".join(title.split()),
        "text": "\n\n".join(filter(None, map(_flowing, pages))),
        "date": "-".join(date.groups()) if date else "",
    }


def _flowing(page: str) -> str:
    """A page's lines joined to paragraphs, with parted words whole again."""
    text = _PARTED.sub(r"\1\2", page.replace("\r\n", "\n").strip())
    return _INNER_BREAK.sub(" ", text)
