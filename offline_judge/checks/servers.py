"""Servers that answer on this machine, and the judge's name that would use each."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import httpx

from offline_judge.checks.findings import Finding
from offline_judge.settings import Settings

_TIMEOUT_S = 0.5
_PATHS = {
    "ollama": (11434, "/api/tags"),
    "lmstudio": (1234, "/api/v0/models"),
    "llama-server": (8080, "/v1/models"),
    "vllm": (8000, "/v1/models"),
}


def check_servers(settings: Settings) -> Iterator[Finding]:
    """Ollama, LM Studio, llama-server and vLLM where they usually listen."""
    del settings
    for kind, (port, path) in _PATHS.items():
        address = f"http://127.0.0.1:{port}"
        names = _models(f"{address}{path}")
        if names is None:
            continue
        if not names:
            yield Finding("servers", kind, "note", f"answers at {address} and has no model")
            continue
        judges = ", ".join(f"--judge {kind}:{name}" for name in names[:3])
        text = f"answers at {address} with {len(names)} models"
        yield Finding("servers", kind, "ok", f"{text}: {judges}", data={"models": names})


def _models(address: str) -> list[str] | None:
    """Names of the models there; None where nothing answers as such a server does."""
    try:
        with httpx.Client(trust_env=False, timeout=_TIMEOUT_S) as client:
            answer = client.get(address)
            found: Any = answer.json()
    except (httpx.HTTPError, ValueError):
        return None
    if answer.status_code != httpx.codes.OK or not isinstance(found, dict):
        return None
    listed = found.get("data") or found.get("models") or []
    entries = [entry for entry in listed if isinstance(entry, dict)]
    return [str(entry.get("id") or entry.get("name")) for entry in entries]
