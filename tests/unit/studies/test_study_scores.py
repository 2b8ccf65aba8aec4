"""Scores of a study as a file, and thresholds fitted on those of another one."""

from __future__ import annotations

from pathlib import Path

import pytest
from study_helpers import report, score, scores

from offline_judge.errors import DataError, UsageError
from offline_judge.studies.scores import read_scores, write_scores
from offline_judge.studies.thresholds import fit, parse_source


def test_both_sides_are_read_at_thresholds_of_one_rule(tmp_path: Path) -> None:
    # On the other set people say yes from .7 on under sage and from .3 on under direct.
    other = [
        score(name, n, says=says, label=says >= edge, sample=f"o{n}")
        for name, edge in (("sage", 0.7), ("direct", 0.3))
        for n, says in enumerate((0.1, 0.2, 0.4, 0.6, 0.75, 0.9))
    ]
    path = tmp_path / "scores.csv"
    path.write_text(write_scores(other))
    fitted = fit(path, 60, ["sage", "direct"])
    assert len(fitted.samples) == 6
    assert 0.6 < fitted.thresholds["sage"] <= 0.75
    assert 0.2 < fitted.thresholds["direct"] <= 0.4
    here = [score(name, n, says=0.65, label=False) for name in ("sage", "direct") for n in (0, 2)]
    found = report(here, fitted=fitted)
    says = {
        (one.condition, one.reading): one.figures["says_correct"].value for one in found.figures
    }
    assert says["sage", "default"] == says["direct", "default"] == 1.0
    assert (says["sage", "fitted"], says["direct", "fitted"]) == (0.0, 1.0)


def test_the_first_samples_of_the_file_fit_all_conditions(tmp_path: Path) -> None:
    path = tmp_path / "scores.csv"
    path.write_text(write_scores([*scores("sage", 8), *scores("direct", 8)[2:]]))
    fitted = fit(path, 3, ["sage", "direct", "lexical"])
    assert fitted.samples == ("s2", "s3", "s4")
    assert set(fitted.missing) == {"lexical"}


def test_fitting_on_samples_that_are_judged_is_said(tmp_path: Path) -> None:
    path = tmp_path / "scores.csv"
    path.write_text(write_scores(scores("sage", 6)))
    found = report(scores("sage", 6), fitted=fit(path, 4, ["sage"]))
    assert any("flatter" in note for note in found.about.notes)


@pytest.mark.parametrize(
    ("text", "count"), [("{}", 60), ("{}:25", 25), ("{}/scores.csv:7", 7), ("{}/scores.csv", 60)]
)
def test_where_thresholds_come_from(tmp_path: Path, text: str, count: int) -> None:
    (tmp_path / "scores.csv").write_text(write_scores(scores("sage", 6)))
    assert parse_source(text.format(tmp_path)) == (tmp_path / "scores.csv", count)


@pytest.mark.parametrize("text", ["{}:0", "{}/none", "{}/none:3"])
def test_thresholds_from_nowhere_are_refused(tmp_path: Path, text: str) -> None:
    (tmp_path / "scores.csv").write_text(write_scores(scores("sage", 6)))
    with pytest.raises(UsageError):
        parse_source(text.format(tmp_path))


def test_scores_are_read_as_they_were_written(tmp_path: Path) -> None:
    rows = (*scores("sage", 5, gold_round=2, searches=3), score("sage", 9, says=None, label=True))
    path = tmp_path / "scores.csv"
    path.write_text(write_scores(rows))
    assert read_scores(path) == rows


@pytest.mark.parametrize(
    ("old", "new", "told"),
    [("true", "perhaps", "label"), (",0.8", ",eight", "probability"), (",0.8", ",nan", "probab")],
)
def test_a_damaged_row_is_named(tmp_path: Path, old: str, new: str, told: str) -> None:
    path = tmp_path / "scores.csv"
    path.write_text(write_scores(scores("sage", 8)).replace(old, new, 1))
    with pytest.raises(DataError, match=f"line 2.*{told}"):
        read_scores(path)


def test_an_empty_file_holds_no_scores(tmp_path: Path) -> None:
    (tmp_path / "scores.csv").write_text("")
    with pytest.raises(DataError, match="no scores"):
        read_scores(tmp_path / "scores.csv")
