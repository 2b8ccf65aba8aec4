"""What the tests of scoring share: a judge that says yes to all, and labels."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path
from typing import Any

from api_fakes import direct, scripted_settings, write_data

from offline_judge import api
from offline_judge.api import LabelsRequest
from offline_judge.settings import Settings

COUNT = 40


def yes_sayer(folder: Path) -> Settings:
    """A judge that gives .9 where the response ends with an even digit or 7, else .7."""
    rules = [
        {"match": r"It is \d*[024678]\.", "masses": {"true": 0.9, "false": 0.1}},
        {"masses": {"true": 0.7, "false": 0.3}},
    ]
    script = folder / "script.json"
    script.write_text(json.dumps({"label_rules": rules}))
    return replace(scripted_settings(folder), judge=f"scripted:{script}")


def data_of(folder: Path) -> Path:
    """Two responses to each question; people call the even ones correct."""
    return write_data(folder / "data.jsonl", COUNT)


def judged(settings: Settings, data: Path) -> str:
    return api.run(direct(data, options={"rationale": False}), settings).manifest.run_id


def write_labels(path: Path, labels: dict[str, Any]) -> Path:
    rows = [{"id": name, "label": label} for name, label in labels.items()]
    path.write_text("".join(json.dumps(row) + "\n" for row in rows))
    return path


def quick(run_id: str, labels: Path | None = None, **more: Any) -> LabelsRequest:
    return LabelsRequest(run_id, labels, resamples=more.pop("resamples", 30), **more)
