"""A sample of a run as a row of a table."""

from __future__ import annotations

from offline_judge.domain.run_rows import UNFINISHED, IndexRow
from offline_judge_tui.text import probability, truth
from offline_judge_tui.widgets.row_table import Column, TableRow

COLUMNS = (
    Column("sample", 12),
    Column("label", 5),
    Column("verdict", 7),
    Column("prob.", 5, right=True),
    Column("outcome", 12),
    Column("s", 6, right=True, drop=2),
    Column("question", 8, grow=True, drop=1),
)


def table_row(row: IndexRow, *, live: bool) -> TableRow:
    """The row; in a run that goes on, what has no outcome yet is being judged."""
    outcome = f"{row.outcome}: {row.reason}" if row.reason else row.outcome
    judging = live and row.outcome == UNFINISHED
    wrong = row.label is not None and row.verdict is not None and row.label != row.verdict
    # A sign beside the colour: some see no colours, and some terminals show none.
    verdict = truth(row.verdict) + (" ≠" if wrong else "")
    style = "odd" if wrong else "bad" if row.outcome in ("unscored", "error") else ""
    cells = (
        row.sample_id,
        truth(row.label),
        verdict,
        probability(row.probability),
        "judging" if judging else outcome,
        f"{row.seconds:.1f}" if row.seconds else "",
        row.question,
    )
    return TableRow(row.sample_id, cells, "dim" if judging else style)
