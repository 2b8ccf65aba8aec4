"""The head of the sample screen: which sample, how it was judged, and what is wrong with it."""

from __future__ import annotations

from typing import TYPE_CHECKING

from textual.content import Content

from offline_judge_tui.text import BAD, DIM, GOOD, WARN, of_true, piece, probability, truth

if TYPE_CHECKING:
    from offline_judge.domain.run import Parent
    from offline_judge.errors import OfflineJudgeError
    from offline_judge_tui.reading import Reading
    from offline_judge_tui.traces.rows import JudgedRow


def head(reading: Reading) -> Content:
    """Two lines of any sample, three of one that was judged again."""
    view, manifest = reading.view, reading.manifest
    where = f"  run {manifest.run_id}, {manifest.method}, {manifest.judge.name}"
    lines = [
        Content.assemble(("sample ", DIM), piece(view.sample.id, "bold"), piece(where, DIM)),
        _verdict(view.row),
    ]
    if view.parent is not None:
        lines.append(_derived(view.parent, view.before))
    return Content("\n").join(lines)


def problem(error: OfflineJudgeError) -> Content:
    """What went wrong: message, place and remedy, a line each."""
    told = [piece(error.message, WARN)]
    told += [Content.assemble(("at ", DIM), piece(error.where))] if error.where else []
    told += [piece(error.remedy)] if error.remedy else []
    return Content("\n").join(told)


def _verdict(row: JudgedRow) -> Content:
    if row.verdict is None:
        said = dict.fromkeys(part for part in (str(row.outcome), row.reason, row.detail) if part)
        return piece(": ".join(said), WARN)
    parts = [
        Content.assemble(
            ("verdict ", DIM),
            (truth(row.verdict), f"bold {GOOD if row.verdict else BAD}"),
            of_true(row.probability),
        )
    ]
    if row.label is not None:
        agrees = row.label == row.verdict
        sign = "= agrees" if agrees else "≠ disagrees"
        parts.append(
            Content.assemble(
                ("  label ", DIM), truth(row.label), (f"  {sign}", "" if agrees else WARN)
            )
        )
    if row.calibrated_verdict is not None:
        parts.append(Content.assemble(("  calibrated ", DIM), truth(row.calibrated_verdict)))
    return Content("").join(parts)


def _derived(parent: Parent, before: JudgedRow | None) -> Content:
    changes = [f"with {passage}" for passage in parent.passages]
    changes += [f"without {passage}" for passage in parent.without]
    if before is None:
        was = "its verdict there cannot be read any more"
    elif before.verdict is None:
        was = f"{before.outcome} there"
    else:
        was = f"{truth(before.verdict)} {probability(before.probability)} there"
    told = f"{parent.run_id}, {', '.join(changes)}; {was}"
    return Content.assemble(("judged again from ", DIM), piece(told))
