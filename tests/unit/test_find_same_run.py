from __future__ import annotations

import json
import shutil
from dataclasses import replace
from pathlib import Path

import pytest

import offline_judge
from offline_judge import api
from offline_judge.reuse import Found, find_same_run
from offline_judge.settings import Settings


@pytest.fixture
def settings(tmp_path: Path) -> Settings:
    return Settings(
        judge="scripted", data_dir=str(tmp_path / "data"), cache_dir=str(tmp_path / "cache")
    )


@pytest.fixture
def data(tmp_path: Path) -> Path:
    path = tmp_path / "rows.jsonl"
    rows = [{"question": "Q", "response": f"R{n}", "label": True} for n in range(3)]
    path.write_text("".join(json.dumps(row) + "\n" for row in rows))
    return path


def judge(data: Path, settings: Settings, limit: int | None = None) -> str:
    return api.run(api.RunRequest("direct", data, limit=limit), settings).manifest.run_id


def test_a_run_of_the_same_data_and_judge_is_found(data: Path, settings: Settings) -> None:
    run_id = judge(data, settings)

    assert find_same_run("direct", data, settings) == Found(run_id, completed=True)


def test_a_copy_of_the_data_is_the_same_data(
    data: Path, settings: Settings, tmp_path: Path
) -> None:
    run_id = judge(data, settings)
    copy = Path(shutil.copy(data, tmp_path / "copy.jsonl"))
    data.unlink()

    assert find_same_run("direct", copy, settings) == Found(run_id, completed=True)


def test_other_data_is_judged_anew(data: Path, settings: Settings) -> None:
    judge(data, settings)
    with data.open("a") as file:
        file.write('{"question": "Q", "response": "more"}\n')

    assert find_same_run("direct", data, settings) is None


def test_another_seed_or_window_is_judged_anew(data: Path, settings: Settings) -> None:
    judge(data, settings)

    assert find_same_run("direct", data, replace(settings, seed=5)) is None
    assert find_same_run("direct", data, replace(settings, window=2048)) is None


def test_other_prompts_are_judged_anew(data: Path, settings: Settings, tmp_path: Path) -> None:
    judge(data, settings)
    shipped = Path(offline_judge.__file__).parent / "methods/direct/prompts"
    own = tmp_path / "prompts" / "direct"
    shutil.copytree(shipped, own)
    with (own / "verdict.user.jinja").open("a") as file:
        file.write("\nThink twice.")

    changed = replace(settings, prompts_dir=str(tmp_path / "prompts"))

    assert find_same_run("direct", data, changed) is None


def test_a_limited_run_is_not_a_run_of_all(data: Path, settings: Settings) -> None:
    judge(data, settings, limit=1)

    assert find_same_run("direct", data, settings) is None


def test_the_newest_of_several_is_taken(data: Path, settings: Settings) -> None:
    judge(data, settings)
    newest = judge(data, settings)

    assert find_same_run("direct", data, settings) == Found(newest, completed=True)


def test_a_damaged_run_is_passed_over(data: Path, settings: Settings) -> None:
    good = judge(data, settings)
    damaged = judge(data, settings)
    (settings.runs_path / damaged / "run.json").write_text("{")

    assert find_same_run("direct", data, settings) == Found(good, completed=True)


def interrupt(run_id: str, settings: Settings) -> None:
    """Cut a trace as a kill would have left it: the last event is missing."""
    (trace,) = (settings.runs_path / run_id).glob("events-*.jsonl")
    lines = trace.read_bytes().splitlines(keepends=True)
    last = next(n for n, line in enumerate(lines) if b'"sample_finished"' in line)
    trace.write_bytes(b"".join(lines[: last + 1]))


def test_an_interrupted_run_can_go_on(data: Path, settings: Settings) -> None:
    run_id = judge(data, settings)
    interrupt(run_id, settings)

    assert find_same_run("direct", data, settings) == Found(run_id, completed=False)


def test_an_interrupted_run_without_its_data_cannot_go_on(
    data: Path, settings: Settings, tmp_path: Path
) -> None:
    interrupt(judge(data, settings), settings)
    copy = Path(shutil.copy(data, tmp_path / "copy.jsonl"))
    data.unlink()

    assert find_same_run("direct", copy, settings) is None


def corpus(settings: Settings, tmp_path: Path) -> Settings:
    documents = tmp_path / "documents.jsonl"
    documents.write_text('{"id": "a", "title": "Kenya", "text": "Mount Kenya is the highest."}\n')
    api.corpus_build("tiny", documents, settings)
    return replace(settings, search="corpus:tiny")


def test_the_demo_judges_twelve_samples_with_two_methods_once(
    settings: Settings, tmp_path: Path
) -> None:
    settings = corpus(settings, tmp_path)

    first = api.demo(settings)
    second = api.demo(settings)

    assert [run.manifest.method for run in first] == ["direct", "sage"]
    assert [len(run.rows) for run in first] == [12, 12]
    assert [run.manifest.run_id for run in second] == [run.manifest.run_id for run in first]
    assert len(api.list_runs(settings)) == 2


def test_an_interrupted_demo_goes_on(settings: Settings, tmp_path: Path) -> None:
    settings = corpus(settings, tmp_path)
    first = api.demo(settings)
    interrupt(first[1].manifest.run_id, settings)

    second = api.demo(settings)

    assert second[1].summary.status == "completed"
    assert second[1].manifest.run_id == first[1].manifest.run_id
