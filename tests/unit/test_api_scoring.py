"""Scoring and gating through the API, with a judge whose probabilities are known."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path

import pytest
from api_fakes import direct, write_data
from scoring_fakes import COUNT, data_of, judged, quick, write_labels, yes_sayer

from offline_judge import api
from offline_judge.errors import DataError, UsageError
from offline_judge.settings import Settings


@pytest.fixture
def settings(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Settings:
    # A socket of one's own, and no run of the user's.
    monkeypatch.setenv("XDG_RUNTIME_DIR", str(tmp_path))
    return yes_sayer(tmp_path)


@pytest.fixture
def data(tmp_path: Path) -> Path:
    return data_of(tmp_path)


@pytest.fixture
def run_id(settings: Settings, data: Path) -> str:
    return judged(settings, data)


def test_a_run_is_scored_against_the_labels_of_its_data(run_id: str, settings: Settings) -> None:
    found = api.score(quick(run_id), settings)
    assert (found.labels.labelled, found.labels.scored, found.labels.unlabelled) == (40, 40, 0)
    # It calls all correct, and people half of them.
    assert found.raw.accuracy.value == 0.5
    assert found.raw.kappa.value == 0
    assert found.raw.share_correct.value == 1
    assert found.raw.share_people.value == 0.5
    assert found.raw.confusion.false_positive == 20
    # Every even response has the higher probability, and 4 of the 20 odd ones.
    assert found.raw.auroc.value == pytest.approx(1 - 4 / 20 / 2)
    assert found.raw.corrected.share.value is None
    assert "chance" in found.raw.corrected.share.reason
    assert found.raw.accuracy.groups == 20
    assert found.calibrated is None


def test_a_file_of_labels_goes_before_those_of_the_data(
    run_id: str, settings: Settings, tmp_path: Path
) -> None:
    labels = write_labels(tmp_path / "l.jsonl", {f"s{n}": True for n in range(10)})
    found = api.score(quick(run_id, labels), settings)
    assert (found.labels.labelled, found.labels.unlabelled) == (10, 30)
    assert found.raw.accuracy.value == 1
    assert found.raw.kappa.value is None
    assert "chance agrees fully" in found.raw.kappa.reason


def test_labels_of_unknown_samples_are_an_error_unless_left_out(
    run_id: str, settings: Settings, tmp_path: Path
) -> None:
    labels = write_labels(tmp_path / "l.jsonl", {"s0": True, "s1": False, "stranger": True})
    with pytest.raises(DataError, match="`stranger`"):
        api.score(quick(run_id, labels), settings)
    found = api.score(quick(run_id, labels, skip_bad=True), settings)
    assert (found.labels.labelled, found.labels.unknown) == (2, 1)


def test_labels_of_samples_beyond_a_limit_are_counted_and_no_error(
    settings: Settings, data: Path, tmp_path: Path
) -> None:
    limited = api.run(direct(data, limit=4), settings)
    labels = write_labels(tmp_path / "l.jsonl", {f"s{n}": n % 2 == 0 for n in range(COUNT)})
    request = quick(limited.manifest.run_id, labels)
    found = api.score(request, settings)
    assert (found.labels.labelled, found.labels.not_taken_up) == (4, COUNT - 4)


@pytest.mark.parametrize("fate", ["gone", "changed"])
def test_once_the_data_is_gone_nobody_can_tell_later_samples_from_mistakes(
    settings: Settings, data: Path, tmp_path: Path, fate: str
) -> None:
    limited = api.run(direct(data, limit=4), settings)
    labels = write_labels(tmp_path / "l.jsonl", {f"s{n}": n % 2 == 0 for n in range(COUNT)})
    if fate == "gone":
        data.rename(tmp_path / "moved.jsonl")
    else:
        write_data(data, 2)
    request = quick(limited.manifest.run_id, labels)
    with pytest.raises(DataError, match="gone or has changed, so it cannot be told") as caught:
        api.score(request, settings)
    assert "Mend the ids" not in caught.value.remedy
    assert "Put the data file back" in caught.value.remedy
    found = api.score(replace(request, skip_bad=True), settings)
    assert (found.labels.labelled, found.labels.unknown) == (4, COUNT - 4)


def test_a_run_without_labels_says_where_to_name_them(settings: Settings, tmp_path: Path) -> None:
    bare = write_data(tmp_path / "bare.jsonl", 2, s0={"label": None}, s1={"label": None})
    run_id = api.run(direct(bare), settings).manifest.run_id
    with pytest.raises(DataError) as caught:
        api.score(quick(run_id), settings)
    assert "--labels" in caught.value.remedy


def test_a_run_in_which_nothing_is_scored_has_no_figures_but_counts(
    settings: Settings, tmp_path: Path
) -> None:
    long = {"response": "word " * 3000}
    data = write_data(tmp_path / "long.jsonl", 2, s0=long, s1=long)
    run_id = api.run(direct(data), replace(settings, window=1024)).manifest.run_id
    found = api.score(quick(run_id), settings)
    assert (found.labels.labelled, found.labels.scored) == (2, 0)
    assert found.labels.unscored == {"overflow": 2}
    assert found.raw.accuracy.value is None
    assert found.raw.accuracy.reason
    json.dumps(found.model_dump(), allow_nan=False)


def test_unscored_samples_stand_beside_the_figures(settings: Settings, tmp_path: Path) -> None:
    data = write_data(tmp_path / "d.jsonl", 6, s1={"response": "word " * 3000})
    run_id = api.run(direct(data), replace(settings, window=1024)).manifest.run_id
    found = api.score(quick(run_id), settings)
    assert (found.labels.scored, found.labels.unscored) == (5, {"overflow": 1})
    assert found.raw.accuracy.n == 5


def test_labels_of_a_public_form_are_joined_by_its_own_ids(
    settings: Settings, tmp_path: Path
) -> None:
    rows = [
        {
            "question": f"What is {n}?",
            "golden_answer": "It",
            "answer_x": f"It is {n}.",
            "judge_x": n % 2 == 0,
        }
        for n in range(4)
    ]
    path = tmp_path / "set.json"
    path.write_text(json.dumps(rows))
    run_id = api.run(replace(direct(path), format="evouna"), settings).manifest.run_id
    found = api.score(quick(run_id, path, format="evouna"), settings)
    assert found.labels.labelled == 4


def test_held_out_labels_give_the_error_rates(
    run_id: str, settings: Settings, tmp_path: Path
) -> None:
    first = write_labels(tmp_path / "a.jsonl", {f"s{n}": n % 2 == 0 for n in range(20)})
    # On the others the judge is right half of the time it should say no... which it never does.
    second = write_labels(tmp_path / "b.jsonl", {f"s{n}": True for n in range(20, 40)})
    found = api.score(quick(run_id, first), settings, held_out=second)
    assert found.raw.corrected.source == "held-out"
    assert found.raw.corrected.sensitivity == 1
    assert found.raw.corrected.specificity is None
    assert "every sample correct" in found.raw.corrected.share.reason


def test_questions_that_are_scored_cannot_be_held_out(
    run_id: str, settings: Settings, tmp_path: Path
) -> None:
    # s0 and s1 answer one question.
    first = write_labels(tmp_path / "a.jsonl", {"s0": True})
    second = write_labels(tmp_path / "b.jsonl", {"s1": False})
    with pytest.raises(DataError, match="held out are scored too"):
        api.score(quick(run_id, first), settings, held_out=second)


def test_a_run_that_misses_a_figure_says_so(settings: Settings, data: Path) -> None:
    view = api.run(replace(direct(data), fail_under=["kappa=0.5", "scored=1"]), settings)
    assert [missed.gate.name for missed in view.shortfalls] == ["kappa"]


def test_a_figure_that_needs_labels_is_refused_beforehand(
    settings: Settings, tmp_path: Path
) -> None:
    bare = write_data(tmp_path / "bare.jsonl", 2, s0={"label": None}, s1={"label": None})
    with pytest.raises(DataError, match="No sample has a label"):
        api.run(replace(direct(bare), fail_under=["kappa=0.5"]), settings)
    assert api.list_runs(settings) == []
    # What needs no labels may be asked of it.
    assert api.run(replace(direct(bare), fail_under=["scored=1"]), settings).shortfalls == ()


def test_a_misspelt_figure_is_refused_beforehand(settings: Settings, data: Path) -> None:
    with pytest.raises(UsageError, match="kapa"):
        api.run(replace(direct(data), fail_under=["kapa=0.5"]), settings)
    assert api.list_runs(settings) == []
