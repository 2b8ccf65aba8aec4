"""What a GGUF file, or a folder in Hugging Face format, says of itself."""

from __future__ import annotations

import json
import math
import re
import struct
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

from offline_judge.errors import DataError
from offline_judge.weights.chat_templates import system_turn, thinking_switch
from offline_judge.weights.disk import reading
from offline_judge.weights.gguf import GgufHeader, read_header
from offline_judge.weights.splits import missing_parts, part_name, part_of, stem_of

_MOST_HEADER = 100_000_000
"""Bytes that the format allows the header of a safetensors file."""
_MOST_TEXT = 32 << 20
_KINDS = {".safetensors", ".json", ".txt", ".model", ".jinja", ".tiktoken"}
_TOKENIZERS = ("tokenizer.json", "tokenizer.model", "tekken.json", "vocab.json")
_INDEX = "model.safetensors.index.json"
_LICENCE = re.compile(r"^license(?:_name)?:\s*['\"]?([\w.-]+)", re.MULTILINE)
_TYPE_NAMES = (
    "F32 F16 Q4_0 Q4_1 - - - Q8_0 Q5_0 Q5_1 Q2_K Q3_K_S Q3_K_M Q3_K_L Q4_K_S Q4_K_M Q5_K_S "
    "Q5_K_M Q6_K IQ2_XXS IQ2_XS Q2_K_S IQ3_XS IQ3_XXS IQ1_S IQ4_NL IQ3_S IQ3_M IQ2_S IQ2_M "
    "IQ4_XS IQ1_M BF16 - - - TQ1_0 TQ2_0 MXFP4_MOE"
)
# `general.file_type` -> what llama.cpp calls that mix of quantisations; names only.
_FILE_TYPES = dict(enumerate(_TYPE_NAMES.split()))


@dataclass(frozen=True)
class Described:
    """What weights say of themselves; what they do not say is empty, 0 or None.

    Attributes:
        format: What an engine opens.
        paths: The files; the one an engine opens first.
        called: Names by which they go, of which a family may be told.
        architecture: What the engine is asked to run; never held against a list.
        parameters: Number of weights.
        quantisation: How they are stored.
        window: Tokens the model was trained for.
        licence: As the publisher wrote it.
        system_role: Whether the chat template keeps a system turn.
        thinking_switch: The chat template's variable for thinking.
    """

    format: Literal["gguf", "hf"]
    paths: tuple[Path, ...]
    called: tuple[str, ...]
    architecture: str
    parameters: int
    quantisation: str
    window: int
    licence: str
    system_role: bool | None
    thinking_switch: str


def describe(path: Path) -> Described:
    """What lies at a path: a GGUF file, one of its parts, or a folder.

    Raises:
        DataError: nothing is there, it is neither, or a part or file of it is missing.
        GgufError: a file is no GGUF, or is cut short.
        StorageError: a file cannot be read.
    """
    if path.is_dir():
        return _describe_folder(path)
    if not path.exists():
        raise DataError("There is no such file or folder.", where=str(path))
    return _describe_gguf(path)


def _describe_gguf(path: Path) -> Described:
    paths = _parts(path)
    with reading(path):
        headers = [read_header(each) for each in paths]
    first = headers[0]

    def text(key: str) -> str:
        return str(first.metadata.get(f"general.{key}", ""))

    template = first.chat_template
    return Described(
        format="gguf",
        paths=paths,
        called=(text("basename"), first.name, stem_of(path)),
        architecture=first.architecture,
        parameters=sum(header.parameters for header in headers),
        quantisation=_quantisation(first, path),
        window=first.context_length,
        licence=text("license"),
        system_role=system_turn(template),
        thinking_switch=thinking_switch(template),
    )


def _parts(path: Path) -> tuple[Path, ...]:
    """The file, or all parts where it is one of several."""
    part = part_of(path.name)
    if part is None:
        return (path,)
    names = [part_name(part.whole, n, part.count) for n in range(1, part.count + 1)]
    here = [name for name in names if (path.parent / name).is_file()]
    if lacking := missing_parts([path.name, *here]):
        raise DataError(
            f"Parts of this file are missing: {', '.join(lacking)}.",
            where=str(path.parent),
            remedy="Put all parts into one folder.",
        )
    return tuple(path.parent / name for name in names)


def _quantisation(header: GgufHeader, path: Path) -> str:
    told = header.metadata.get("general.file_type")
    name = _FILE_TYPES.get(told, "-") if isinstance(told, int) else "-"
    if name != "-":
        return name
    match = re.search(r"(?i)\b(I?Q\d\w*|BF16|F16|F32|MXFP4\w*)\b", path.stem.replace(".", " "))
    return match[0].upper() if match else "unknown"


