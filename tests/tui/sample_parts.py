"""What tests of the sample screen share: a real run by a scripted judge, and an app to show it."""

from __future__ import annotations

import json
import time
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import pytest
from offline_judge_tui.app import OfflineJudgeApp
from offline_judge_tui.screens.sample import SampleScreen
from offline_judge_tui.traces.model import Node
from offline_judge_tui.widgets.trace_tree import TraceTree
from textual.pilot import Pilot
from textual.widgets import Static

import offline_judge
from offline_judge import api
from offline_judge.settings import Settings, load_settings

HOSTILE = "[red]loud[/red] \x1b[2J\u202e"
FACT = "The harbour bridge of Ostend opened in 1911."
THOUGHT = "E1 and E2 speak of it."
WHY = json.dumps({"rationale": "It opened in 1911.", "correct": True, "cites": ["E1", "E2"]})
# With the fact in sight the answer is affirmed, without it denied.
SCRIPT: dict[str, Any] = {
    "rules": [
        {"match": "cites", "answers": [f"<think>{THOUGHT}</think>{WHY}"]},
        {"match": "Why\\?", "answers": ['{"rationale": "So it is.", "correct": false}']},
        {"match": "", "answers": ["Ostend bridge opening"]},
    ],
    "label_rules": [
        {"match": "opened in 1911.*According", "masses": {"true": 0.9, "false": 0.1}},
        {"match": "opened in 1911.*Does the", "masses": {"relevant": 0.9, "irrelevant": 0.1}},
        {"match": "Does the evidence", "masses": {"relevant": 0.2, "irrelevant": 0.8}},
        {"match": "", "masses": {"true": 0.25, "false": 0.75}},
    ],
}
HANG = {"kind": "hang", "match": "of my own"}
PATIENCE_S = 30.0


@dataclass(frozen=True)
class Judged:
    """A run of four samples, of which `b` and `d` are labelled otherwise than judged."""

    settings: Settings
    run_id: str
    folder: Path

    def script(self, **more: Any) -> None:
        """Let the judge behave otherwise from now on."""
        (self.folder / "script.json").write_text(json.dumps(SCRIPT | more))

    def trace(self) -> Path:
        """The one file of its events."""
        (path,) = (self.settings.runs_path / self.run_id).glob("events-*.jsonl")
        return path

    def append(self, *events: dict[str, Any]) -> None:
        """Write events behind its last one, as another program might."""
        seq = len(self.trace().read_bytes().splitlines())
        with self.trace().open("a") as file:
            for number, event in enumerate(events, seq):
                file.write(
                    json.dumps({"seq": number, "time": "9999-01-01T00:00:00Z"} | event) + "\n"
                )

    def content(self) -> dict[str, bytes]:
        """Its files, but the index, which may be made at any time."""
        files = (self.settings.runs_path / self.run_id).iterdir()
        return {file.name: file.read_bytes() for file in files if "index" not in file.name}


def judge_four(folder: Path, monkeypatch: pytest.MonkeyPatch, method: str = "sage") -> Judged:
    """Judge four samples for good, in a folder of their own."""
    monkeypatch.setenv("XDG_RUNTIME_DIR", str(folder))
    # Runs that are started apart must find the program, installed or not.
    monkeypatch.setenv("PYTHONPATH", str(Path(str(offline_judge.__file__)).parents[1]))
    (folder / "script.json").write_text(json.dumps(SCRIPT))
    flags = {
        "judge": f"scripted:{folder / 'script.json'}",
        "search": "corpus:tiny",
        "embedder": "none",
        "data_dir": str(folder / "data"),
        "cache_dir": str(folder / "cache"),
    }
    settings = load_settings(flags, environ={}, project_dir=folder, user_file=folder / "none")
    documents = [
        {"id": "d1", "title": "Ostend bridge", "text": f"{FACT} {HOSTILE}"},
        {"id": "d2", "title": "Ostend", "text": "A town by the sea, with a bridge."},
    ]
    (folder / "documents.jsonl").write_text("".join(json.dumps(d) + "\n" for d in documents))
    api.corpus_build("tiny", folder / "documents.jsonl", replace(settings, embedder="none"))
    rows = [
        {
            "id": name,
            "question": f"When did the bridge of Ostend open? {HOSTILE}",
            "response": f"In 1911, says {name}.",
            "label": name in "ac",
            "group": 7,
        }
        for name in "abcd"
    ]
    data = folder / "data.jsonl"
    data.write_text("".join(json.dumps(row) + "\n" for row in rows))
    options = {"rounds": 2} if method == "sage" else {}
    view = api.run(api.RunRequest(method, data, options=options), settings)
    assert view.summary.outcomes == {"scored": 4}
    return Judged(settings, view.manifest.run_id, folder)


@asynccontextmanager
async def at_sample(
    judged: Judged, sample_id: str = "a", run_id: str = "", size: tuple[int, int] = (140, 45)
) -> AsyncIterator[tuple[OfflineJudgeApp, Pilot[None]]]:
    """The program with a sample's screen opened; it may not have been read yet."""
    app = OfflineJudgeApp(judged.settings)
    async with app.run_test(size=size) as pilot:
        app.open("sample", run_id=run_id or judged.run_id, sample_id=sample_id)
        await pilot.pause()
        yield app, pilot


async def until(pilot: Pilot[None], condition: Callable[[], Any]) -> None:
    """Let the app go on until something is so."""
    deadline = time.monotonic() + PATIENCE_S
    while not condition():
        assert time.monotonic() < deadline, "it never came"
        await pilot.pause(0.01)
    await pilot.pause()


async def opened(pilot: Pilot[None], app: OfflineJudgeApp, sample_id: str = "a") -> SampleScreen:
    """Wait until a sample is read."""

    def read() -> bool:
        screen = app.screen
        found = screen.reading if isinstance(screen, SampleScreen) else None
        return found is not None and found.sample_id == sample_id

    await until(pilot, read)
    assert isinstance(app.screen, SampleScreen)
    return app.screen


def text(app: OfflineJudgeApp, selector: str) -> str:
    """What a widget says."""
    return str(app.screen.query_one(selector, Static).content)


def told(app: OfflineJudgeApp) -> str:
    """All that the program has said in passing."""
    return "\n".join(notification.message for notification in app._notifications)


def tree_lines(app: OfflineJudgeApp) -> list[str]:
    """The tree as it is drawn."""
    tree = app.screen.query_one(TraceTree)
    return [tree.render_line(y).text.rstrip() for y in range(tree.size.height)]


def node(screen: SampleScreen, kind: str, begins: str = "") -> Node:
    """The first node of a kind whose label begins so."""
    assert screen.reading is not None
    nodes = screen.reading.trace.root.walk()
    return next(n for n in nodes if n.kind == kind and n.label.startswith(begins))


async def put_cursor(pilot: Pilot[None], screen: SampleScreen, on: Node) -> None:
    """Go to a node of the tree."""
    screen.query_one(TraceTree).reveal(on)
    await pilot.pause()
