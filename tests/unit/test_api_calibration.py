"""Calibrating through the API, and runs read by a calibration; a judge of known probabilities."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from api_fakes import Ears, direct
from scoring_fakes import COUNT, data_of, judged, quick, write_labels, yes_sayer

from offline_judge import api
from offline_judge.calibration.files import read_calibration
from offline_judge.domain.events import SampleFinished, WarningRaised
from offline_judge.errors import DataError, RunChangedError, UsageError
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


def test_one_answer_is_read_by_a_calibration_too(
    run_id: str, settings: Settings, tmp_path: Path
) -> None:
    out = tmp_path / "c.json"
    fitted = api.calibrate(quick(run_id), out, settings)
    plain = {"rationale": False}

    def ask(options: Any, judge: Settings = settings) -> api.AskView:
        return api.ask("What is 0?", "It is 1.", method="direct", settings=judge, options=options)

    view = ask(api.AskOptions(plain, out))
    assert view.run.manifest.calibration == fitted.calibration
    assert (view.row.verdict, view.row.calibrated_verdict) == (True, False)
    assert view.row.calibrated_probability == pytest.approx(0.7)
    assert ask(plain).row.calibrated_verdict is None
    with pytest.raises(RunChangedError, match="weights"):
        ask(api.AskOptions(plain, out), replace(settings, judge="scripted"))


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
    first = write_labels(tmp_path / "a.jsonl", {f"s{n}": n % 2 == 0 for n in range(20)})
    second = write_labels(tmp_path / "b.jsonl", {f"s{n}": n % 2 == 0 for n in range(20, 40)})
    api.calibrate(quick(run_id, first), out, settings)
    calibrated = api.run(replace(direct(data), calibration=out), settings)
    found = api.score(quick(calibrated.manifest.run_id, second), settings)
    assert found.raw.kappa.value == 0
    assert found.calibrated is not None
    assert found.calibrated.kappa.value == pytest.approx(0.8)
    # Other questions than it was fitted on: its own error rates are known.
    assert found.calibrated.corrected.source == "calibration"
    assert found.warnings == ()
    assert found.chosen is found.calibrated
    # The same, had the calibration been named only now.
    later = api.score(quick(run_id, second), settings, calibration=out)
    assert later.calibrated == found.calibrated


def test_questions_it_was_fitted_on_are_found_in_another_file_of_labels(
    run_id: str, settings: Settings, tmp_path: Path
) -> None:
    out = tmp_path / "c.json"
    first = write_labels(tmp_path / "a.jsonl", {f"s{n}": n % 2 == 0 for n in range(10)})
    api.calibrate(quick(run_id, first), out, settings)
    found = api.score(quick(run_id), settings, calibration=out)
    assert "fitted on 5 of these 20 questions" in found.warnings[0]
    assert found.raw.corrected.source == "cross-fitted"


def test_a_calibration_scored_on_its_own_labels_is_warned_about(
    run_id: str, settings: Settings, tmp_path: Path
) -> None:
    out = tmp_path / "c.json"
    api.calibrate(quick(run_id), out, settings)
    found = api.score(quick(run_id), settings, calibration=out)
    assert "fitted on 20 of these 20 questions" in found.warnings[0]
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
