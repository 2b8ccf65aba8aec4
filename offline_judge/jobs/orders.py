"""What is wanted of a run."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from offline_judge.domain.calibration import Calibration
from offline_judge.domain.evidence import UNCHANGED, Amendment
from offline_judge.domain.run import Parent


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
    """What is wanted of a run.

    Attributes:
        method: Name in the method registry.
        options: The method's own.
        limits: Samples and minutes at most.
        files: Name to content of files the run shall keep.
        parent: Whose sample is judged again, for a derived run.
        amendment: What a person changes of that sample's evidence.
        candidate: Who writes the responses that are missing, by name; "" where none is.
        calibration: Reads every judgment a second way; None leaves it at the judge's own.
        needs_labels: Refuse data without any label, before anything is judged.
        run_id: The new run's id, where it is made already; "" makes one.
    """

    method: str
    options: Mapping[str, Any]
    limits: Limits = Limits()
    files: Mapping[str, bytes] = field(default_factory=dict)
    parent: Parent | None = None
    amendment: Amendment = UNCHANGED
    candidate: str = ""
    calibration: Calibration | None = None
    needs_labels: bool = False
    run_id: str = ""


@dataclass(frozen=True)
class DataFile:
    """A data file and how to read it.

    Attributes:
        path: The file.
        mapping: Column to field.
        skip_bad: Bad rows are left out.
        form: The form of a public set; "" for the program's own.
        responses: A file whose responses are joined to the questions.
    """

    path: Path
    mapping: Mapping[str, str] = field(default_factory=dict)
    skip_bad: bool = False
    form: str = ""
    responses: Path | None = None


@dataclass(frozen=True)
class Question:
    """One question with one response, and how to judge it; other fields as of `Order`."""

    question: str
    response: str
    method: str
    options: Mapping[str, Any] = field(default_factory=dict)
    calibration: Calibration | None = None
