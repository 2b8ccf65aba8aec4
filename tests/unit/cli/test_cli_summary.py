"""The end of a run in words: what is doubtful stands beside what came out."""

from __future__ import annotations

from offline_judge.cli.summary import summary_pairs
from offline_judge.domain.run import RunSummary

SUMMARY = RunSummary(run_id="r", status="completed", planned=4, outcomes={"scored": 4})


def test_rationales_that_argue_the_other_way_and_dropped_citations_are_counted() -> None:
    doubtful = SUMMARY.model_copy(update={"disagreeing_rationales": 2, "dropped_citations": 1})
    assert dict(summary_pairs(doubtful))["rationales"] == (
        "2 argue for the other label, 1 citation of evidence that is not in the notes dropped"
    )


def test_without_doubts_nothing_is_said_of_rationales() -> None:
    assert "rationales" not in dict(summary_pairs(SUMMARY))
