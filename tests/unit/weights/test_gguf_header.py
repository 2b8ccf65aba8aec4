"""Reading GGUF headers: facts, cut files, and headers made to hurt."""

from __future__ import annotations

import struct
import tracemalloc
from contextlib import suppress
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from weights_helpers import gguf_bytes, gguf_string

from offline_judge.errors import GgufError
from offline_judge.weights.gguf import read_header

HUGE = 2**63 - 1


def _header(path: Path, tensors: int, pairs: int, rest: bytes = b"") -> Path:
    path.write_bytes(struct.pack("<4sIQQ", b"GGUF", 3, tensors, pairs) + rest)
    return path


@pytest.mark.parametrize("version", [2, 3])
def test_header_tells_what_the_model_is(version: int, tmp_path: Path) -> None:
    path = tmp_path / "x.gguf"
    path.write_bytes(gguf_bytes(version=version))
    header = read_header(path)
    assert (header.version, header.tensors) == (version, 1)
    assert (header.architecture, header.name) == ("tiny", "Tiny Model")
    assert (header.context_length, header.chat_template) == (512, "{{ x }}")
    assert header.needed_size == header.file_size == path.stat().st_size


def test_file_short_of_one_byte_is_cut(tmp_path: Path) -> None:
    path, content = tmp_path / "x.gguf", gguf_bytes()
    path.write_bytes(content[:-1])
    expected = rf"cut short: it has {len(content) - 1:,} of {len(content):,} bytes"
    with pytest.raises(GgufError, match=expected):
        read_header(path)


def test_every_beginning_of_a_file_is_refused(tmp_path: Path) -> None:
    path, content = tmp_path / "x.gguf", gguf_bytes(elements=4)
    for length in range(len(content)):
        path.write_bytes(content[:length])
        with pytest.raises(GgufError):
            read_header(path)


@settings(max_examples=300, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(position=st.integers(0, 400), value=st.binary(min_size=1, max_size=8))
def test_damaged_header_is_refused_or_read_but_never_crashes(
    tmp_path: Path, position: int, value: bytes
) -> None:
    path, content = tmp_path / "x.gguf", bytearray(gguf_bytes(elements=4))
    content[position : position + len(value)] = value
    path.write_bytes(content)
    with suppress(GgufError):
        assert read_header(path).file_size == len(content)


def test_other_file_is_refused_by_its_beginning(tmp_path: Path) -> None:
    path = tmp_path / "x.gguf"
    path.write_bytes(b"<!DOCTYPE html>" * 100)
    with pytest.raises(GgufError, match="no GGUF file: it begins with '<!DO'"):
        read_header(path)


@pytest.mark.parametrize(("version", "word"), [(1, "version 1 is"), (3 << 24, "big-endian")])
def test_other_version_is_refused(version: int, word: str, tmp_path: Path) -> None:
    path = tmp_path / "x.gguf"
    path.write_bytes(struct.pack("<4sIQQ", b"GGUF", version, 0, 0))
    with pytest.raises(GgufError, match=word):
        read_header(path)


def _array(kind: int, length: int) -> bytes:
    return gguf_string("key") + struct.pack("<IIQ", 9, kind, length)


HOSTILE = {
    "tensor count": (HUGE, 0, b""),
    "metadata count": (0, HUGE, b""),
    "key length": (0, 1, struct.pack("<Q", HUGE)),
    "string length": (0, 1, gguf_string("key") + struct.pack("<IQ", 8, HUGE)),
    "number array": (0, 1, _array(6, HUGE)),
    "string array": (0, 1, _array(8, HUGE)),
    "string array within the limit": (0, 1, _array(8, 8_000_000)),
    "array of arrays": (0, 1, _array(9, 1) + struct.pack("<IQ", 9, 1) * 50),
    "unknown type": (0, 1, gguf_string("key") + struct.pack("<I", 99)),
    "dimensions": (1, 0, gguf_string("t") + struct.pack("<I", 2**32 - 1)),
    "shape": (1, 0, gguf_string("t") + struct.pack("<IQQIQ", 2, HUGE, HUGE, 0, 0)),
    "offset": (1, 0, gguf_string("t") + struct.pack("<IQIQ", 1, 1, 0, HUGE)),
    "alignment": (0, 1, gguf_string("general.alignment") + struct.pack("<II", 4, 0)),
}


@pytest.mark.parametrize("case", HOSTILE)
def test_hostile_header_is_refused_in_little_memory(case: str, tmp_path: Path) -> None:
    tensors, pairs, rest = HOSTILE[case]
    path = _header(tmp_path / "x.gguf", tensors, pairs, rest)
    tracemalloc.start()
    try:
        with pytest.raises(GgufError):
            read_header(path)
        assert tracemalloc.get_traced_memory()[1] < 1_000_000
    finally:
        tracemalloc.stop()


def test_kept_metadata_is_bounded(tmp_path: Path) -> None:
    texts = b"".join(
        gguf_string(f"key{number}") + struct.pack("<I", 8) + gguf_string("x" * 1_000_000)
        for number in range(30)
    )
    path = _header(tmp_path / "x.gguf", 0, 30, texts)
    header = read_header(path)
    assert sum(len(str(value)) for value in header.metadata.values()) <= 4 << 20
