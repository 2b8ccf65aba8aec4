"""Resuming through the API: what stands, what is judged again, what is refused."""

from __future__ import annotations

import os
from dataclasses import replace
from pathlib import Path

import pytest
from api_fakes import Ears, direct, scripted_settings, write_data

from offline_judge import api
from offline_judge.domain.events import AnyEvent, SampleFinished, WarningRaised
from offline_judge.errors import (
    DataError,
    RunChangedError,
    RunLockedError,
)
from offline_judge.settings import Settings, load_settings


@pytest.fixture
def settings(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Settings:
    # A socket of one's own, and no run of the user's.
    monkeypatch.setenv("XDG_RUNTIME_DIR", str(tmp_path))
    return scripted_settings(tmp_path)


@pytest.fixture
def data(tmp_path: Path) -> Path:
    return write_data(tmp_path / "data.jsonl")


def test_a_completed_run_resumed_judges_nothing_again(settings: Settings, data: Path) -> None:
    first = api.run(direct(data), settings)
    ears = Ears()
    again = api.resume(first.manifest.run_id, settings, listener=ears)
    assert ears.judged() == []
    assert ears.reports[0].reused == 6
    assert "reused 6: already judged." in ears.reports[0].notes
    assert again.rows == first.rows
    assert again.summary.status == "completed"


def test_more_limit_only_adds_samples(settings: Settings, data: Path) -> None:
    first = api.run(direct(data, limit=2), settings)
    assert first.summary.status == "limit"
    assert len(first.rows) == 2
    ears = Ears()
    more = api.resume(first.manifest.run_id, settings, limit=5, listener=ears)
    assert len(ears.judged()) == 3
    assert [row.id for row in more.rows][:2] == [row.id for row in first.rows]
    assert more.summary.planned == 5


def test_resume_keeps_the_limit_the_run_began_with(settings: Settings, data: Path) -> None:
    first = api.run(direct(data, limit=2), settings)
    again = api.resume(first.manifest.run_id, settings)
    assert len(again.rows) == 2
    assert again.summary.status == "limit"


def test_no_sample_is_taken_after_the_time_limit(settings: Settings, data: Path) -> None:
    view = api.run(direct(data, minutes=0.0), settings)
    assert view.summary.status == "limit"
    assert view.rows == ()
    assert len(api.resume(view.manifest.run_id, settings).rows) == 6


def test_an_edited_data_file_is_refused_by_name(settings: Settings, data: Path) -> None:
    view = api.run(direct(data), settings)
    write_data(data, s3={"response": "Something else."})
    with pytest.raises(RunChangedError) as caught:
        api.resume(view.manifest.run_id, settings)
    assert "1 (s3) changed" in str(caught.value)
    assert len(api.load_run(view.manifest.run_id, settings).rows) == 6


def test_a_data_file_with_rows_added_is_refused(settings: Settings, data: Path) -> None:
    view = api.run(direct(data), settings)
    write_data(data, count=8)
    with pytest.raises(RunChangedError, match="had 6 rows and has 8"):
        api.resume(view.manifest.run_id, settings)


def test_a_data_file_that_is_gone_is_named(settings: Settings, data: Path) -> None:
    view = api.run(direct(data), settings)
    data.unlink()
    with pytest.raises(DataError) as caught:
        api.resume(view.manifest.run_id, settings)
    assert str(data) in str(caught.value)


def test_changed_prompts_are_refused(settings: Settings, data: Path, tmp_path: Path) -> None:
    folder = tmp_path / "prompts" / "direct"
    folder.mkdir(parents=True)
    own = folder / "verdict.system.jinja"
    own.write_text("You are a strict judge.\n")
    mine = replace(settings, prompts_dir=str(tmp_path / "prompts"))
    view = api.run(direct(data, limit=1), mine)
    own.write_text("You are a lenient judge.\n")
    with pytest.raises(RunChangedError) as caught:
        api.resume(view.manifest.run_id, settings, limit=3)
    assert "direct/verdict" in str(caught.value)


def test_another_script_is_another_judge(settings: Settings, data: Path, tmp_path: Path) -> None:
    script = tmp_path / "script.json"
    script.write_text('{"label_rules": [{"match": "", "masses": {"true": 0.9, "false": 0.1}}]}')
    mine = replace(settings, judge=f"scripted:{script}")
    view = api.run(direct(data, limit=1), mine)
    script.write_text('{"label_rules": [{"match": "", "masses": {"true": 0.1, "false": 0.9}}]}')
    with pytest.raises(RunChangedError, match="weights"):
        api.resume(view.manifest.run_id, mine, limit=3)


def test_resume_goes_on_with_the_judge_of_the_run(
    settings: Settings, data: Path, tmp_path: Path
) -> None:
    script = tmp_path / "script.json"
    script.write_text('{"label_rules": [{"match": "", "masses": {"true": 0.9, "false": 0.1}}]}')
    mine = replace(settings, judge=f"scripted:{script}")
    view = api.run(direct(data, limit=1), mine)
    other = load_settings(
        {"data_dir": settings.data_dir, "cache_dir": settings.cache_dir}, environ={}
    )
    rows = api.resume(view.manifest.run_id, other, limit=6).rows
    assert [row.probability for row in rows] == pytest.approx([0.9] * 6)


def test_a_judge_asked_for_by_flag_that_is_not_the_runs_is_refused(
    settings: Settings, data: Path
) -> None:
    view = api.run(direct(data, limit=1), settings)
    other = replace(settings, judge="another", origins={"judge": "flag"})
    with pytest.raises(RunChangedError, match="another"):
        api.resume(view.manifest.run_id, other)


def test_a_run_in_progress_cannot_be_resumed(settings: Settings, data: Path) -> None:
    refusals: list[RunLockedError] = []

    def resume_now(event: AnyEvent) -> None:
        if isinstance(event, SampleFinished) and not refusals:
            with pytest.raises(RunLockedError) as caught:
                api.resume("last", settings)
            refusals.append(caught.value)

    view = api.run(direct(data), settings, Ears(resume_now))
    assert refusals
    assert view.summary.outcomes == {"scored": 6}


def test_bad_rows_left_out_are_told_in_the_run(settings: Settings, tmp_path: Path) -> None:
    path = tmp_path / "bad.jsonl"
    path.write_text('{"question": "q", "response": "r"}\n{"question": "q"}\n')
    with pytest.raises(DataError):
        api.run(direct(path), settings)
    ears = Ears()
    view = api.run(direct(path, skip_bad=True), settings, ears)
    assert len(view.rows) == 1
    warnings = [event.message for event in ears.events if isinstance(event, WarningRaised)]
    assert any("line 2" in message for message in warnings)
    assert len(api.resume(view.manifest.run_id, settings).rows) == 1


def test_columns_can_be_named_otherwise(settings: Settings, tmp_path: Path) -> None:
    path = tmp_path / "named.jsonl"
    path.write_text('{"prompt": "q", "answer": "r"}\n')
    request = direct(path, mapping={"prompt": "question", "answer": "response"})
    view = api.run(request, settings)
    assert view.rows[0].question == "q"
    assert api.resume(view.manifest.run_id, settings).summary.status == "completed"


def test_the_list_does_not_believe_results_older_than_the_trace(
    settings: Settings, data: Path
) -> None:
    run_id = api.run(direct(data, limit=1), settings).manifest.run_id
    path = settings.runs_path / run_id / "results.json"
    stale = path.read_text()
    api.resume(run_id, settings, limit=6)
    path.write_text(stale)
    os.utime(path, ns=(0, 0))
    assert api.list_runs(settings)[0].finished == 6


def test_ask_is_a_run_of_one_sample(settings: Settings) -> None:
    view = api.ask("What is 1?", "One.", method="direct", settings=settings)
    assert view.row.verdict is not None
    assert view.sample.response == "One."
    assert view.run.summary.outcomes == {"scored": 1}
    again = api.resume(view.run.manifest.run_id, settings)
    assert again.rows == view.run.rows


def test_an_asked_question_can_be_resumed_after_its_data_directory_moved(
    settings: Settings, tmp_path: Path
) -> None:
    view = api.ask("What is 1?", "One.", method="direct", settings=settings)
    moved = tmp_path / "moved"
    settings.data_path.rename(moved)
    there = replace(settings, data_dir=str(moved))
    assert api.resume(view.run.manifest.run_id, there).summary.status == "completed"
