"""What is wanted of a run."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any


@dataclass(frozen=True)
class Limits:
    """Samples at most, and minutes after which none is taken; None for no limit."""

    limit: int | None = None
    minutes: float | None = None

    @property
    def given(self) -> bool:
        """There is a limit, so samples are taken in a fixed random order."""
        return self.limit is not None or self.minutes is not None


@dataclass(frozen=True)
class Order:
    """What is wanted of a run: method with options, limits, and files the run shall keep."""

    method: str
    options: Mapping[str, Any]
    limits: Limits = Limits()
    files: Mapping[str, bytes] = field(default_factory=dict)


@dataclass(frozen=True)
class DataFile:
    """A data file and how to read it: column to field, and whether bad rows are left out."""

    path: Path
    mapping: Mapping[str, str] = field(default_factory=dict)
    skip_bad: bool = False


@dataclass(frozen=True)
class Question:
    """One question with one response, and how to judge it."""

    question: str
    response: str
    method: str
    options: Mapping[str, Any] = field(default_factory=dict)
