"""Servers on loopback that answer as the products do, faults included; the model is a script.

Each `Product` speaks one product's documented dialect. `faults` are those that its users report:
they are the point of having these servers, because no real one shows them on demand.
"""

from __future__ import annotations

import json
import threading
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from math import log
from typing import Any, ClassVar

from offline_judge.backends.script import (
    default_json,
    default_masses,
    default_text,
    pieces,
    token_ids,
)
from offline_judge.domain.message import Label

MODEL = "small-model"
LABELS = [Label(name="true", text="Yes"), Label(name="false", text="No")]


class Product(ThreadingHTTPServer):
    """A product with one scripted model loaded.

    Attributes:
        window: Tokens of a request's context.
        faults: What goes wrong, by name.
        latency_s: Seconds an answer takes.
        requests: Path and body of every request.
        busy: So many requests are refused with 503 first.
        meet: Requests for an answer wait here for those of other servers.
        thinks: The model thinks unless it is told not to.
    """

    daemon_threads = True
    texts: ClassVar[dict[int, str]] = {}
    """Token ids to their texts; one tokenizer for all servers of the model."""
    dialect: ClassVar[str]

    def __init__(self, window: int = 512, faults: Sequence[str] = (), **more: Any) -> None:
        super().__init__(("127.0.0.1", int(more.get("port", 0))), Handler)
        self.window = window
        self.faults = set(faults)
        self.latency_s = float(more.get("latency_s", 0.0))
        self.busy = int(more.get("busy", 0))
        self.thinks = bool(more.get("thinks", False))
        self.slots = int(more.get("slots", 2))
        self.dead = False
        self.draws = 0
        self.meet: threading.Barrier | None = None
        self.requests: list[tuple[str, Any]] = []
        self.cached: dict[int, tuple[int, ...]] = {}
        self.lock = threading.Lock()

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.server_port}"

    def sent(self, path: str) -> list[Any]:
        return [body for asked, body in self.requests if asked == path]

    def ids(self, text: str) -> list[int]:
        """Token ids, which can be turned back."""
        found = list(token_ids(text))
        for token, piece in zip(found, pieces(text), strict=True):
            self.texts[token] = piece
        return found

    def render(self, messages: Sequence[dict[str, str]], *, left_open: bool = False) -> str:
        turns = [f"<|{turn['role']}|>\n{turn['content']}<|end|>\n" for turn in messages]
        text = "".join(turns)
        return text.removesuffix("<|end|>\n") if left_open else f"{text}<|assistant|>\n"

    def said(self, prompt: str, asked: dict[str, Any]) -> tuple[list[str], str]:
        """The pieces of an answer, and why it ends.

        `asked` has max, temperature, seed, stop and schema.
        """
        drawn = f"{self.draw(asked['seed'])}/" if asked["temperature"] > 0 else ""
        schema = asked["schema"]
        if schema is not None and "schema ignored" not in self.faults:
            text = default_json(schema, drawn + prompt)
        else:
            text = default_text(drawn + prompt)
        ends = [text.index(stop) for stop in asked["stop"] if stop in text]
        words = pieces(text[: min(ends)] if ends else text)
        if len(words) > asked["max"]:
            return words[: asked["max"]], "length"
        return words, "stop"

    def draw(self, seed: Any) -> Any:
        """What decides a warm answer: the seed, or nothing that a client could repeat."""
        self.draws += 1
        return f"draw {self.draws}" if "seed ignored" in self.faults else seed

    def alternatives(self, prompt: str) -> dict[str, float]:
        """The likeliest next tokens."""
        masses = default_masses(LABELS, prompt)
        return {label.text: masses[label.name] for label in LABELS}


