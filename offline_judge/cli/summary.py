"""The summary of a run as names and values."""

from __future__ import annotations

from typing import TYPE_CHECKING

from offline_judge.cli.derived import origin
from offline_judge.domain.numbers import count, duration, percent

if TYPE_CHECKING:
    from offline_judge.domain.calibration import Calibration
    from offline_judge.domain.run import Agreement, RunManifest, RunSummary


_OWN_FORMS = ("jsonl", "csv", "tsv")


def manifest_pairs(manifest: RunManifest) -> list[tuple[str, str]]:
    """Who judged what, with what."""
    judge, engine = manifest.judge.name, manifest.judge.engine
    if engine != judge:  # they are one where there is no judge at all
        judge = f"{judge} ({f'{engine} {manifest.judge.engine_version}'.strip()})"
    skipped = f", {manifest.data.skipped:,} skipped" if manifest.data.skipped else ""
    form = "" if manifest.data.format in _OWN_FORMS else f", {manifest.data.format}"
    pairs = [
        ("run", manifest.run_id),
        ("started", manifest.created),
        ("method", manifest.method),
        ("judge", judge),
        ("data", f"{manifest.data.path} ({count(manifest.data.rows, 'row')}{skipped}{form})"),
    ]
    if manifest.data.responses is not None:
        joined = manifest.data.responses
        pairs.append(("responses", f"{joined.path} ({count(joined.rows, 'row')})"))
    if manifest.candidate is not None:
        pairs.append(("candidate", manifest.candidate.model.name))
    if manifest.parent is not None:
        pairs.append(("derived from", origin(manifest.parent)))
    if manifest.calibration is not None:
        pairs.append(("calibration", _calibration(manifest.calibration)))
    if manifest.search:
        pairs.append(("search", str(manifest.search.get("name", "yes"))))
    leaves = "; ".join(manifest.leaves_machine) or "nothing"
    return [*pairs, ("leaves this machine", leaves)]


def summary_pairs(summary: RunSummary) -> list[tuple[str, str]]:
    """What came out, each figure with what it leaves out."""
    pairs = [("status", summary.status), ("samples", _samples(summary))]
    if summary.reasons:
        pairs.append(("not scored", _listing(summary.reasons)))
    scored = summary.outcomes.get("scored", 0)
    if scored:
        pairs.append(("verdicts", _verdicts(summary.verdict_true, scored)))
    if summary.calibrated_true is not None:
        pairs.append(("calibrated", _verdicts(summary.calibrated_true, scored)))
    doubts = _doubts(summary)
    if doubts:
        pairs.append(("rationales", doubts))
    if summary.agreement is not None:
        pairs.append(("agreement", _agreement(summary.agreement)))
    if summary.calibrated_agreement is not None:
        pairs.append(("calibrated agreement", _agreement(summary.calibrated_agreement)))
    if summary.searches or summary.failed_searches or summary.distinct_queries is not None:
        pairs.append(("searches", _searches(summary)))
        pairs.append(("evidence", _listing(summary.evidence_states) or "-"))
    if summary.responses_written:
        pairs.append(("responses", _responses(summary)))
    pairs.append(("tokens", _tokens(summary)))
    pairs.append(("time", f"{duration(summary.seconds)}, summed over samples"))
    if summary.warnings:
        pairs.append(("warnings", "\n".join(summary.warnings)))
    return pairs


def _calibration(calibration: Calibration) -> str:
    fitted = f"{count(calibration.n, 'sample')} of {count(calibration.groups, 'question')}"
    return (
        f"{calibration.reading.kind}, correct from {calibration.reading.threshold:.3f}, fitted on "
        f"{fitted} ({calibration.sha256[:12]})"
    )


def _verdicts(right: int, scored: int) -> str:
    wrong = scored - right
    return f"{right:,} true ({percent(right, scored)}), {wrong:,} false (n = {scored:,})"


def _samples(summary: RunSummary) -> str:
    outcomes = [f"{number:,} {outcome}" for outcome, number in summary.outcomes.items() if number]
    return ", ".join([f"{summary.planned:,} planned", *outcomes])


def _responses(summary: RunSummary) -> str:
    parts = [f"{summary.responses_written:,} written by the candidate"]
    if summary.responses_cut:
        parts.append(f"{summary.responses_cut:,} cut by its output limit")
    if summary.responses_missing:
        parts.append(f"{summary.responses_missing:,} of them none to judge")
    return ", ".join(parts)


def _doubts(summary: RunSummary) -> str:
    parts = []
    if summary.disagreeing_rationales:
        parts.append(f"{summary.disagreeing_rationales:,} argue for the other label")
    if summary.dropped_citations:
        cited = count(summary.dropped_citations, "citation")
        parts.append(f"{cited} of evidence that is not in the notes dropped")
    return ", ".join(parts)


def _listing(counts: dict[str, int]) -> str:
    ordered = sorted(counts.items(), key=lambda item: (-item[1], item[0]))
    return ", ".join(f"{number:,} {name.replace('_', ' ')}" for name, number in ordered if number)


def _agreement(agreement: Agreement) -> str:
    kappa = "undefined" if agreement.kappa is None else f"{agreement.kappa:.2f}"
    return (
        f"accuracy {agreement.accuracy:.2f}, Cohen's kappa {kappa} "
        f"(n = {agreement.n:,}, {agreement.unscored:,} labelled but unscored)"
    )


def _searches(summary: RunSummary) -> str:
    parts = [f"{summary.searches:,} made"]
    if summary.recorded_searches:
        parts.append(f"{summary.recorded_searches:,} of them answered from the record")
    if summary.failed_searches:
        parts.append(f"{summary.failed_searches:,} failed")
    if summary.distinct_queries is not None:
        parts.append(f"{summary.distinct_queries:.1f} distinct queries a sample")
    return ", ".join([*parts, count(summary.fallback_rounds, "fall-back round")])


def _tokens(summary: RunSummary) -> str:
    return (
        f"{summary.prompt_tokens:,} sent, {summary.read_anew:,} of them read anew, "
        f"{summary.completion_tokens:,} generated; {count(summary.calls, 'call')}, "
        f"{count(summary.reused_calls, 'answer')} from the cache"
    )
