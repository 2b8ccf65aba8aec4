"""What the sample screen reads of a judged sample's row."""

from __future__ import annotations

from typing import Protocol


class JudgedRow(Protocol):
    """A row of a run, as the API gives it."""

    @property
    def label(self) -> bool | None:
        """What people said."""

    @property
    def verdict(self) -> bool | None:
        """What the judge said; None where it is not scored."""

    @property
    def probability(self) -> float | None:
        """Of `true` among the labels."""

    @property
    def calibrated_verdict(self) -> bool | None:
        """As the run's calibration reads it; None where it has none."""

    @property
    def outcome(self) -> str:
        """How judging ended."""

    @property
    def reason(self) -> str:
        """Why it is not scored."""

    @property
    def detail(self) -> str:
        """What was seen then."""

    @property
    def seconds(self) -> float:
        """That judging it took."""
