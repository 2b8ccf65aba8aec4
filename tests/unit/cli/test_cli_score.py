"""`score`, `calibrate` and `--fail-under` over the real API with the scripted judge."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

import pytest

from offline_judge.cli.main import main

RUN = ("run", "direct", "--data", "rows.jsonl", "-o", "rationale=false")


class Program:
    def __init__(self, capsys: pytest.CaptureFixture[str]) -> None:
        self._capsys = capsys
        self.code: int | str | None = None
        self.out = self.err = ""

    def __call__(self, *arguments: str) -> Program:
        with pytest.raises(SystemExit) as end:
            main(arguments)
        self.code = end.value.code
        self.out, self.err = self._capsys.readouterr()
        return self

    def json(self, *arguments: str, code: int = 0) -> Any:
        self(*arguments, "--json")
        assert self.code == code, self.err
        return json.loads(self.out, parse_constant=pytest.fail)


@pytest.fixture
def program(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> Program:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("OFFLINE_JUDGE_DATA_DIR", str(tmp_path / "data"))
    monkeypatch.setenv("OFFLINE_JUDGE_CACHE_DIR", str(tmp_path / "cache"))
    monkeypatch.setenv("OFFLINE_JUDGE_JUDGE", "scripted")
    rows = [
        {"id": f"q{n}", "question": f"Q{n // 2}", "response": f"R{n}", "label": n % 3 == 0}
        for n in range(12)
    ]
    (tmp_path / "rows.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
    found = Program(capsys)
    assert found(*RUN, "--quiet").code == 0
    return found


def test_a_score_is_a_table_with_intervals_and_what_is_left_out(program: Program) -> None:
    program("score", "last", "--resamples", "50")
    assert program.code == 0
    assert "12 labelled: 12 scored" in program.out
    assert "Cohen's kappa" in program.out
    assert "95 % interval" in program.out
    assert "by both" in program.out
    assert "nan" not in program.out


def test_a_score_is_one_strict_document(program: Program) -> None:
    found = program.json("score", "last", "--resamples", "50")
    assert found["labels"]["labelled"] == 12
    assert {"value", "low", "high", "n", "groups", "reason"} <= found["raw"]["kappa"].keys()
    assert found["calibrated"] is None
    assert found["shortfalls"] == []


def test_a_score_below_the_least_ends_with_100_after_its_table(program: Program) -> None:
    program("score", "last", "--resamples", "20", "--fail-under", "accuracy=1")
    assert program.code == 100
    assert "Cohen's kappa" in program.out
    assert "accuracy is not at least 1" in program.err
    missed = program.json(
        "score", "last", "--resamples", "20", "--fail-under", "accuracy=1", code=100
    )
    assert missed["shortfalls"][0]["gate"] == {"name": "accuracy", "least": 1.0}


def test_a_misspelt_figure_is_wrong_usage(program: Program) -> None:
    assert program("score", "last", "--fail-under", "kapa=1").code == 2
    assert "`kappa`" in program.err


def test_annotators_of_several_columns_are_settled(program: Program, tmp_path: Path) -> None:
    lines = ["key,a,b,c"] + [f"q{n},yes,no,{'yes' if n % 2 else 'no'}" for n in range(12)]
    (tmp_path / "l.csv").write_text("\n".join(lines))
    columns = ("--map", "key=id", "--map", "a=label", "--map", "b=label", "--map", "c=label")
    found = program.json("score", "last", "--labels", "l.csv", *columns)
    assert found["labels"]["several"] == 12
    assert found["raw"]["share_people"]["value"] == 0.5


def test_columns_that_all_rows_lack_are_told_once(program: Program, tmp_path: Path) -> None:
    (tmp_path / "l.csv").write_text("sample_id,label\nq0,yes\nq1,no\n")
    assert program("score", "last", "--labels", "l.csv").code == 2
    assert program.err.count("sample_id, label") == 1
    assert "--map sample_id=id" in program.err


def test_unknown_ids_are_wrong_data_unless_left_out(program: Program, tmp_path: Path) -> None:
    (tmp_path / "l.csv").write_text("id,label\nq0,yes\nq1,no\nstranger,no\n")
    assert program("score", "last", "--labels", "l.csv").code == 2
    assert "`stranger`" in program.err
    assert program("score", "last", "--labels", "l.csv", "--skip-bad").code == 0
    assert "1 of unknown samples" in program.out


def test_a_form_that_is_no_lines_is_told(program: Program, tmp_path: Path) -> None:
    (tmp_path / "l.json").write_text('[{"id": "q0", "label": 1}]')
    assert program("score", "last", "--labels", "l.json").code == 2
    assert "JSON array" in program.err


def test_a_calibration_is_fitted_plotted_and_used(program: Program, tmp_path: Path) -> None:
    pytest.importorskip("matplotlib")
    program("calibrate", "last", "--kind", "platt", "--out", "c.json", "--plot", "p.svg")
    assert program.code == 0, program.err
    assert "calibration error" in program.out
    assert "slope" in program.out
    assert (tmp_path / "p.svg").exists()
    assert "only" in program.err  # few samples
    program(*RUN, "--calibration", "c.json", "--quiet")
    assert program.code == 0, program.err
    assert "calibrated agreement" in program.out
    program("runs", "show", "last")
    assert "platt, correct from 0.500, fitted on 12 samples of 6 questions" in program.out
    assert re.search(r"sample +label +verdict +calibrated +probability", program.out)
    program("show", "last", "q0")
    assert "calibrated: " in program.out
    program("score", "last", "--resamples", "20")
    assert "judge's own  accuracy" in program.out
    assert "calibrated said" in program.out
    assert "fitted on 6 of these 6 questions" in program.err


def test_a_calibration_as_one_strict_document(program: Program) -> None:
    found = program.json("calibrate", "last", "--out", "c.json", "--resamples", "20")
    assert found["file"] == "c.json"
    assert found["calibration"]["reading"]["kind"] == "threshold"
    assert found["calibration"]["optimised"] == "kappa"


def test_a_calibration_of_another_method_is_refused(program: Program, tmp_path: Path) -> None:
    program("calibrate", "last", "--out", "c.json", "--quiet")
    program("run", "lexical", "--data", "rows.jsonl", "--calibration", "c.json")
    assert program.code == 2
    assert "method (`direct`, not `lexical`)" in program.err


def test_a_run_below_the_least_ends_with_100_after_its_summary(program: Program) -> None:
    found = program.json(*RUN, "--fail-under", "kappa=1", "--fail-under", "scored=1", code=100)
    assert found["summary"]["status"] == "completed"
    assert [missed["gate"]["name"] for missed in found["shortfalls"]] == ["kappa"]
    assert "kappa is not at least 1" in program.err


def test_a_run_that_reaches_what_is_asked_ends_with_0(program: Program) -> None:
    assert program(*RUN, "--fail-under", "scored=1", "--fail-under", "kappa=-1").code == 0
