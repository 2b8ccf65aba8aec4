"""What the command line reads of a judged sample's row."""

from __future__ import annotations

from typing import Protocol


class JudgedRow(Protocol):
    """A row of a run, as the API gives it."""

    @property
    def id(self) -> str:
        """The sample's id."""

    @property
    def question(self) -> str:
        """What was asked."""

    @property
    def response(self) -> str:
        """What was judged."""

    @property
    def label(self) -> bool | None:
        """What people said."""

    @property
    def verdict(self) -> bool | None:
        """What the judge said; None where it is not scored."""

    @property
    def calibrated_verdict(self) -> bool | None:
        """The same read by the run's calibration; None where it has none."""

    @property
    def probability(self) -> float | None:
        """Of `true` among the labels."""

    @property
    def outcome(self) -> str:
        """How judging ended."""

    @property
    def reason(self) -> str:
        """Why it is not scored."""

    @property
    def searches(self) -> int:
        """Searches made or reused."""


def truth(value: bool | None) -> str:
    """`true`, `false`, or a dash where nothing was said."""
    return "-" if value is None else str(value).lower()


def outcome(row: JudgedRow) -> str:
    """How judging ended, with the reason where there is one that says more."""
    says_more = row.reason not in ("", str(row.outcome))
    return f"{row.outcome}: {row.reason}" if says_more else str(row.outcome)
