"""vLLM on loopback, with its documented shapes and faults; the model is the script's."""

from __future__ import annotations

from collections.abc import Sequence
from math import log
from typing import Any

from fake_servers import MODEL, Handler, Product, asked_of


class Vllm(Product):
    """Token level: its own tokenizer, completions of token ids, alternatives by id."""

    dialect = "vllm"

    def get(self, to: Handler) -> None:
        if to.path == "/v1/models":
            to.json({"data": [{"id": MODEL, "max_model_len": self.window}]})
        else:
            to.error(404, "no such path")

    def post(self, to: Handler, body: dict[str, Any]) -> None:
        if to.path == "/tokenize":
            to.json({"tokens": self.tokens(body), "max_model_len": self.window})
        elif to.path == "/detokenize":
            to.json({"prompt": "".join(self.texts[token] for token in body["tokens"])})
        elif to.path == "/v1/completions":
            self.complete(to, body)
        else:
            to.error(404, "no such path")

    def tokens(self, body: dict[str, Any]) -> list[int]:
        if "prompt" in body:
            return self.ids(body["prompt"])
        thinking = (body.get("chat_template_kwargs") or {}).get("enable_thinking", True)
        text = self.render(body["messages"], left_open=body["continue_final_message"])
        if self.thinks and not body["continue_final_message"]:
            text += "<think>\n" if thinking else "<think>\n\n</think>\n\n"
        return self.ids(text)

    def complete(self, to: Handler, body: dict[str, Any]) -> None:
        ids = body["prompt"]
        schema = (body.get("structured_outputs") or {}).get("json")
        if schema is not None and "$ref" in schema:
            to.error(400, "Grammar error: Pointer '/definitions/nothing' does not exist")
            return
        if len(ids) >= self.window:
            to.error(400, f"This model's maximum context length is {self.window} tokens.")
            return
        if body.get("logprobs") and body["logprobs"] > 20 and "few logprobs" in self.faults:
            to.error(400, "Requested sample logprobs of 100, which is greater than max: 20")
            return
        prompt = "".join(self.texts.get(token, "?") for token in ids)
        words, why = self.said(prompt, asked_of(body, "max_tokens", schema))
        if self.thinks and prompt.endswith("<think>\n"):
            words, why = ["Hm", "m", "\n"][: body["max_tokens"]], "stop"
        usage = {
            "prompt_tokens": len(ids) - (5 if "cut" in self.faults else 0),
            "completion_tokens": len(words),
            "prompt_tokens_details": {"cached_tokens": self.reuse(ids)},
        }
        if not body.get("stream"):
            choice: dict[str, Any] = {"text": "".join(words), "finish_reason": why}
            if body.get("logprobs"):
                choice["logprobs"] = {"top_logprobs": [self.named(prompt)]}
            to.json({"choices": [choice], "usage": usage})
            return
        events: list[dict[str, Any]] = [
            {"choices": [{"text": word, "token_ids": self.ids(word)}]} for word in words
        ]
        events.append({"choices": [{"text": "", "finish_reason": why, "token_ids": []}]})
        to.events([*events, {"choices": [], "usage": usage}])

    def reuse(self, ids: Sequence[int]) -> int:
        """Tokens of the longest prefix read before; the last one is always read anew."""
        with self.lock:
            best = 0
            for had in self.cached.values():
                common = 0
                for old, new in zip(had, ids[:-1], strict=False):
                    if old != new:
                        break
                    common += 1
                best = max(best, common)
            self.cached[len(self.cached)] = tuple(ids)
            return best

    def named(self, prompt: str) -> dict[str, float]:
        found = {}
        for text, mass in self.alternatives(prompt).items():
            (token,) = self.ids(text)
            found[f"token_id:{token}"] = log(mass)
        return found
