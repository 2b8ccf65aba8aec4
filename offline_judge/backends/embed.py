"""Embedders in GGUF files: an engine child that embeds, behind the synchronous protocol."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Coroutine, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

from offline_judge.backends.engine import Engine
from offline_judge.backends.launch_llama import ScriptLauncher
from offline_judge.backends.options import EngineOptions
from offline_judge.errors import (
    BackendCrashedError,
    BackendError,
    BackendResponseError,
    GgufError,
)
from offline_judge.retrieval.embedding.vectors import (
    Kind,
    check_dimension,
    model_text,
    unit_rows,
    unusable,
)
from offline_judge.weights.cards import ModelCard
from offline_judge.weights.checking import check_gguf

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

T = TypeVar("T")

# The engine wants room behind a prompt even where nothing is written.
_ROOM = 16


class GgufEmbedder:
    """An embedder that llama.cpp runs, in a child that ends with this process.

    The child is spoken to on an event loop in a thread of its own, so that callers need none; that
    thread lives as long as the embedder, since the child's death signal follows it.

    Args:
        card: Says dimension, length, pooling and prefixes.
        model: The GGUF file, already checked.
        threads: Threads to compute with.
        script: The child's program; tests have smaller ones.

    Raises:
        WeightsError: the file is no GGUF.
        BackendStartError: the engine did not come up.
        SettingsError: the model gives vectors of another dimension than the card says.
    """

    def __init__(
        self, card: ModelCard, model: Path, threads: int, *, script: Path | None = None
    ) -> None:
        assert card.embedding is not None
        self._card = card
        self._how = card.embedding
        try:
            check_gguf(card.files[0], model)
        except GgufError as error:
            raise unusable(card, model, "GGUF model", error.message) from error
        window = self._how.max_tokens + _ROOM
        options = EngineOptions(
            model_path=model,
            model_name=card.name,
            window=window,
            threads=threads,
            # A text is pooled over one batch, so it must fit one.
            batch=window,
            parameters_b=card.parameters_b,
            pooling=self._how.pooling,
        )
        self._loop = asyncio.new_event_loop()
        self._thread = threading.Thread(target=self._loop.run_forever, name="embed", daemon=True)
        self._thread.start()
        self._closed = False
        # What the model's tokenizer puts behind a text, and a cut text must keep.
        self._tail: list[int] = []
        try:
            self._engine = self._call(_make_engine(options, script))
            self._call(self._open())
        except BaseException:
            self.close()
            raise

    @property
    def id(self) -> str:
        """The card's name and a hash over what shapes its vectors."""
        return self._card.vectors_id

    @property
    def dimension(self) -> int:
        """Length of a vector."""
        return self._how.dimension

    @property
    def engine(self) -> Engine:
        """The engine, for tests and diagnostics."""
        return self._engine

    def embed(self, texts: Sequence[str], *, kind: Kind) -> NDArray[np.float32]:
        """Shape (number of texts, dimension), rows of length 1, in the order of the texts.

        An engine that dies is started again, and the text it died at is tried once more.

        Raises:
            BackendError: the engine failed, or the embedder is closed.
        """
        import numpy as np

        if self._closed:
            raise BackendError(f"The embedder {self._card.name} is closed.")
        whole = [model_text(text, kind, self._how) for text in texts]
        rows = np.zeros((len(texts), self.dimension), dtype=np.float32)
        for index, vector in enumerate(self._call(self._vectors(whole))):
            rows[index] = vector
        return unit_rows(rows)

    def close(self) -> None:
        """End the engine and wait until it is gone. Safe to call twice."""
        if self._closed:
            return
        self._closed = True
        engine: Engine | None = getattr(self, "_engine", None)
        try:
            if engine is not None:
                self._call(engine.close())
        finally:
            self._loop.call_soon_threadsafe(self._loop.stop)
            self._thread.join()
            self._loop.close()

    def _call(self, work: Coroutine[Any, Any, T]) -> T:
        """Do the work on the embedder's loop and wait for it; an interrupted wait cancels it."""
        future = asyncio.run_coroutine_threadsafe(work, self._loop)
        try:
            return future.result()
        except BaseException:
            future.cancel()
            raise

    async def _open(self) -> None:
        await self._engine.start(_silent)
        bare = await self._tokens("a", special=False)
        dressed = await self._tokens("a", special=True)
        if bare and bare[-1] in dressed:
            self._tail = dressed[len(dressed) - dressed[::-1].index(bare[-1]) :]
        check_dimension(self._card, len(await self._vector("a")))

    async def _vectors(self, texts: Sequence[str]) -> list[list[float]]:
        return [await self._persistent_vector(text) for text in texts]

    async def _persistent_vector(self, text: str) -> list[float]:
        try:
            return await self._vector(text)
        except BackendCrashedError:
            return await self._vector(text)

    async def _vector(self, text: str) -> list[float]:
        """The pooled vector of one text, cut to the card's tokens."""
        tokens = await self._tokens(text, special=True)
        # A model without special tokens has none for an empty text, and cannot embed nothing.
        tokens = tokens or await self._tokens(" ", special=True)
        most = self._how.max_tokens
        if len(tokens) > most:
            tokens = tokens[: most - len(self._tail)] + self._tail
        answer = await self._post("/v1/embeddings", {"input": tokens, "encoding_format": "float"})
        try:
            vector: list[float] = answer["data"][0]["embedding"]
        except (KeyError, IndexError, TypeError) as error:
            raise BackendResponseError("The engine's answer holds no vector.") from error
        return vector

    async def _tokens(self, text: str, *, special: bool) -> list[int]:
        """Token ids; a text that spells a special token is only text."""
        body = {"content": text, "add_special": special, "parse_special": False}
        answer = await self._post("/tokenize", body)
        try:
            tokens: list[int] = answer["tokens"]
        except (KeyError, TypeError) as error:
            raise BackendResponseError("The engine's answer holds no tokens.") from error
        return tokens

    async def _post(self, path: str, body: dict[str, Any]) -> Any:
        wire = await self._engine.wire()
        try:
            answer = await wire.post(path, body)
        except BackendCrashedError as error:
            raise await self._engine.crashed(error, wire) from error
        self._engine.succeeded()
        return answer


async def _make_engine(options: EngineOptions, script: Path | None) -> Engine:
    """Made on the loop that it will be used on."""
    return Engine(options, ScriptLauncher(script) if script else ScriptLauncher())


def _silent(phase: str, detail: str = "") -> None:
    """Nobody listens while an embedder starts."""
