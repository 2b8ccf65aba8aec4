"""Scoring, calibrating and gating through the API, with a judge whose probabilities are known."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from api_fakes import Ears, direct, scripted_settings, write_data

from offline_judge import api
from offline_judge.api import LabelsRequest
from offline_judge.calibration.files import read_calibration
from offline_judge.domain.events import SampleFinished, WarningRaised
from offline_judge.errors import DataError, RunChangedError, UsageError
from offline_judge.settings import Settings

COUNT = 40


@pytest.fixture
def settings(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Settings:
    # A judge that says yes to all: .9 where the response has a 7 or an even last digit, else .7.
    monkeypatch.setenv("XDG_RUNTIME_DIR", str(tmp_path))
    rules = [
        {"match": r"It is \d*[024678]\.", "masses": {"true": 0.9, "false": 0.1}},
        {"masses": {"true": 0.7, "false": 0.3}},
    ]
    script = tmp_path / "script.json"
    script.write_text(json.dumps({"label_rules": rules}))
    return replace(scripted_settings(tmp_path), judge=f"scripted:{script}")


@pytest.fixture
def data(tmp_path: Path) -> Path:
    return write_data(tmp_path / "data.jsonl", COUNT)


@pytest.fixture
def run_id(settings: Settings, data: Path) -> str:
    return api.run(direct(data, options={"rationale": False}), settings).manifest.run_id


def write_labels(path: Path, labels: dict[str, Any]) -> Path:
    rows = [{"id": name, "label": label} for name, label in labels.items()]
    path.write_text("".join(json.dumps(row) + "\n" for row in rows))
    return path


def quick(run_id: str, labels: Path | None = None, **more: Any) -> LabelsRequest:
    return LabelsRequest(run_id, labels, resamples=more.pop("resamples", 30), **more)


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
    # Once the data is gone, nobody can tell those ids from mistakes.
    data.unlink()
    with pytest.raises(DataError, match="of no sample of this run"):
        api.score(request, settings)


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


def test_a_threshold_is_fitted_and_the_next_run_read_by_it(
    run_id: str, settings: Settings, data: Path, tmp_path: Path
) -> None:
    out = tmp_path / "c.json"
    fitted = api.calibrate(quick(run_id), out, settings)
    assert fitted.calibration.reading.threshold == pytest.approx(0.8)
    assert read_calibration(out) == fitted.calibration
    assert fitted.calibrated is not None
    assert fitted.calibrated.kappa.value == pytest.approx(0.8)
    assert fitted.calibration.rates.specificity == pytest.approx(0.8)
    assert fitted.calibration.raw_rates.specificity == 0

    # A rationale comes after the verdict, so it may be asked for now.
    ears = Ears()
    view = api.run(replace(direct(data), calibration=out), settings, ears)
    assert view.manifest.calibration == fitted.calibration
    assert view.summary.verdict_true == 40
    assert view.summary.calibrated_true == 24
    assert view.summary.agreement is not None
    assert view.summary.agreement.kappa == 0
    assert view.summary.calibrated_agreement is not None
    assert view.summary.calibrated_agreement.kappa == pytest.approx(0.8)
    ends = [event for event in ears.events if isinstance(event, SampleFinished)]
    assert all(end.judgment and end.judgment.calibrated_verdict is not None for end in ends)

    row = next(row for row in api.export_rows(view.manifest.run_id, settings) if row["id"] == "s1")
    assert (row["verdict"], row["calibrated_verdict"]) == (True, False)
    assert row["calibrated_probability"] == pytest.approx(0.7)


@pytest.mark.parametrize("kind", ["isotonic", "platt"])
def test_maps_bring_the_probability_near_how_often_it_is_right(
    run_id: str, settings: Settings, tmp_path: Path, kind: str
) -> None:
    fitted = api.calibrate(quick(run_id), tmp_path / "c.json", settings, kind=kind)
    assert fitted.before.error is not None
    assert fitted.after is not None
    assert fitted.after.error is not None
    assert fitted.after.error < fitted.before.error - 0.1
    assert fitted.after.n == 40


def test_a_run_without_a_calibration_has_no_second_reading(run_id: str, settings: Settings) -> None:
    view = api.load_run(run_id, settings)
    assert view.summary.calibrated_true is None
    assert view.summary.calibrated_agreement is None
    assert all(row.calibrated_verdict is None for row in view.rows)


def test_a_calibration_of_another_judge_is_refused_before_anything_is_judged(
    run_id: str, settings: Settings, data: Path, tmp_path: Path
) -> None:
    out = tmp_path / "c.json"
    api.calibrate(quick(run_id), out, settings)
    other = replace(settings, judge="scripted")
    before = len(api.list_runs(settings))
    with pytest.raises(RunChangedError, match="weights"):
        api.run(replace(direct(data), calibration=out), other)
    assert len(api.list_runs(settings)) == before


def test_a_calibration_of_other_prompts_is_refused(
    run_id: str, settings: Settings, data: Path, tmp_path: Path
) -> None:
    out = tmp_path / "c.json"
    api.calibrate(quick(run_id), out, settings)
    prompts = tmp_path / "prompts" / "direct"
    prompts.mkdir(parents=True)
    (prompts / "verdict.system.jinja").write_text("Be strict.\n")
    with pytest.raises(RunChangedError, match=r"prompts \(direct/verdict"):
        api.run(
            replace(direct(data), calibration=out),
            replace(settings, prompts_dir=str(tmp_path / "prompts")),
        )


def test_resuming_reads_on_by_the_calibration_though_its_file_is_gone(
    run_id: str, settings: Settings, data: Path, tmp_path: Path
) -> None:
    out = tmp_path / "c.json"
    fitted = api.calibrate(quick(run_id), out, settings)
    first = api.run(replace(direct(data, limit=4), calibration=out), settings)
    out.unlink()
    again = api.resume(first.manifest.run_id, settings, limit=COUNT)
    assert again.manifest.calibration == fitted.calibration
    assert again.summary.calibrated_true == 24


def test_a_calibrated_run_is_scored_by_both_readings(
    run_id: str, settings: Settings, data: Path, tmp_path: Path
) -> None:
    out = tmp_path / "c.json"
    labels = write_labels(tmp_path / "l.jsonl", {f"s{n}": n % 2 == 0 for n in range(20)})
    api.calibrate(quick(run_id, labels), out, settings)
    calibrated = api.run(replace(direct(data), calibration=out), settings)
    found = api.score(quick(calibrated.manifest.run_id), settings)
    assert found.raw.kappa.value == 0
    assert found.calibrated is not None
    assert found.calibrated.kappa.value == pytest.approx(0.8)
    # Other labels than it was fitted on: its own error rates are known.
    assert found.calibrated.corrected.source == "calibration"
    assert found.warnings == ()
    assert found.chosen is found.calibrated
    # The same, had the calibration been named only now.
    later = api.score(quick(run_id), settings, calibration=out)
    assert later.calibrated == found.calibrated


def test_a_calibration_scored_on_its_own_labels_is_warned_about(
    run_id: str, settings: Settings, tmp_path: Path
) -> None:
    out = tmp_path / "c.json"
    api.calibrate(quick(run_id), out, settings)
    found = api.score(quick(run_id), settings, calibration=out)
    assert "these very labels" in found.warnings[0]
    assert found.calibrated is not None
    assert found.calibrated.corrected.source == "cross-fitted"


def test_a_calibration_of_another_judge_scores_nothing(
    run_id: str, settings: Settings, data: Path, tmp_path: Path
) -> None:
    out = tmp_path / "c.json"
    api.calibrate(quick(run_id), out, settings)
    other = api.run(direct(data), replace(settings, judge="scripted")).manifest.run_id
    with pytest.raises(RunChangedError):
        api.score(quick(other), settings, calibration=out)


def test_few_samples_are_warned_about(run_id: str, settings: Settings, tmp_path: Path) -> None:
    fitted = api.calibrate(quick(run_id), tmp_path / "c.json", settings)
    assert "40 samples of 20 questions only" in fitted.warnings[0]


def test_one_label_only_fits_nothing_and_leaves_no_file(
    run_id: str, settings: Settings, tmp_path: Path
) -> None:
    labels = write_labels(tmp_path / "l.jsonl", {f"s{n}": True for n in range(10)})
    with pytest.raises(DataError, match="both labels are needed"):
        api.calibrate(quick(run_id, labels), tmp_path / "c.json", settings)
    assert not (tmp_path / "c.json").exists()


def test_one_question_is_fitted_but_not_tried(
    run_id: str, settings: Settings, tmp_path: Path
) -> None:
    labels = write_labels(tmp_path / "l.jsonl", {"s0": True, "s1": False})
    fitted = api.calibrate(quick(run_id, labels), tmp_path / "c.json", settings)
    assert fitted.after is None
    assert fitted.calibrated is None
    assert "one question" in fitted.reason
    assert fitted.calibration.rates.sensitivity is None


@pytest.mark.parametrize(
    ("how", "remedy"),
    [
        ({"kind": "isotonnic"}, "Did you mean `isotonic`?"),
        ({"optimise": "kapa"}, "Did you mean `kappa`?"),
        ({"plot": Path("p.pdf")}, ".png or .svg"),
    ],
)
def test_what_cannot_be_fitted_is_refused_before_the_run_is_read(
    settings: Settings, tmp_path: Path, how: dict[str, Any], remedy: str
) -> None:
    with pytest.raises(UsageError) as caught:
        api.calibrate(quick("no such run"), tmp_path / "c.json", settings, **how)
    assert remedy in caught.value.remedy


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


def test_other_evidence_than_the_calibration_knows_is_a_warning_of_the_run(
    run_id: str, settings: Settings, data: Path, tmp_path: Path
) -> None:
    out = tmp_path / "c.json"
    api.calibrate(quick(run_id), out, settings)
    raw = json.loads(out.read_text())
    raw["judge"]["search"] = {"name": "another"}
    out.write_text(json.dumps(raw))
    ears = Ears()
    api.run(replace(direct(data), calibration=out), settings, ears)
    said = [event.message for event in ears.events if isinstance(event, WarningRaised)]
    assert any("other evidence" in message for message in said)


def test_a_calibrated_run_is_not_taken_for_a_plain_one(
    settings: Settings, data: Path, tmp_path: Path
) -> None:
    from offline_judge.reuse import find_same_run

    plain = api.run(direct(data), settings).manifest.run_id
    out = tmp_path / "c.json"
    api.calibrate(quick(plain), out, settings)
    api.run(replace(direct(data), calibration=out), settings)
    found = find_same_run("direct", data, settings)
    assert found is not None
    assert found.run_id == plain