def _describe_folder(folder: Path) -> Described:
    config = _json_of(folder / "config.json") if (folder / "config.json").is_file() else None
    if config is None:
        models = {stem_of(each): each for each in sorted(folder.glob("*.gguf"))}
        if len(models) == 1:
            return _describe_gguf(next(iter(models.values())))
        found = f"{len(models)} GGUF models" if models else "no GGUF file"
        raise DataError(
            f"This folder is no model: it has no config.json, and {found}.",
            where=str(folder),
            remedy="Name a GGUF file, or a folder in Hugging Face format.",
        )
    paths = _files_of(folder)
    inner = config.get("text_config")
    merged = config | inner if isinstance(inner, dict) else config
    count, kinds = _weights_of([path for path in paths if path.suffix == ".safetensors"], merged)
    window = merged.get("max_position_embeddings")
    template = _template_of(folder)
    return Described(
        format="hf",
        paths=paths,
        called=(str(config.get("_name_or_path", "")), folder.name),
        architecture=str(config.get("model_type", "")),
        parameters=count,
        quantisation=_method_of(merged) or kinds,
        window=window if isinstance(window, int) else 0,
        licence=_licence_of(folder),
        system_role=system_turn(template),
        thinking_switch=thinking_switch(template),
    )


def _files_of(folder: Path) -> tuple[Path, ...]:
    """The files that an engine reads; never code."""
    listed = sorted(
        path
        for path in folder.iterdir()
        if path.suffix in _KINDS and not path.name.startswith(".")
        if path.is_file() and path.stat().st_size
    )
    names = {path.name for path in listed}
    shards = {name for name in names if name.endswith(".safetensors")}
    if _INDEX in names:
        index = _json_of(folder / _INDEX).get("weight_map")
        wanted = {str(name) for name in index.values()} if isinstance(index, dict) else set()
    else:
        wanted = {"model.safetensors"} & shards or shards
    lacking = sorted(wanted - names)
    if not wanted or lacking:
        what = f"lacks {', '.join(lacking)}" if lacking else "has no *.safetensors file"
        raise DataError(f"This model is not whole: it {what}.", where=str(folder))
    if not names.intersection(_TOKENIZERS):
        raise DataError("This model has no tokenizer.", where=str(folder))
    # A repository may hold the same weights a second time under other names.
    kept = [path for path in listed if path.name not in shards - wanted]
    return tuple(sorted(kept, key=lambda path: path.name != "config.json"))


def _weights_of(shards: list[Path], config: dict[str, Any]) -> tuple[int, str]:
    """Number of weights, and the type most of them have."""
    kinds: Counter[str] = Counter()
    for path in shards:
        for kind, count in _tensors(path):
            kinds[kind] += count
    how = config.get("quantization_config")
    bits = how.get("bits", how.get("w_bit")) if isinstance(how, dict) else None
    if isinstance(bits, int) and 0 < bits < 32:
        # Several weights lie in one 32-bit number.
        kinds["I32"] = kinds["I32"] * 32 // bits
    if not kinds.total():
        raise DataError("This model has no weights.", where=str(shards[0].parent))
    return kinds.total(), kinds.most_common(1)[0][0]


def _tensors(path: Path) -> Iterator[tuple[str, int]]:
    """Type and size of each tensor of a safetensors file."""
    damaged = DataError("This safetensors file is damaged or cut short.", where=str(path))
    with reading(path), path.open("rb") as file:
        start = file.read(8)
        length = struct.unpack("<Q", start)[0] if len(start) == 8 else 0
        size = path.stat().st_size
        if not 0 < length <= min(_MOST_HEADER, size - 8):
            raise damaged
        raw = file.read(length)
    try:
        header = json.loads(raw)
        for name, tensor in header.items():
            if name == "__metadata__":
                continue
            shape, (_, end) = tensor["shape"], tensor["data_offsets"]
            if 8 + length + int(end) > size:
                raise damaged
            yield str(tensor["dtype"]), math.prod(int(each) for each in shape)
    except (ValueError, KeyError, TypeError, AttributeError) as error:
        raise damaged from error


def _method_of(config: dict[str, Any]) -> str:
    how = config.get("quantization_config")
    return str(how.get("quant_method", "")) if isinstance(how, dict) else ""


def _template_of(folder: Path) -> str:
    own = folder / "chat_template.jinja"
    if own.is_file():
        return _text_of(own)
    path = folder / "tokenizer_config.json"
    template = _json_of(path).get("chat_template") if path.is_file() else ""
    return template if isinstance(template, str) else ""


def _licence_of(folder: Path) -> str:
    readme = folder / "README.md"
    head = _text_of(readme)[:4096] if readme.is_file() else ""
    names = _LICENCE.findall(head) if head.startswith("---") else []
    return str(names[-1]) if names else ""


def _json_of(path: Path) -> dict[str, Any]:
    try:
        value = json.loads(_text_of(path))
    except ValueError as error:
        raise DataError(f"This file is no JSON: {error}.", where=str(path)) from error
    return value if isinstance(value, dict) else {}


def _text_of(path: Path) -> str:
    with reading(path), path.open("rb") as file:
        return file.read(_MOST_TEXT).decode("utf-8", "replace")
