"""The whole way with a real judge: from Home through the form to a verdict on the Sample screen."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from offline_judge_tui.app import OfflineJudgeApp
from offline_judge_tui.screens.new_run import NewRunScreen
from offline_judge_tui.screens.run import RunScreen
from offline_judge_tui.screens.sample import SampleScreen
from textual.widgets import Checkbox, Input, Select
from ui_parts import Place, screen_text, shown_rows, static, until

from offline_judge import api
from offline_judge.settings import load_settings

# Not a conftest.py: the type checker knows modules by their names, and there is one already.
pytest_plugins = ("ui_fixtures",)

ENGINE_S = 180.0
"""Seconds that a real engine may take on a slow machine."""
FACTS = {
    "kazakhstan": "Astana is the capital of Kazakhstan. The city was called Nur-Sultan until 2022.",
    "croatia": "Croatia has used the euro as its currency since 2023.",
}


@pytest.mark.engine
async def test_from_home_through_the_form_to_a_verdict(
    place: Place, judge_weights: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("OFFLINE_JUDGE_MODELS_DIR", str(judge_weights.parents[1]))
    documents = place.path / "facts.jsonl"
    rows = [{"id": name, "title": name, "text": text} for name, text in FACTS.items()]
    documents.write_text("".join(json.dumps(row) + "\n" for row in rows))
    settings = load_settings({"embedder": "none", "judge": "qwen2.5-coder-0.5b-instruct"})
    api.corpus_build("facts", documents, settings)
    data = place.path / "asked.jsonl"
    question = {"id": "q1", "question": "What is the capital of Kazakhstan?", "response": "Astana"}
    data.write_text(json.dumps({**question, "label": True}) + "\n")
    app = OfflineJudgeApp(settings)
    async with app.run_test(size=(140, 45), notifications=True) as pilot:
        await until(pilot, lambda: "Three steps" in screen_text(pilot))
        await pilot.press("n")
        await until(pilot, lambda: isinstance(app.screen, NewRunScreen))
        screen = app.screen
        await until(pilot, lambda: bool(screen.query("#option-rounds")))
        screen.query_one("#data", Input).value = str(data)
        screen.query_one("#search", Select).value = "corpus:facts"
        screen.query_one("#option-single_pass", Checkbox).value = True
        await until(pilot, lambda: "single_pass=true" in static(pilot, "#command"))
        await until(pilot, lambda: "Nothing is wrong" in screen_text(pilot))
        await pilot.press("ctrl+s")
        await until(pilot, lambda: isinstance(app.screen, RunScreen), patience_s=ENGINE_S)
        await until(
            pilot, lambda: static(pilot, "#head").startswith("completed"), patience_s=ENGINE_S
        )
        await until(pilot, lambda: shown_rows(pilot) == ["q1"])
        await pilot.press("enter")
        await until(pilot, lambda: isinstance(app.screen, SampleScreen))
        view = api.load_run("last", settings)
        said = str(view.rows[0].verdict).lower()
        await until(
            pilot, lambda: f"verdict {said} {view.rows[0].probability:.2f}" in screen_text(pilot)
        )
        assert "Astana is the capital" in screen_text(pilot) or "kazakhstan" in screen_text(pilot)
