"""Calibration files and which judge they hold for."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from pydantic import ValidationError

from offline_judge.calibration.files import read_calibration, write_calibration
from offline_judge.calibration.identity import check_fits, identity_of
from offline_judge.domain.calibration import Calibration, ScoreMap
from offline_judge.domain.judgment import Judgment
from offline_judge.domain.run import DataSource, ModelIdentity, RunManifest
from offline_judge.errors import DataError, RunChangedError, StorageError


def manifest(**changes: Any) -> RunManifest:
    values: dict[str, Any] = {
        "run_id": "r",
        "created": "2026-01-01T00:00:00Z",
        "method": "sage",
        "options": {"rounds": 3, "rationale": True},
        "data": DataSource(path="/d.jsonl", sha256="0" * 64, format="jsonl", rows=3),
        "judge": ModelIdentity(name="tiny", sha256="1" * 64, engine="scripted"),
        "search": {"name": "corpus:a"},
        "prompts": {"sage/verdict": "a", "sage/verdict.rationale": "b", "sage/query": "c"},
    }
    return RunManifest(**{**values, **changes})


def calibration(**changes: Any) -> Calibration:
    values: dict[str, Any] = {
        "reading": ScoreMap(kind="isotonic", points=((0.2, 0.1), (0.8, 0.6))),
        "n": 60,
        "groups": 20,
        "labels_sha256": "2" * 64,
        "judge": identity_of(manifest()),
    }
    return Calibration(**{**values, **changes})


def test_a_calibration_comes_back_as_it_was_written(tmp_path: Path) -> None:
    path = tmp_path / "c.json"
    write_calibration(path, calibration())
    assert read_calibration(path) == calibration()
    assert read_calibration(path).sha256 == calibration().sha256
    assert [entry.name for entry in tmp_path.iterdir()] == ["c.json"]


def test_the_hash_is_of_the_content() -> None:
    assert calibration(n=61).sha256 != calibration().sha256


@pytest.mark.parametrize(
    ("content", "word"),
    [
        ("{", "not JSON"),
        ("[]", "an array"),
        ('{"version": NaN}', "NaN"),
        ('{"version": 2}', "`version` is 2, not 1"),
        ("{}", "`version` is null"),
    ],
)
def test_what_is_no_calibration_is_refused(tmp_path: Path, content: str, word: str) -> None:
    path = tmp_path / "c.json"
    path.write_text(content)
    with pytest.raises(DataError) as caught:
        read_calibration(path)
    assert word in caught.value.message
    assert "calibrate" in caught.value.remedy


def test_a_damaged_field_is_named(tmp_path: Path) -> None:
    raw = calibration().model_dump(mode="json")
    raw["reading"]["threshold"] = 1.5
    path = tmp_path / "c.json"
    path.write_text(json.dumps(raw))
    with pytest.raises(DataError, match=r"reading\.threshold"):
        read_calibration(path)


def test_a_calibration_that_is_not_there_is_told(tmp_path: Path) -> None:
    with pytest.raises(DataError, match="Cannot read"):
        read_calibration(tmp_path / "none.json")


def test_a_folder_that_is_not_there_is_told_and_nothing_left(tmp_path: Path) -> None:
    with pytest.raises(StorageError):
        write_calibration(tmp_path / "none" / "c.json", calibration())
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("place", ["/", ".", "file/c.json"])
def test_a_place_that_can_be_no_file_is_told(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, place: str
) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "file").touch()
    with pytest.raises(StorageError, match=r"Cannot write: .*a directory"):
        write_calibration(Path(place), calibration())
    assert [entry.name for entry in tmp_path.iterdir()] == ["file"]


@pytest.mark.parametrize(
    "values",
    [
        {"kind": "isotonic"},
        {"kind": "threshold", "points": ((0.1, 0.1),)},
        {"kind": "isotonic", "points": ((0.5, 0.1), (0.5, 0.2))},
        {"kind": "isotonic", "points": ((0.1, 0.5), (0.5, 0.2))},
        {"kind": "isotonic", "points": ((0.1, 0.5), (0.5, 1.2))},
        {"kind": "platt", "slope": 1.0},
        {"kind": "threshold", "slope": 1.0, "intercept": 0.0},
    ],
)
def test_a_map_that_makes_no_sense_is_refused(values: dict[str, Any]) -> None:
    with pytest.raises(ValidationError):
        ScoreMap(**values)


def test_both_readings_stand_in_the_judgment() -> None:
    own = Judgment(verdict=True, probability=0.8, rationale="why")
    read = calibration(reading=ScoreMap(kind="threshold", threshold=0.9)).read(own)
    assert (read.verdict, read.probability, read.rationale) == (True, 0.8, "why")
    assert (read.calibrated_verdict, read.calibrated_probability) == (False, 0.8)


def test_a_map_beyond_its_ends_holds_their_values() -> None:
    reading = calibration().reading
    assert reading.map(0.0) == 0.1
    assert reading.map(0.5) == pytest.approx(0.35)
    assert reading.map(1.0) == 0.6


def test_certain_probabilities_have_finite_log_odds() -> None:
    reading = ScoreMap(kind="platt", slope=50.0, intercept=0.0)
    assert 0 <= reading.map(0.0) < reading.map(1.0) <= 1


def test_the_same_judge_fits() -> None:
    assert check_fits(calibration(), manifest()) == ()


def test_what_comes_after_the_verdict_may_differ() -> None:
    now = manifest(
        options={"rounds": 3, "rationale": False},
        prompts={"sage/verdict": "a", "sage/verdict.rationale": "other", "sage/query": "c"},
    )
    assert check_fits(calibration(), now) == ()


@pytest.mark.parametrize(
    ("change", "words"),
    [
        ({"judge": ModelIdentity(name="big", sha256="9" * 64, engine="x")}, ["weights", "big"]),
        ({"method": "direct"}, ["method (`sage`, not `direct`)"]),
        ({"options": {"rounds": 2}}, ["option `rounds` (3, not 2)"]),
        ({"options": {"rounds": 3, "new": 1}}, ["option `new` (none, not 1)"]),
        (
            {"prompts": {"sage/verdict": "z", "sage/query": "y"}},
            ["prompts (sage/query, sage/verdict)"],
        ),
        (
            {"options": {"rounds": 1}, "prompts": {"sage/verdict": "a"}},
            ["option `rounds`", "prompts (sage/query)"],
        ),
    ],
)
def test_another_judge_is_refused_naming_what_differs(
    change: dict[str, Any], words: list[str]
) -> None:
    with pytest.raises(RunChangedError) as caught:
        check_fits(calibration(), manifest(**change))
    for word in words:
        assert word in caught.value.message


def test_other_evidence_is_told_and_not_refused() -> None:
    warnings = check_fits(calibration(), manifest(search={"name": "corpus:b"}))
    assert len(warnings) == 1
    assert "other evidence" in warnings[0]
