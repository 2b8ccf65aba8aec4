"""The frozen base of every domain type, and content hashing."""

from __future__ import annotations

import hashlib
import json
from typing import Any

from pydantic import BaseModel, ConfigDict


class Frozen(BaseModel):
    """Immutable, strict about unknown fields, and without NaN or infinity."""

    model_config = ConfigDict(frozen=True, extra="forbid", allow_inf_nan=False)


def canonical_json(value: Any) -> str:
    """Serialise to JSON with sorted keys, no spaces and no NaN; the input of every hash."""
    return json.dumps(
        value, ensure_ascii=False, sort_keys=True, separators=(",", ":"), allow_nan=False
    )


def content_hash(value: Any) -> str:
    """SHA-256 (64 hex digits) over the canonical JSON of `value`."""
    return hashlib.sha256(canonical_json(value).encode()).hexdigest()


def text_hash(text: str) -> str:
    """SHA-256 (64 hex digits) over the UTF-8 bytes of `text`; lone surrogates are kept as such."""
    return hashlib.sha256(text.encode("utf-8", "surrogatepass")).hexdigest()
