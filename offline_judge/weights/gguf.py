"""Reads a GGUF file's header, and tells whether the file is whole.

A reader of our own, not the `gguf` package: that one maps the whole file, needs numpy, and trusts
the counts it reads. Here every count and length is held against what is left of the file before
anything is read, arrays are skipped unread, and what is kept is bounded.
"""

from __future__ import annotations

import os
import struct
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import BinaryIO

from offline_judge.errors import GgufError

Scalar = str | int | float | bool

_SCALARS = {
    0: "B",
    1: "b",
    2: "H",
    3: "h",
    4: "I",
    5: "i",
    6: "f",
    7: "?",
    10: "Q",
    11: "q",
    12: "d",
}
_STRING, _ARRAY = 8, 9
_VERSIONS = (2, 3)
_DEFAULT_ALIGNMENT, _MAX_ALIGNMENT = 32, 1 << 20
_MAX_PAIRS, _MAX_TENSORS, _MAX_STRINGS = 65_536, 262_144, 8_388_608
_MAX_KEY, _MAX_DIMENSIONS = 65_535, 8
_MAX_KEPT = 4 << 20

# ggml type -> (elements of a block, bytes of a block)
_BLOCKS = {
    0: (1, 4),  # F32
    1: (1, 2),  # F16
    2: (32, 18),  # Q4_0
    3: (32, 20),  # Q4_1
    6: (32, 22),  # Q5_0
    7: (32, 24),  # Q5_1
    8: (32, 34),  # Q8_0
    9: (32, 36),  # Q8_1
    10: (256, 84),  # Q2_K
    11: (256, 110),  # Q3_K
    12: (256, 144),  # Q4_K
    13: (256, 176),  # Q5_K
    14: (256, 210),  # Q6_K
    15: (256, 292),  # Q8_K
    16: (256, 66),  # IQ2_XXS
    17: (256, 74),  # IQ2_XS
    18: (256, 98),  # IQ3_XXS
    19: (256, 50),  # IQ1_S
    20: (32, 18),  # IQ4_NL
    21: (256, 110),  # IQ3_S
    22: (256, 82),  # IQ2_S
    23: (256, 136),  # IQ4_XS
    24: (1, 1),  # I8
    25: (1, 2),  # I16
    26: (1, 4),  # I32
    27: (1, 8),  # I64
    28: (1, 8),  # F64
    29: (256, 56),  # IQ1_M
    30: (1, 2),  # BF16
    34: (256, 54),  # TQ1_0
    35: (256, 66),  # TQ2_0
    39: (32, 17),  # MXFP4
}


@dataclass(frozen=True)
class GgufHeader:
    """What a GGUF file says of itself.

    Attributes:
        version: Version of the container, 2 or 3.
        tensors: Number of tensors in this file.
        parameters: Number of weights in them.
        architecture: `general.architecture`, such as `qwen2`; empty where it is not given.
        name: `general.name`; empty where it is not given.
        context_length: Tokens of the window the model was trained for; 0 where it is not given.
        chat_template: The default chat template's source; empty where there is none.
        metadata: Single values (no arrays), as far as they fit in 4 MiB.
        needed_size: Bytes the file must have to hold every tensor.
        file_size: Bytes the file has.
    """

    version: int
    tensors: int
    parameters: int
    architecture: str
    name: str
    context_length: int
    chat_template: str
    metadata: Mapping[str, Scalar]
    needed_size: int
    file_size: int


