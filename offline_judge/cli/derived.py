"""What is said of a run that judges a sample of another one again."""

from __future__ import annotations

from typing import TYPE_CHECKING

from offline_judge.cli.rows import JudgedRow, outcome, truth
from offline_judge.domain.numbers import count, share

if TYPE_CHECKING:
    from offline_judge.domain.run import Parent


def origin(parent: Parent) -> str:
    """Of which run and sample, and what was changed of its evidence."""
    changes = []
    if parent.passages:
        changes.append(f"with {count(len(parent.passages), 'passage')} of your own")
    if parent.without:
        changes.append(f"without {', '.join(parent.without)}")
    return ", ".join((parent.run_id, f"sample {parent.sample_id}", *changes))


def verdict(row: JudgedRow | None) -> str:
    """A verdict with its probability, or why there is none."""
    if row is None:
        return "not known: that run cannot be read any more"
    if row.verdict is None:
        return outcome(row)
    return f"{truth(row.verdict)} (probability of true {share(row.probability)})"


def comparison(before: JudgedRow | None, now: JudgedRow | None) -> list[tuple[str, str]]:
    """The verdict without the added passages, and with them."""
    told = "not judged yet" if now is None else verdict(now)
    return [("verdict before", verdict(before)), ("verdict now", told)]