class Handler(BaseHTTPRequestHandler):
    """Reads a request, hands it to the product's own dialect, writes JSON or a stream."""

    protocol_version = "HTTP/1.1"
    server: Product

    def parse_request(self) -> bool:
        if self.server.dead:
            self.close_connection = True
            return False
        return super().parse_request()

    def do_GET(self) -> None:
        self.server.requests.append((self.path, None))
        self.server.get(self)  # type: ignore[attr-defined]  # every product has one

    def do_POST(self) -> None:
        body = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
        server = self.server
        server.requests.append((self.path, body))
        if server.busy > 0 and body.get("stream"):
            server.busy -= 1
            self.error(503, "the server is busy")
            return
        if server.latency_s:
            time.sleep(server.latency_s)
        if server.meet is not None and "completions" in self.path:
            server.meet.wait(60)
        server.post(self, body)  # type: ignore[attr-defined]  # every product has one

    def log_message(self, format: str, *args: object) -> None:
        pass

    def json(self, value: Any, status: int = 200) -> None:
        content = json.dumps(value).encode()
        self.send_response(status)
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(len(content)))
        self.end_headers()
        self.wfile.write(content)

    def error(self, status: int, message: str, kind: str = "BadRequestError") -> None:
        self.json({"error": {"message": message, "type": kind, "code": status}}, status)

    def events(self, events: Sequence[dict[str, Any]], *, lines: bool = False) -> None:
        self.send_response(200)
        self.send_header("Transfer-Encoding", "chunked")
        self.end_headers()
        for event in events:
            text = json.dumps(event)
            self.chunk(f"{text}\n" if lines else f"data: {text}\n\n")
        if not lines:
            self.chunk("data: [DONE]\n\n")
        self.chunk("")

    def chunk(self, text: str) -> None:
        content = text.encode()
        self.wfile.write(b"%x\r\n%s\r\n" % (len(content), content))


def asked_of(body: dict[str, Any], most: str, schema: Any) -> dict[str, Any]:
    """How an answer is drawn, by the fields of a request."""
    return {
        "max": int(body.get(most) or 16),
        "temperature": float(body.get("temperature") or 0),
        "seed": body.get("seed"),
        "stop": body.get("stop") or (),
        "schema": schema,
    }


class OpenAi(Product):
    """Any compatible server: chat completions, and what a proxy in front of it takes away."""

    dialect = "openai"

    def get(self, to: Handler) -> None:
        if to.path == "/v1/models":
            to.json({"object": "list", "data": [{"id": MODEL, "object": "model"}]})
        else:
            to.error(404, "no such path")

    def post(self, to: Handler, body: dict[str, Any]) -> None:
        if to.path != "/v1/chat/completions":
            to.error(404, "no such path")
            return
        schema = (body.get("response_format") or {}).get("json_schema", {}).get("schema")
        if schema is not None and "$ref" in schema and "schema ignored" not in self.faults:
            to.error(400, "the schema cannot be compiled")
            return
        prompt = self.render(body["messages"])
        count = len(self.ids(prompt))
        if count >= self.window and "cut" not in self.faults:
            to.error(400, f"This model's maximum context length is {self.window} tokens.")
            return
        to.events(self.answer(prompt, body, schema, min(count, self.window)))

    def answer(self, prompt: str, body: dict[str, Any], schema: Any, count: int) -> list[Any]:
        words, why = self.said(prompt, asked_of(body, "max_tokens", schema))
        wanted = (body.get("chat_template_kwargs") or {}).get("enable_thinking", True)
        thinks = self.thinks and (wanted or "thinks anyway" in self.faults)
        events: list[dict[str, Any]] = [{"choices": [{"delta": {"role": "assistant"}}]}]
        if thinks:
            events += self.thought(body["max_tokens"])
        for at, word in enumerate(words):
            choice: dict[str, Any] = {"delta": {"content": word}}
            if thinks and schema is not None and "schema in reasoning" in self.faults:
                choice = {"delta": {"reasoning_content": word}}
            if body.get("logprobs") and at == 0 and "no logprobs" not in self.faults:
                choice["logprobs"] = {"content": [self.position(prompt)]}
            events.append({"choices": [choice]})
        events.append({"choices": [{"delta": {}, "finish_reason": why}]})
        usage = {"prompt_tokens": count, "completion_tokens": len(words)}
        if "no usage" not in self.faults:
            events.append({"choices": [], "usage": usage})
        return events

    def thought(self, most: int) -> list[dict[str, Any]]:
        text = "I think about it."
        return [{"choices": [{"delta": {"reasoning_content": text[: 4 * most]}}]}]

    def position(self, prompt: str) -> dict[str, Any]:
        masses = self.alternatives(prompt)
        if "after sampling" in self.faults:
            masses = {max(masses, key=lambda text: masses[text]): 1.0}
        top = [
            {"token": text, "logprob": log(mass), "bytes": list(text.encode())}
            for text, mass in masses.items()
        ]
        return {"token": top[0]["token"], "logprob": top[0]["logprob"], "top_logprobs": top}


