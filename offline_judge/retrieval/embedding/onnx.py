"""Embedders in ONNX files, run by ONNX Runtime; which one is the card's business."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from offline_judge.errors import BackendError
from offline_judge.retrieval.embedding.vectors import (
    Kind,
    check_dimension,
    missing,
    model_text,
    unit_rows,
    unusable,
)
from offline_judge.weights.cards import TOKENIZER, ModelCard

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

_QUIET = 3  # errors only: the runtime warns of things nobody here can change
_INPUTS = {"input_ids", "attention_mask", "token_type_ids"}
_FAILURES = (
    "EPFail",
    "EngineError",
    "Fail",
    "InvalidArgument",
    "InvalidGraph",
    "InvalidProtobuf",
    "NoModel",
    "NoSuchFile",
    "NotImplemented",
    "RuntimeException",
)


class OnnxEmbedder:
    """A transformer whose outputs, one a token, are pooled to one vector a text.

    Texts are run one at a time: on a CPU that is faster than padding them to the longest of a
    batch, and a text's vector does not depend on its neighbours.

    Args:
        card: Says dimension, length, pooling and prefixes.
        model: The ONNX file, already checked; its tokenizer lies beside it.
        threads: Threads to compute with.

    Raises:
        MissingDependencyError: onnxruntime or tokenizers is not installed.
        WeightsError: a file is not of its kind.
        SettingsError: the model gives vectors of another dimension than the card says.
    """

    def __init__(self, card: ModelCard, model: Path, threads: int) -> None:
        assert card.embedding is not None
        self._card = card
        self._how = card.embedding
        self._tokenizer = _tokenizer(card, model.with_name(TOKENIZER))
        self._session: Any = _session(card, model, threads)
        self._inputs = {item.name for item in self._session.get_inputs()}
        if problem := _shape_problem(self._session):
            raise unusable(card, model, "ONNX model of an embedder", problem)
        self._failures = _failures()
        check_dimension(card, self._vector("", "passage").shape[-1])

    @property
    def id(self) -> str:
        """The card's name and a hash over what shapes its vectors."""
        return self._card.vectors_id

    @property
    def dimension(self) -> int:
        """Length of a vector."""
        return self._how.dimension

    def embed(self, texts: Sequence[str], *, kind: Kind) -> NDArray[np.float32]:
        """Shape (number of texts, dimension), rows of length 1, in the order of the texts.

        Raises:
            BackendError: the runtime failed, or the embedder is closed.
        """
        import numpy as np

        if self._session is None:
            raise BackendError(f"The embedder {self._card.name} is closed.")
        rows = np.zeros((len(texts), self.dimension), dtype=np.float32)
        for index, text in enumerate(texts):
            rows[index] = self._vector(text, kind)
        return unit_rows(rows)

    def close(self) -> None:
        """Let go of the model. Safe to call twice."""
        self._session = None

    def _vector(self, text: str, kind: Kind) -> NDArray[np.float32]:
        """The pooled outputs for one text, of any length."""
        import numpy as np

        encoding = self._tokenizer.encode(model_text(text, kind, self._how))
        # A tokenizer that adds no special tokens has none for an empty text.
        encoding = encoding if encoding.ids else self._tokenizer.encode(".")
        given = {
            "input_ids": encoding.ids,
            "attention_mask": encoding.attention_mask,
            "token_type_ids": encoding.type_ids,
        }
        feed = {
            name: np.array([values], dtype=np.int64)
            for name, values in given.items()
            if name in self._inputs
        }
        try:
            states = self._session.run(None, feed)[0][0]
        except self._failures as error:
            raise BackendError(
                f"The embedder {self._card.name} failed: {error}",
                remedy="Check its files: offline-judge models verify " + self._card.name,
            ) from error
        vector: NDArray[np.float32] = _pooled(states, encoding.attention_mask, self._how.pooling)
        return vector


def _shape_problem(session: Any) -> str:
    """Why a model is none that turns tokens into a vector each; empty where it is one."""
    inputs = {item.name for item in session.get_inputs()}
    if "input_ids" not in inputs or not inputs <= _INPUTS:
        return f"it takes {', '.join(sorted(inputs))}, not token ids"
    rank = len(session.get_outputs()[0].shape)
    return "" if rank == 3 else f"its first output has {rank} dimensions, not text, token, number"


def _pooled(states: Any, mask: Sequence[int], pooling: str) -> Any:
    """Shape (dimension,) of states of shape (tokens, dimension); tokens masked out do not count."""
    import numpy as np

    seen = states[np.array(mask, dtype=bool)]
    if pooling == "cls":
        return seen[0]
    return seen[-1] if pooling == "last" else seen.mean(axis=0)


def _session(card: ModelCard, model: Path, threads: int) -> Any:
    try:
        import onnxruntime
    except ModuleNotFoundError as error:
        raise missing(card, error) from error
    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads = threads
    options.inter_op_num_threads = 1
    # Threads that spin while they wait take the cores from the engine.
    options.add_session_config_entry("session.intra_op.allow_spinning", "0")
    options.log_severity_level = _QUIET
    try:
        return onnxruntime.InferenceSession(
            str(model), sess_options=options, providers=["CPUExecutionProvider"]
        )
    except _failures() as error:
        raise unusable(card, model, "ONNX model", error) from error


def _tokenizer(card: ModelCard, path: Path) -> Any:
    try:
        from tokenizers import Tokenizer
    except ModuleNotFoundError as error:
        raise missing(card, error) from error
    assert card.embedding is not None
    try:
        tokenizer = Tokenizer.from_file(str(path))
    except Exception as error:  # tokenizers raises nothing more special than this
        raise unusable(card, path, "tokenizer", error) from error
    # The file may say otherwise, for the use it was saved for.
    tokenizer.no_padding()
    tokenizer.enable_truncation(card.embedding.max_tokens)
    tokenizer.encode_special_tokens = True  # a text that spells one is only text
    return tokenizer


def _failures() -> tuple[type[Exception], ...]:
    """The runtime's errors, which share no base but Exception."""
    from onnxruntime.capi import onnxruntime_pybind11_state as state

    return tuple(getattr(state, name) for name in _FAILURES if hasattr(state, name))
