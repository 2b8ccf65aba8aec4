"""Stands in for `llama_child.py` as an embedder; the model's file name says how it behaves.

A text's tokens are its characters, dressed with 1 before and 2 behind; its vector is its first
tokens, so that a test sees what reached the engine. `dies` ends at the first text that holds "!".
"""

import json
import os
import sys
import threading
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

WIDTH = 8


class Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"

    def do_POST(self) -> None:
        body = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
        answer = self._tokens(body) if self.path == "/tokenize" else self._vector(body)
        data = json.dumps(answer).encode()
        self.send_response(200)
        self.send_header("Content-Length", str(len(data)))
        self.end_headers()
        self.wfile.write(data)

    def _tokens(self, body: dict[str, Any]) -> dict[str, Any]:
        tokens = [ord(letter) for letter in body["content"]]
        bare = "bare" in MODEL.name or not body["add_special"]
        return {"tokens": tokens if bare else [1, *tokens, 2]}

    def _vector(self, body: dict[str, Any]) -> dict[str, Any]:
        tokens = body["input"]
        if "vague" in MODEL.name:
            return {"data": []}
        flag = MODEL.with_suffix(".died")
        if ord("!") in tokens and ("always" in MODEL.name or not flag.exists()):
            flag.touch()
            os._exit(9)
        padded = [*tokens, *[0] * WIDTH]
        vector = [*padded[: WIDTH - 1], tokens[-1]]
        return {"data": [{"embedding": vector}]}

    def log_message(self, format: str, *args: object) -> None:
        pass


def end_with_pipe() -> None:
    os.read(0, 1)
    os._exit(0)


CONFIG = json.loads(sys.stdin.buffer.readline())
MODEL = Path(CONFIG["model_path"])
assert CONFIG["pooling"] == "last"
threading.Thread(target=end_with_pipe, daemon=True).start()
SERVER = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
sys.stdout.write(json.dumps({"phase": "load", "version": "fake"}) + "\n")
ready = {"phase": "ready", "address": f"http://127.0.0.1:{SERVER.server_port}"}
sys.stdout.write(json.dumps(ready) + "\n")
sys.stdout.flush()
SERVER.serve_forever()