class LmStudio(OpenAi):
    """No log-probabilities; the window it is loaded with in a list of its own."""

    dialect = "lmstudio"

    def __init__(self, window: int = 512, faults: Sequence[str] = (), **more: Any) -> None:
        super().__init__(window, [*faults, "no logprobs"], **more)

    def get(self, to: Handler) -> None:
        if to.path == "/api/v0/models":
            entry = {"id": MODEL, "type": "llm", "state": "loaded", "max_context_length": 32768}
            to.json({"data": [entry | {"loaded_context_length": self.window}]})
        else:
            super().get(to)


class Ollama(Product):
    """Drops the front of a prompt that its window does not hold, and answers what is left."""

    dialect = "ollama"

    def get(self, to: Handler) -> None:
        to.json({"version": "0.12.11"})

    def post(self, to: Handler, body: dict[str, Any]) -> None:
        if to.path == "/api/show":
            if body["model"] != MODEL:
                to.json({"error": f"model '{body['model']}' not found"}, 404)
                return
            capable = ["completion", "thinking"] if self.thinks else ["completion"]
            to.json({"model_info": {"llama.context_length": 8192}, "capabilities": capable})
            return
        schema = body.get("format")
        if schema is not None and "$ref" in schema and "schema ignored" not in self.faults:
            to.json({"error": "invalid JSON schema in format"}, 400)
            return
        options = body["options"]
        prompt = self.render(body["messages"])
        window = min(options["num_ctx"], self.window)
        count = len(self.ids(prompt))
        if count > window and body.get("truncate") is False and "old release" not in self.faults:
            to.json({"error": "the input length exceeds the context length"}, 400)
            return
        asked = asked_of(options, "num_predict", schema)
        words, why = self.said(prompt, asked)
        lines: list[dict[str, Any]] = []
        if self.thinks and body.get("think"):
            lines.append({"message": {"role": "assistant", "content": "", "thinking": "Hm."}})
        for at, word in enumerate(words):
            line: dict[str, Any] = {"message": {"role": "assistant", "content": word}}
            if body.get("logprobs") and at == 0 and "old release" not in self.faults:
                line["logprobs"] = [self.position(prompt)]
            lines.append(line | {"done": False})
        final = {
            "message": {"role": "assistant", "content": ""},
            "done": True,
            "done_reason": why,
            "prompt_eval_count": min(count, window),
            "eval_count": len(words),
            "prompt_eval_duration": 1_000_000,
            "eval_duration": 1_000_000,
        }
        to.events([*lines, final], lines=True)

    def position(self, prompt: str) -> dict[str, Any]:
        return OpenAi.position(self, prompt)  # type: ignore[arg-type]  # the same shape


@contextmanager
def serving(product: Product) -> Iterator[Product]:
    """The product, answering until the block ends."""
    thread = threading.Thread(target=product.serve_forever, kwargs={"poll_interval": 0.02})
    thread.start()
    try:
        yield product
    finally:
        product.dead = True
        product.shutdown()
        product.server_close()
        thread.join()