def read_header(path: Path) -> GgufHeader:
    """Read the header of a GGUF file and check that the file holds all its tensors.

    Memory and time stay bounded by the file's size, whatever its header claims.

    Raises:
        GgufError: the file is no GGUF, is damaged, or is cut short; says which.
        OSError: the file cannot be opened.
    """
    with path.open("rb") as file:
        reader = _Reader(file, os.fstat(file.fileno()).st_size, path)
        version = _read_version(reader)
        tensors = reader.count("tensor count", _MAX_TENSORS)
        pairs = reader.count("metadata count", _MAX_PAIRS)
        metadata = _read_metadata(reader, pairs)
        end_of_data, parameters = _read_tensors(reader, tensors)
        alignment = _alignment(reader, metadata)
        header_end = reader.position
    data_start = -(-header_end // alignment) * alignment
    needed = data_start + end_of_data if tensors else header_end
    if reader.size < needed:
        raise GgufError(
            f"The GGUF file is cut short: it has {reader.size:,} of {needed:,} bytes.",
            where=str(path),
        )
    architecture = str(metadata.get("general.architecture", ""))
    context = metadata.get(f"{architecture}.context_length", 0)
    return GgufHeader(
        version=version,
        tensors=tensors,
        parameters=parameters,
        architecture=architecture,
        name=str(metadata.get("general.name", "")),
        context_length=int(context) if isinstance(context, int) else 0,
        chat_template=str(metadata.get("tokenizer.chat_template", "")),
        metadata=metadata,
        needed_size=needed,
        file_size=reader.size,
    )


class _Reader:
    """Reads little-endian values; every length is checked against the rest of the file first."""

    def __init__(self, file: BinaryIO, size: int, path: Path) -> None:
        self._file = file
        self._path = path
        self.size = size
        self.position = 0
        self._strings_left = _MAX_STRINGS

    def fail(self, what: str) -> GgufError:
        return GgufError(what, where=str(self._path))

    def take(self, length: int, what: str) -> bytes:
        self.require(length, what)
        data = self._file.read(length)
        if len(data) != length:
            raise self.fail(f"The GGUF file is cut short inside its header ({what}).")
        self.position += length
        return data

    def skip(self, length: int, what: str) -> None:
        self.require(length, what)
        self._file.seek(length, os.SEEK_CUR)
        self.position += length

    def require(self, length: int, what: str) -> None:
        if length > self.size - self.position:
            raise self.fail(
                f"The GGUF file is cut short inside its header or damaged: {what} needs "
                f"{length:,} bytes and {self.size - self.position:,} are left."
            )

    def number(self, code: str, what: str) -> Scalar:
        form = "<" + code
        value: Scalar = struct.unpack(form, self.take(struct.calcsize(form), what))[0]
        return value

    def unsigned(self, code: str, what: str) -> int:
        return int(self.number(code, what))

    def count(self, what: str, limit: int) -> int:
        value = self.unsigned("Q", what)
        if value > limit:
            raise self.fail(
                f"The GGUF header is damaged: its {what} is {value:,}, more than {limit:,}."
            )
        return value

    def text(self, what: str, limit: int) -> str | None:
        """A string; one longer than `limit` bytes is skipped and comes back as None."""
        length = self.unsigned("Q", f"length of {what}")
        if length > limit:
            self.skip(length, what)
            return None
        return self.take(length, what).decode("utf-8", "replace")

    def skip_strings(self, length: int, what: str) -> None:
        self._strings_left -= length
        if self._strings_left < 0:
            raise self.fail(f"The GGUF header is damaged: array {what} claims {length:,} strings.")
        self.require(8 * length, what)
        for _ in range(length):
            self.skip(self.unsigned("Q", what), what)

    def name(self, what: str) -> str:
        text = self.text(what, _MAX_KEY)
        if text is None:
            raise self.fail(f"The GGUF header is damaged: a {what} is longer than {_MAX_KEY:,}.")
        return text


def _read_version(reader: _Reader) -> int:
    start = reader.take(min(4, reader.size), "magic")
    if start != b"GGUF":
        shown = start.decode("latin-1")
        begins = f"it begins with {shown!r}, not 'GGUF'" if shown else "it is empty"
        raise reader.fail(f"This is no GGUF file: {begins}.")
    version = reader.unsigned("I", "version")
    if version not in _VERSIONS:
        hint = " (a big-endian file)" if version and not version & 0xFFFF else ""
        raise reader.fail(f"GGUF version {version}{hint} is not supported, only 2 and 3.")
    return version


def _read_metadata(reader: _Reader, pairs: int) -> dict[str, Scalar]:
    metadata: dict[str, Scalar] = {}
    budget = _MAX_KEPT
    for _ in range(pairs):
        key = reader.name("metadata key")
        kind = reader.unsigned("I", f"type of {key}")
        value = _read_value(reader, key, kind, max(budget - len(key), 0))
        if value is None:
            continue
        cost = len(key) + (len(value) if isinstance(value, str) else 8)
        if cost <= budget:
            metadata[key] = value
            budget -= cost
    return metadata


def _read_value(reader: _Reader, key: str, kind: int, limit: int) -> Scalar | None:
    if kind == _STRING:
        return reader.text(key, limit)
    if kind == _ARRAY:
        _skip_array(reader, key)
        return None
    if kind not in _SCALARS:
        raise reader.fail(f"The GGUF header is damaged: {key} has the unknown type {kind}.")
    return reader.number(_SCALARS[kind], key)


def _skip_array(reader: _Reader, key: str) -> None:
    kind = reader.unsigned("I", f"type of {key}")
    length = reader.unsigned("Q", f"length of {key}")
    if kind in _SCALARS:
        reader.skip(length * struct.calcsize("<" + _SCALARS[kind]), key)
        return
    if kind != _STRING:
        raise reader.fail(f"The GGUF header is damaged: array {key} holds the type {kind}.")
    reader.skip_strings(length, key)


def _read_tensors(reader: _Reader, tensors: int) -> tuple[int, int]:
    """Read the tensor table: the offset behind the last one's data, from its start, and weights."""
    end = weights = 0
    for _ in range(tensors):
        name = reader.name("tensor name")
        dimensions = reader.unsigned("I", f"dimensions of {name}")
        if dimensions > _MAX_DIMENSIONS:
            raise reader.fail(f"The GGUF header is damaged: {name} has {dimensions} dimensions.")
        elements = 1
        for _ in range(dimensions):
            elements *= reader.unsigned("Q", f"shape of {name}")
        weights += elements
        kind = reader.unsigned("I", f"type of {name}")
        offset = reader.unsigned("Q", f"offset of {name}")
        # A type newer than this table still begins where it says it does.
        block, size = _BLOCKS.get(kind, (elements or 1, 1))
        end = max(end, offset + -(-elements // block) * size)
    return end, weights


def _alignment(reader: _Reader, metadata: Mapping[str, Scalar]) -> int:
    value = metadata.get("general.alignment", _DEFAULT_ALIGNMENT)
    if not isinstance(value, int) or not 0 < value <= _MAX_ALIGNMENT or value & (value - 1):
        raise reader.fail(f"The GGUF header is damaged: its alignment is {value!r}.")
    return value
