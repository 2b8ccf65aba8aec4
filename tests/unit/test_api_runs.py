"""The API end to end with the scripted judge: run, show, list, export."""

from __future__ import annotations

import asyncio
import json
import logging
from dataclasses import replace
from pathlib import Path

import pytest
from api_fakes import Ears, direct, scripted_settings, write_data

from offline_judge import api
from offline_judge.api import RunRequest
from offline_judge.domain.events import RunFinished, SampleFinished
from offline_judge.errors import (
    RunNotFoundError,
    UsageError,
)
from offline_judge.settings import Settings


@pytest.fixture
def settings(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Settings:
    # A socket of one's own, and no run of the user's.
    monkeypatch.setenv("XDG_RUNTIME_DIR", str(tmp_path))
    return scripted_settings(tmp_path)


@pytest.fixture
def data(tmp_path: Path) -> Path:
    return write_data(tmp_path / "data.jsonl")


def test_a_data_file_is_judged_and_exported(settings: Settings, data: Path) -> None:
    ears = Ears()
    view = api.run(direct(data), settings, ears)
    assert view.summary.status == "completed"
    assert view.summary.outcomes == {"scored": 6}
    assert view.summary.agreement is not None
    assert view.summary.agreement.n == 6
    rows = list(api.export_rows(view.manifest.run_id, settings))
    assert [row["id"] for row in rows] == [f"s{n}" for n in range(6)]
    first = rows[0]
    assert first["label"] is True
    assert first["verdict"] in (True, False)
    assert 0 <= first["probability"] <= 1
    assert first["outcome"] == "scored"
    assert first["evidence_state"] == "not_searched"
    assert first["source"] == "test"
    assert all(not isinstance(value, (list, dict)) for value in first.values())


def test_what_shapes_the_judgments_is_in_the_manifest(settings: Settings, data: Path) -> None:
    manifest = api.run(direct(data, limit=2), settings).manifest
    assert manifest.data.path == str(data)
    assert manifest.judge.name == "scripted"
    assert manifest.settings["judge"].origin == "flag"
    assert manifest.settings["window"].origin == "default"
    assert manifest.settings["limit"].value == 2
    assert "direct/verdict" in manifest.prompts
    assert {"offline_judge", "python", "xllamacpp", "tantivy"} <= manifest.versions.keys()
    assert manifest.leaves_machine == ()


def test_the_source_of_each_template_is_kept_with_the_run(settings: Settings, data: Path) -> None:
    from offline_judge.runs.store import RunStore

    manifest = api.run(direct(data), settings).manifest
    directory = RunStore(settings.runs_path).open(manifest.run_id)
    assert manifest.prompts
    for source_hash in manifest.prompts.values():
        assert directory.blob(source_hash)


def test_results_lie_in_the_run_directory(settings: Settings, data: Path) -> None:
    view = api.run(direct(data), settings)
    path = settings.runs_path / view.manifest.run_id / "results.json"
    assert json.loads(path.read_text())["outcomes"] == {"scored": 6}


def test_a_listener_sees_preflight_events_and_progress(settings: Settings, data: Path) -> None:
    ears = Ears()
    api.run(direct(data), settings, ears)
    assert ears.reports[0].planned == 6
    assert ears.standings[-1].finished == 6
    assert isinstance(ears.events[-1], RunFinished)


def test_limited_runs_take_the_same_samples_in_the_same_order(
    settings: Settings, data: Path
) -> None:
    few = [row.id for row in api.run(direct(data, limit=3), settings).rows]
    many = [row.id for row in api.run(direct(data, limit=6), settings).rows]
    assert many[:3] == few


def test_nothing_is_left_behind_by_a_run_that_cannot_begin(settings: Settings, data: Path) -> None:
    with pytest.raises(UsageError, match="dirct"):
        api.run(RunRequest(method="dirct", data=data), settings)
    with pytest.raises(UsageError, match="rationle"):
        api.run(direct(data, options={"rationle": False}), settings)
    assert api.list_runs(settings) == []


def test_runs_are_listed_newest_first(settings: Settings, data: Path) -> None:
    older = api.run(direct(data, limit=1), settings).manifest.run_id
    newer = api.run(direct(data), settings).manifest.run_id
    listed = api.list_runs(settings)
    assert [found.id for found in listed] == [newer, older]
    assert (listed[0].method, listed[0].judge, listed[0].status) == (
        "direct",
        "scripted",
        "completed",
    )
    assert (listed[0].planned, listed[0].finished, listed[0].unscored) == (6, 6, 0)


def test_a_damaged_run_does_not_hide_the_others(
    settings: Settings, data: Path, caplog: pytest.LogCaptureFixture
) -> None:
    broken = api.run(direct(data, limit=1), settings).manifest.run_id
    sound = api.run(direct(data, limit=1), settings).manifest.run_id
    (settings.runs_path / broken / "run.json").write_text("{")
    with caplog.at_level(logging.WARNING):
        assert [found.id for found in api.list_runs(settings)] == [sound]
    assert broken in caplog.text


def test_one_sample_is_shown_with_its_events(settings: Settings, data: Path) -> None:
    api.run(direct(data), settings)
    view = api.show("last", "s3", settings)
    assert view.row.id == view.sample.id == "s3"
    assert view.events[0].event == "sample_started"
    assert isinstance(view.events[-1], SampleFinished)


def test_a_misspelt_sample_gets_the_nearest(settings: Settings, data: Path) -> None:
    api.run(direct(data), settings)
    with pytest.raises(UsageError) as caught:
        api.show("last", "ss3", settings)
    assert "`s3`" in str(caught.value)
    with pytest.raises(RunNotFoundError):
        api.show("nothing", "s3", settings)


def test_cancelling_a_run_nobody_works_on_is_a_usage_error(settings: Settings, data: Path) -> None:
    run_id = api.run(direct(data), settings).manifest.run_id
    with pytest.raises(UsageError):
        api.cancel(run_id, settings)


async def test_a_run_can_be_made_inside_an_event_loop(settings: Settings, data: Path) -> None:
    await asyncio.sleep(0)
    # Long enough to be kept in the blobs, whose database belongs to one thread.
    write_data(data, s1={"response": "word " * 500})
    assert api.run(direct(data), settings).summary.outcomes == {"scored": 6}


def test_the_secret_is_private_and_stays(settings: Settings, data: Path) -> None:
    api.run(direct(data, limit=1), settings)
    path = settings.data_path / "secret"
    before = path.read_bytes()
    assert len(before) == 32
    assert path.stat().st_mode & 0o777 == 0o600
    api.run(direct(data, limit=1), settings)
    assert path.read_bytes() == before


def test_completions_are_reused_by_the_next_run_unless_told_not_to(
    settings: Settings, data: Path
) -> None:
    assert api.run(direct(data), settings).summary.reused_calls == 0
    again = api.run(direct(data), settings).summary
    assert again.calls == 0
    assert again.reused_calls > 0
    anew = api.run(direct(data), replace(settings, cache=False)).summary
    assert anew.reused_calls == 0


def test_a_sample_too_long_for_the_window_is_told_beforehand_and_unscored(
    settings: Settings, data: Path
) -> None:
    write_data(data, s1={"response": "word " * 3000})
    ears = Ears()
    view = api.run(direct(data), replace(settings, window=1024), ears)
    assert ears.reports[0].too_long == ("s1",)
    assert view.summary.outcomes == {"scored": 5, "unscored": 1}
    assert view.summary.reasons == {"overflow": 1}
