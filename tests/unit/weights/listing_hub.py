"""A hub on loopback that lists its repository, page by page, and serves files of any commit."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from http.server import BaseHTTPRequestHandler
from typing import Any
from urllib.parse import parse_qs, urlsplit

from weights_helpers import on_loopback

from offline_judge.weights.cards import ModelCard
from offline_judge.weights.sources import HubListing

REPOSITORY = "owner/model-GGUF"


def hub_card(pattern: str = "*Q4_K_M*.gguf", name: str = "listed", **more: Any) -> ModelCard:
    values: dict[str, Any] = {
        "family": "tiny",
        "role": "judge",
        "parameters": 20_000,
        "quantisation": "Q4_K_M",
        "window": 512,
        "licence": "MIT",
    }
    hub = HubListing(repository=REPOSITORY, pattern=pattern)
    return ModelCard(name=name, hub=hub, **{**values, **more})


class ListingHub:
    """What is served, and what was asked.

    Attributes:
        commits: Commit to the files it has; the last one is what `main` names.
        page: Entries of a page of the list.
        elsewhere: Begin the links to further pages with this address, as a careless mirror does.
        refusals: Beginning of a path to the status and error code that are answered for it.
        busy: So many requests are answered with 503 first.
        forged: Path to the bytes that are sent instead of the file.
        entries: Changes to what is listed of a path.
        raw: What is answered to every question for a list, instead of one.
    """

    def __init__(self, **files: bytes) -> None:
        self.commits: dict[str, dict[str, bytes]] = {}
        self.commit(files)
        self.page = 100
        self.elsewhere = ""
        self.refusals: dict[str, tuple[int, str]] = {}
        self.busy = 0
        self.forged: dict[str, bytes] = {}
        self.entries: dict[str, dict[str, Any]] = {}
        self.raw: bytes | None = None
        self.asked: list[str] = []
        self.tokens: set[str | None] = set()
        self.address = ""

    def commit(self, files: dict[str, bytes]) -> str:
        name = hashlib.sha1(str(len(self.commits)).encode()).hexdigest()
        self.commits[name] = dict(files)
        return name

    @property
    def newest(self) -> str:
        return list(self.commits)[-1]

    def environ(self, **more: str) -> dict[str, str]:
        return {"HF_ENDPOINT": self.address, **more}

    def downloads(self) -> list[str]:
        return [path for path in self.asked if "/resolve/" in path]

    def listed(self, commit: str) -> list[dict[str, Any]]:
        entries: list[dict[str, Any]] = [{"type": "directory", "path": "Q4_K_M.gguf", "oid": "0"}]
        for path, content in self.commits[commit].items():
            entry: dict[str, Any] = {"type": "file", "path": path, "size": len(content), "oid": "0"}
            if not path.endswith(".md"):
                digest = hashlib.sha256(content).hexdigest()
                entry["lfs"] = {"oid": digest, "size": len(content), "pointerSize": 135}
            entries.append(entry | self.entries.get(path, {}))
        return entries


@contextmanager
def listing(hub: ListingHub) -> Iterator[ListingHub]:
    """Serve `hub` on loopback from a thread."""

    class Handler(_Handler):
        served = hub

    with on_loopback(Handler) as hub.address:
        yield hub


class _Handler(BaseHTTPRequestHandler):
    served: ListingHub

    def log_message(self, format: str, *args: object) -> None:
        pass

    def do_GET(self) -> None:
        hub = self.served
        hub.asked.append(self.path)
        hub.tokens.add(self.headers.get("Authorization"))
        if hub.busy:
            hub.busy -= 1
            self._answer(503, b"")
            return
        for start, (status, code) in hub.refusals.items():
            if self.path.startswith(start):
                self._answer(status, b"{}", {"X-Error-Code": code})
                return
        base = f"/api/models/{REPOSITORY}"
        if self.path.startswith(f"{base}/revision/"):
            self._revision(hub)
        elif self.path.startswith(f"{base}/tree/"):
            self._tree(hub)
        else:
            self._file(hub)

    def _revision(self, hub: ListingHub) -> None:
        if self.path.endswith("/main"):
            self._answer(200, json.dumps({"sha": hub.newest}).encode())
        else:
            self._answer(404, b"{}", {"X-Error-Code": "RevisionNotFound"})

    def _tree(self, hub: ListingHub) -> None:
        parts = urlsplit(self.path)
        query = parse_qs(parts.query)
        assert query["recursive"] == ["true"]
        if hub.raw is not None:
            self._answer(200, hub.raw)
            return
        start = int(query.get("cursor", ["0"])[0])
        entries = hub.listed(parts.path.rpartition("/")[2])
        headers = {}
        if start + hub.page < len(entries):
            link = f"{hub.elsewhere or hub.address}{parts.path}"
            link += f"?recursive=true&cursor={start + hub.page}"
            headers["Link"] = f'<{link}>; rel="next"'
        self._answer(200, json.dumps(entries[start : start + hub.page]).encode(), headers)

    def _file(self, hub: ListingHub) -> None:
        _, _, rest = self.path.partition("/resolve/")
        commit, _, path = rest.partition("/")
        content = hub.commits.get(commit, {}).get(path)
        if content is None:
            self._answer(404, b"", {"X-Error-Code": "EntryNotFound"})
        else:
            self._answer(200, hub.forged.get(path, content), {"ETag": '"x"'})

    def _answer(self, status: int, body: bytes, headers: dict[str, str] | None = None) -> None:
        self.send_response(status)
        for name, value in {**(headers or {}), "Content-Length": str(len(body))}.items():
            self.send_header(name, value)
        self.end_headers()
        with suppress(BrokenPipeError, ConnectionResetError):
            self.wfile.write(body)
