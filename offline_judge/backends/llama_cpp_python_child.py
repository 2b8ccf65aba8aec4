"""llama-cpp-python behind the part of llama.cpp's HTTP dialect that this program speaks.

Run as a file in the environment that has llama-cpp-python, with the standard library and that
package only; the pipe, the phases and the key are as in `llama_child.py`. The package works on
one sequence and on one thread at a time, so there is one slot and a lock around the model.
"""

from __future__ import annotations

import codecs
import ctypes
import hmac
import json
import os
import select
import signal
import socket
import sys
import threading
import time
from collections.abc import Callable, Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any, NoReturn

_PR_SET_PDEATHSIG = 1
# The package looks into a schema by assertions, among other ways.
_SCHEMA_FAULTS = (AssertionError, AttributeError, LookupError, RuntimeError, TypeError, ValueError)
_KV_TYPES = {"f16": 1, "q4_0": 2, "q8_0": 8}


class ClientGoneError(Exception):
    """The client closed the stream; nobody reads what is written for it."""


class RefusedError(Exception):
    """A request that cannot be carried out, as the server's dialect says so."""

    def __init__(self, message: str, kind: str = "invalid_request_error") -> None:
        super().__init__(message)
        self.kind = kind


class Model:
    """One model and its one sequence, whose last prompt is its prefix cache."""

    def __init__(self, package: Any, config: dict[str, Any]) -> None:
        kind = _KV_TYPES[config["kv_cache"]]
        self._package = package
        self.window = int(config["window"])
        self._llama = package.Llama(
            config["model_path"],
            n_ctx=self.window,
            n_batch=config["batch"],
            n_ubatch=config["batch"],
            n_threads=config["threads"],
            n_threads_batch=config["threads"],
            n_gpu_layers=0 if config["gpu"] == "off" else config["gpu_layers"],
            # A quantised cache of values needs it.
            flash_attn=kind != _KV_TYPES["f16"],
            type_k=kind,
            type_v=kind,
            verbose=True,
        )
        self._batch = int(config["batch"])
        self.busy = False
        self.lock = threading.Lock()
        self._vocabulary = package.llama_cpp.llama_model_get_vocab(self._llama.model)
        self._formatter = self._make_formatter()

    def _make_formatter(self) -> Any:
        from llama_cpp.llama_chat_format import Jinja2ChatFormatter

        template = self._llama.metadata.get("tokenizer.chat_template")
        if not template:
            raise RuntimeError("the model's file has no chat template")
        texts = [
            self._llama._model.token_get_text(token) if token >= 0 else ""
            for token in (self._llama.token_eos(), self._llama.token_bos())
        ]
        return Jinja2ChatFormatter(template=template, eos_token=texts[0], bos_token=texts[1])

    def render(self, body: dict[str, Any]) -> str:
        """The template's text; a last turn of the assistant's is left open."""
        messages = list(body["messages"])
        begun = messages.pop()["content"] if messages[-1]["role"] == "assistant" else ""
        values = body.get("chat_template_kwargs", {})
        try:
            return str(self._formatter(messages=messages, **values).prompt) + begun
        except ValueError as error:
            raise RefusedError(f"the chat template refuses the conversation: {error}") from error

    def tokenize(self, body: dict[str, Any]) -> list[int]:
        """Token ids of a text."""
        ids: list[int] = self._llama.tokenize(
            body["content"].encode(),
            add_bos=bool(body.get("add_special")),
            special=bool(body.get("parse_special", True)),
        )
        return ids

    def complete(
        self, body: dict[str, Any], tell: Callable[[dict[str, Any]], None], gone: Callable[[], bool]
    ) -> None:
        """Answer one request, event by event."""
        prompt = [int(token) for token in body["prompt"]]
        if len(prompt) >= self.window:
            raise RefusedError(
                f"the request ({len(prompt)} tokens) exceeds the context of {self.window}",
                "exceed_context_size_error",
            )
        sampler = self._sampler(body)
        begun = time.monotonic()
        cached = self._reuse(prompt)
        for done in self._read(prompt, cached):
            tell({"prompt_progress": {"processed": done, "cache": cached, "total": len(prompt)}})
            if gone():
                raise ClientGoneError
        read_s = time.monotonic() - begun
        begun = time.monotonic()
        why, count = self._write(body, sampler, tell)
        tell(
            {
                "stop": True,
                "stop_type": why,
                "content": "",
                "tokens": [],
                "id_slot": 0,
                "truncated": False,
                "tokens_predicted": count,
                "timings": {
                    "cache_n": cached,
                    "prompt_n": len(prompt) - cached,
                    "prompt_ms": read_s * 1000,
                    "predicted_ms": (time.monotonic() - begun) * 1000,
                },
            }
        )

    def _sampler(self, body: dict[str, Any]) -> Any:
        grammar = None
        if "json_schema" in body:
            schema = {name: v for name, v in body["json_schema"].items() if name != "x-guidance"}
            try:
                grammar = self._package.LlamaGrammar.from_json_schema(json.dumps(schema))
            except _SCHEMA_FAULTS as error:
                raise RefusedError(f"the JSON schema cannot be used: {error!r}") from error
        self._llama.set_seed(int(body.get("seed", 0)))
        return self._llama._init_sampler(
            top_k=int(body.get("top_k", 0)),
            top_p=float(body.get("top_p", 1.0)),
            min_p=float(body.get("min_p", 0.0)),
            temp=float(body.get("temperature", 0.0)),
            grammar=grammar,
        )

    def _reuse(self, prompt: list[int]) -> int:
        """Keep what the cache and the prompt begin with; the last token is always read anew."""
        llama, common = self._llama, 0
        for had, wanted in zip(llama._input_ids, prompt[:-1], strict=False):
            if had != wanted:
                break
            common += 1
        if common and not llama._ctx.kv_cache_seq_rm(-1, common, -1):
            common = 0
        if not common:
            llama._ctx.kv_cache_clear()
        llama.n_tokens = common
        return common

    def _read(self, prompt: list[int], cached: int) -> Iterator[int]:
        for start in range(cached, len(prompt), self._batch):
            part = prompt[start : start + self._batch]
            self._llama.eval(part)
            yield start + len(part)

    def _write(
        self, body: dict[str, Any], sampler: Any, tell: Callable[[dict[str, Any]], None]
    ) -> tuple[str, int]:
        llama, most = self._llama, min(int(body["n_predict"]), self.window - self._llama.n_tokens)
        text = Held(body.get("stop", []))
        for count in range(most):
            event: dict[str, Any] = {"stop": False}
            if body.get("n_probs"):
                event["completion_probabilities"] = [{"top_logprobs": self._top(body["n_probs"])}]
            token = sampler.sample(llama._ctx, -1)
            if self._package.llama_cpp.llama_vocab_is_eog(self._vocabulary, token):
                tell(event | {"content": text.rest(), "tokens": []})
                return "eos", count + 1
            said = text.add(self._piece(token))
            tell(event | {"content": said, "tokens": [int(token)]})
            if text.stopped:
                return "word", count + 1
            if count + 1 < most:
                llama.eval([token])
        tell({"stop": False, "content": text.rest(), "tokens": []})
        return "limit", most

    def _piece(self, token: int) -> bytes:
        """The bytes of a token; the package's own method pads them with zeros."""
        room = 64
        while True:
            buffer = ctypes.create_string_buffer(room)
            size = self._package.llama_cpp.llama_token_to_piece(
                self._vocabulary, token, buffer, room, 0, False
            )
            if size >= 0:
                return buffer.raw[:size]
            room = -size

    def _top(self, number: int) -> list[dict[str, Any]]:
        """The likeliest next tokens, before any sampling or grammar."""
        import numpy as np

        size = self._llama.n_vocab()
        pointer = self._package.llama_cpp.llama_get_logits_ith(self._llama.ctx, -1)
        logits = np.ctypeslib.as_array(pointer, shape=(size,)).astype(np.float64)
        logprobs = logits - logits.max()
        logprobs -= np.log(np.exp(logprobs).sum())
        best = np.argsort(logprobs)[::-1][:number]
        return [{"id": int(token), "logprob": float(logprobs[token])} for token in best]


