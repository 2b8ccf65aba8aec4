"""Figures a run must reach: how they are written, and when they are missed."""

from __future__ import annotations

from typing import Any

import pytest

from offline_judge.domain.scores import LabelCounts, Score
from offline_judge.errors import UsageError
from offline_judge.metrics.agreement import Row
from offline_judge.metrics.gates import Gate, read_gates, share_scored, shortfalls
from offline_judge.metrics.scoring import figures

GOOD = [[Row(True, True, 0.9)]] * 4 + [[Row(False, False, 0.1)]] * 4
BAD = [[Row(True, False, 0.4)]] * 4 + [[Row(False, True, 0.6)]] * 4
ONE_CLASS = [[Row(True, True, 0.9)]] * 3


def score(raw: list[list[Row]], calibrated: list[list[Row]] | None = None) -> Score:
    counts = LabelCounts(source="l", sha256="0", labelled=8, scored=8)
    second: Any = None if calibrated is None else figures(calibrated, resamples=5)
    return Score(run_id="r", labels=counts, raw=figures(raw, resamples=5), calibrated=second)


def test_pairs_are_read_in_any_spelling_of_the_name() -> None:
    found = read_gates(["kappa=0.6", "Macro-F1=.5", "scored=1"])
    assert found == (Gate("kappa", 0.6), Gate("macro_f1", 0.5), Gate("scored", 1))


@pytest.mark.parametrize(
    ("text", "remedy"),
    [
        ("kapa=0.6", "Did you mean `kappa`?"),
        ("share_gap=0.1", "Figures: accuracy"),
        ("kappa", "metric=value"),
        ("kappa=", "kappa=0.6"),
        ("kappa=nan", "0.6"),
        ("kappa=60", "Write 60 % as 0.6."),
    ],
)
def test_what_cannot_be_reached_is_refused(text: str, remedy: str) -> None:
    with pytest.raises(UsageError) as caught:
        read_gates([text])
    assert remedy in caught.value.remedy


def test_a_figure_twice_is_refused() -> None:
    with pytest.raises(UsageError, match="given twice"):
        read_gates(["kappa=0.1", "kappa=0.2"])


def test_what_is_reached_exactly_is_reached() -> None:
    assert shortfalls(read_gates(["kappa=1", "auroc=1", "scored=1"]), score(GOOD), 1.0) == ()


def test_what_is_missed_says_what_it_is() -> None:
    missed = shortfalls(read_gates(["kappa=0.5", "accuracy=0.9"]), score(BAD), 1.0)
    assert [str(one) for one in missed] == [
        "kappa is not at least 0.5: it is -1.000",
        "accuracy is not at least 0.9: it is 0.000",
    ]


def test_an_undefined_figure_is_missed_with_its_reason() -> None:
    (missed,) = shortfalls(read_gates(["auroc=0"]), score(ONE_CLASS), 1.0)
    assert str(missed) == "auroc is not at least 0: people call every sample correct"


def test_the_calibrated_reading_counts_where_there_is_one() -> None:
    assert shortfalls(read_gates(["kappa=0.9"]), score(BAD, GOOD), 1.0) == ()
    assert len(shortfalls(read_gates(["kappa=0.9"]), score(GOOD, BAD), 1.0)) == 1


def test_unscored_samples_can_fail_a_run() -> None:
    gates = read_gates(["scored=0.9"])
    assert shortfalls(gates, None, share_scored({"scored": 9, "unscored": 1}, 10)) == ()
    (missed,) = shortfalls(gates, None, share_scored({"scored": 8, "error": 2}, 10))
    assert missed.value == 0.8


def test_without_labels_or_samples_the_reason_is_told() -> None:
    gates = read_gates(["kappa=0", "scored=0"])
    first, second = shortfalls(gates, None, share_scored({}, 0), "No sample has a label.")
    assert first.reason == "No sample has a label."
    assert second.reason == "no samples"
