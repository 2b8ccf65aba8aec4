"""Agreement with people: the figures, and where they are undefined."""

from __future__ import annotations

import subprocess
import sys

import pytest

from offline_judge.metrics.agreement import agreement


def test_accuracy_and_kappa_of_a_worked_example() -> None:
    # 6 agreements of 10; people say true to 5, the judge to 7: expected .5, so kappa .2.
    labels = [True] * 5 + [False] * 5
    verdicts = [True] * 4 + [False] + [True] * 3 + [False] * 2
    found = agreement(labels, verdicts, unscored=3)
    assert found is not None
    assert found.n == 10
    assert found.accuracy == pytest.approx(0.6)
    assert found.kappa == pytest.approx(0.2)
    assert found.unscored == 3


def test_kappa_is_undefined_where_all_say_the_same_and_no_warning_leaks() -> None:
    found = agreement([True, True], [True, True], unscored=0)
    assert found is not None
    assert found.kappa is None
    assert found.accuracy == 1.0


def test_kappa_is_zero_where_the_judge_always_says_yes() -> None:
    found = agreement([True, False, True], [True, True, True], unscored=0)
    assert found is not None
    assert found.kappa == pytest.approx(0.0)


def test_kappa_is_zero_where_both_are_constant_and_opposed() -> None:
    found = agreement([True, True], [False, False], unscored=0)
    assert found is not None
    assert found.kappa == pytest.approx(0.0)


def test_no_scored_sample_has_no_agreement() -> None:
    assert agreement([], [], unscored=7) is None


def test_different_lengths_are_refused() -> None:
    with pytest.raises(ValueError, match="2 labels but 1 verdicts"):
        agreement([True, False], [True], unscored=0)


def test_scikit_learn_is_imported_only_when_asked() -> None:
    code = "import sys, offline_judge.metrics.agreement; sys.exit('sklearn' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == 0