class Held:
    """Text of the tokens so far; what may yet become a stop text is held back."""

    def __init__(self, stops: list[str]) -> None:
        self._stops = stops
        self._decoder = codecs.getincrementaldecoder("utf-8")("replace")
        self._text = ""
        self.stopped = False

    def add(self, piece: bytes) -> str:
        """What can be told after one more token."""
        self._text += self._decoder.decode(piece)
        ends = [self._text.index(stop) for stop in self._stops if stop in self._text]
        if ends:
            self.stopped = True
            said, self._text = self._text[: min(ends)], ""
            return said
        keep = max((self._overlap(stop) for stop in self._stops), default=0)
        cut = len(self._text) - keep
        said, self._text = self._text[:cut], self._text[cut:]
        return said

    def rest(self) -> str:
        """What was held back, at the end."""
        said, self._text = self._text + self._decoder.decode(b"", final=True), ""
        return said

    def _overlap(self, stop: str) -> int:
        longest = min(len(stop) - 1, len(self._text))
        return next((n for n in range(longest, 0, -1) if self._text.endswith(stop[:n])), 0)


class Handler(BaseHTTPRequestHandler):
    """The paths of the dialect."""

    protocol_version = "HTTP/1.1"
    model: Model
    api_key: str

    def do_GET(self) -> None:
        """`/health` and `/slots`."""
        if not self._allowed():
            return
        if self.path == "/slots":
            state = {"id": 0, "n_ctx": self.model.window, "is_processing": self.model.busy}
            self._answer(200, [state])
        else:
            self._answer(200, {"status": "ok"})

    def do_POST(self) -> None:
        """`/apply-template`, `/tokenize` and `/completion`."""
        body = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
        if not self._allowed():
            return
        try:
            if self.path == "/completion":
                with self.model.lock:
                    self._complete(body)
                return
            with self.model.lock:
                if self.path == "/apply-template":
                    found: dict[str, Any] = {"prompt": self.model.render(body)}
                else:
                    found = {"tokens": self.model.tokenize(body)}
            self._answer(200, found)
        except RefusedError as error:
            self._answer(400, _error(error))

    def log_message(self, format: str, *args: object) -> None:
        """Say nothing: stderr is the engine's log."""

    def _complete(self, body: dict[str, Any]) -> None:
        begun = False

        def tell(event: dict[str, Any]) -> None:
            nonlocal begun
            if not begun:
                begun = True
                self.send_response(200)
                self.send_header("Content-Type", "text/event-stream")
                self.send_header("Transfer-Encoding", "chunked")
                self.end_headers()
            line = b"data: " + json.dumps(event).encode() + b"\n\n"
            self._chunk(line)

        self.model.busy = True
        try:
            self.model.complete(body, tell, self._gone)
            self._chunk(b"")
        except (ClientGoneError, BrokenPipeError, ConnectionResetError):
            self.close_connection = True
        except RefusedError as error:
            if begun:
                self._chunk(b"data: " + json.dumps(_error(error)).encode() + b"\n\n")
                self._chunk(b"")
            else:
                raise
        finally:
            self.model.busy = False

    def _chunk(self, content: bytes) -> None:
        self.wfile.write(b"%x\r\n%s\r\n" % (len(content), content))
        self.wfile.flush()

    def _gone(self) -> bool:
        readable, _, _ = select.select([self.connection], [], [], 0)
        return bool(readable) and self.connection.recv(1, socket.MSG_PEEK) == b""

    def _allowed(self) -> bool:
        given = self.headers.get("Authorization", "").removeprefix("Bearer ")
        if hmac.compare_digest(given.encode(), self.api_key.encode()):
            return True
        self._answer(401, {"error": {"message": "wrong key", "type": "authentication_error"}})
        return False

    def _answer(self, status: int, body: Any) -> None:
        content = json.dumps(body).encode()
        self.send_response(status)
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(len(content)))
        self.end_headers()
        self.wfile.write(content)


