"""Pictures of the terminal UI: runs whose every detail is fixed, and what an SVG shows."""

from __future__ import annotations

import json
import re
from html import unescape
from pathlib import Path
from typing import Any

from offline_judge import api
from offline_judge.settings import Settings

_CLASS = re.compile(r"\.[\w-]+-(r\d+) \{ (.*?) \}")
_TEXT = re.compile(r'<text class="[\w-]+-(r\d+)" x="([\d.]+)" y="([\d.]+)"[^>]*>(.*?)</text>')
_SECONDS = {"seconds": 1.5, "start_s": 0.0}


def fixed_run(settings: Settings, request: api.RunRequest, run_id: str) -> str:
    """A run that is judged and then given an id, a data file, times and seconds that stay.

    The events are those that the engine made.
    """
    made = api.run(request, settings).manifest.run_id
    folder = settings.runs_path / made
    folder = folder.rename(settings.runs_path / run_id)
    for name in ("index.sqlite", "results.json"):
        (folder / name).unlink(missing_ok=True)
    _rewrite_manifest(folder / "run.json", run_id)
    trace = folder / "events-main.jsonl"
    events = [json.loads(line) for line in trace.read_text("utf-8").splitlines()]
    for event in events:
        event["time"] = f"2026-01-01T00:{event['seq'] // 60:02}:{event['seq'] % 60:02}.000000Z"
        event.update({name: value for name, value in _SECONDS.items() if name in event})
    lines = (json.dumps(event, ensure_ascii=False, separators=(",", ":")) for event in events)
    trace.write_text("".join(f"{line}\n" for line in lines), "utf-8")
    return run_id


def _rewrite_manifest(path: Path, run_id: str) -> None:
    manifest: dict[str, Any] = json.loads(path.read_text("utf-8"))
    manifest |= {"run_id": run_id, "created": "2026-01-01T00:00:00Z", "settings": {}}
    manifest["data"]["path"] = "/answers/data.jsonl"
    manifest["versions"] = {}
    path.write_text(json.dumps(manifest), "utf-8")


def shown(svg: str) -> list[tuple[float, float, str, str]]:
    """What an SVG of the UI shows: row, column, style and text of each piece, in reading order."""
    styles = dict(_CLASS.findall(svg))
    pieces = [
        (float(y), float(x), styles.get(name, ""), unescape(text).replace("\xa0", " "))
        for name, x, y, text in _TEXT.findall(svg)
    ]
    return sorted(piece for piece in pieces if piece[3].strip())
