"""A judge whose engine gives no label probabilities: verdicts, and nothing that looks like one."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from offline_judge import api
from offline_judge.cli.main import main
from offline_judge.errors import BackendError, DataError
from offline_judge.settings import Settings, load_settings

ROWS = [
    {"id": f"s{at}", "question": f"What is {at}?", "response": f"It is {at}.", "label": at % 2 == 0}
    for at in range(6)
]
ANSWERS = {
    "rules": [
        {"match": "Reply Yes or No", "answers": ['"Yes"']},
        {"match": "JSON", "answers": ['{"rationale":"So it is.","correct":true}']},
    ]
}


def script(folder: Path, **more: Any) -> str:
    path = folder / "script.json"
    path.write_text(json.dumps({**ANSWERS, **more}), "utf-8")
    return f"scripted:{path}"


@pytest.fixture
def data(tmp_path: Path) -> Path:
    path = tmp_path / "rows.jsonl"
    path.write_text("".join(json.dumps(row) + "\n" for row in ROWS), "utf-8")
    return path


@pytest.fixture
def settings(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Settings:
    for name in ("data", "cache"):
        monkeypatch.setenv(f"OFFLINE_JUDGE_{name.upper()}_DIR", str(tmp_path / name))
    return load_settings({"judge": script(tmp_path, label_probabilities=False)})


def request(data: Path, **more: Any) -> api.RunRequest:
    return api.RunRequest(method="direct", data=data, **more)


def test_verdicts_come_and_no_figure_that_needs_probabilities(
    data: Path, settings: Settings, capsys: pytest.CaptureFixture[str]
) -> None:
    view = api.run(request(data), settings)
    assert view.summary.outcomes == {"scored": 6}
    assert {row.verdict for row in view.rows} == {True}
    assert {row.probability for row in view.rows} == {None}
    assert view.summary.agreement is not None
    assert any("no label probabilities" in text for text in view.summary.warnings)
    run_id = view.manifest.run_id
    # Every place that shows a verdict must get along without a probability.
    for command in (
        ["show", run_id, "s0"],
        ["runs", "show", run_id],
        ["runs", "export", run_id],
        ["runs", "export", run_id, "--format", "csv"],
        ["score", run_id],
        ["runs", "list"],
    ):
        with pytest.raises(SystemExit) as ended:
            main(command)
        assert ended.value.code in (0, None), command
    shown = capsys.readouterr().out
    assert "answered, without a probability" in shown


def test_such_a_run_cannot_be_calibrated(data: Path, settings: Settings, tmp_path: Path) -> None:
    view = api.run(request(data), settings)
    with pytest.raises(DataError, match="no probabilities"):
        api.calibrate(
            api.LabelsRequest(view.manifest.run_id), tmp_path / "c.json", settings, kind="isotonic"
        )


@pytest.mark.parametrize("before", [True, False])
def test_two_ways_of_judging_are_not_mixed_in_one_run(
    data: Path, settings: Settings, tmp_path: Path, before: bool
) -> None:
    script(tmp_path, label_probabilities=before, label_rules=[{"masses": {"true": 0.9}}])
    view = api.run(request(data, limit=2), settings)
    script(tmp_path, label_probabilities=not before, label_rules=[{"masses": {"true": 0.9}}])
    with pytest.raises(BackendError, match="never mixed in one figure"):
        api.resume(view.manifest.run_id, settings, limit=6)
    after = api.load_run(view.manifest.run_id, settings)
    assert len([row for row in after.rows if row.verdict is not None]) == 2


def test_a_judge_that_shall_think_and_does_not_is_refused(
    data: Path, settings: Settings, tmp_path: Path
) -> None:
    thinking = load_settings({"judge": settings.judge, "thinking_tokens": 32})
    with pytest.raises(BackendError, match="shall think"):
        api.run(request(data), thinking)


def test_completions_of_another_cache_type_are_not_taken_over(
    data: Path, settings: Settings, tmp_path: Path
) -> None:
    first = api.run(request(data), settings)
    again = api.run(request(data), settings)
    other = api.run(request(data), load_settings({"judge": settings.judge, "kv_cache": "q4_0"}))
    assert first.summary.calls == other.summary.calls > 0
    assert again.summary.calls == 0
    assert other.summary.reused_calls == 0