def _error(error: RefusedError) -> dict[str, Any]:
    return {"error": {"message": str(error), "type": error.kind, "code": 400}}


def main() -> int:
    """Load the model, serve it, and wait for the end of stdin."""
    if sys.platform == "linux":
        ctypes.CDLL(None).prctl(_PR_SET_PDEATHSIG, signal.SIGKILL, 0, 0, 0)
    line = sys.stdin.buffer.readline()
    if not line:
        return 0
    config = json.loads(line)
    if os.getppid() != config["parent_pid"]:
        return 0
    report = os.dup(1)
    os.dup2(2, 1)
    watcher = threading.Thread(target=_exit_at_end_of_pipe, daemon=True)
    watcher.start()
    _tell(report, phase="import")
    import llama_cpp

    if config["gpu"] == "required" and not llama_cpp.llama_supports_gpu_offload():
        _tell(report, phase="failed", error="a GPU is required, and this build knows none")
        return 1
    _tell(report, phase="load", version=llama_cpp.__version__)
    try:
        Handler.model, Handler.api_key = Model(llama_cpp, config), config["api_key"]
    except (ValueError, RuntimeError) as error:
        _tell(report, phase="failed", error=str(error))
        return 1
    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    server.daemon_threads = True
    threading.Thread(target=server.serve_forever, daemon=True).start()
    _tell(report, phase="ready", address=f"http://127.0.0.1:{server.server_port}")
    watcher.join()
    return 0


def _exit_at_end_of_pipe() -> NoReturn:
    while True:
        try:
            if not os.read(0, 4096):
                break
        except OSError:
            break
    os._exit(0)


def _tell(report: int, **fields: Any) -> None:
    os.write(report, json.dumps(fields).encode() + b"\n")


if __name__ == "__main__":
    sys.exit(main())
