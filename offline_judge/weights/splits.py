"""GGUF files in parts: `NAME-00001-of-00003.gguf` and its like, which an engine opens together."""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import PurePath

_PART = re.compile(r"(?P<stem>.+)-(?P<number>\d{5})-of-(?P<count>\d{5})\.gguf", re.IGNORECASE)


@dataclass(frozen=True)
class Part:
    """Which part of which file one is; parts of one file have the same `whole` and `count`."""

    whole: str
    number: int
    count: int


def part_of(path: str) -> Part | None:
    """What a path's name says of its being a part; None for a file that is whole."""
    match = _PART.fullmatch(path)
    if match is None:
        return None
    return Part(match["stem"], int(match["number"]), int(match["count"]))


def stem_of(path: PurePath) -> str:
    """The name of a GGUF file without its number and ending."""
    part = part_of(path.name)
    return part.whole if part else path.stem


def missing_parts(paths: Iterable[str]) -> list[str]:
    """Names of the parts that the parts given lack; empty where they are all there."""
    found = {path: part for path in paths if (part := part_of(path))}
    lacking = []
    for whole, count in sorted({(part.whole, part.count) for part in found.values()}):
        have = {
            part.number for part in found.values() if (part.whole, part.count) == (whole, count)
        }
        lacking += [part_name(whole, n, count) for n in range(1, count + 1) if n not in have]
    return lacking


def part_name(whole: str, number: int, count: int) -> str:
    """What a part is called, or where it is where `whole` has a folder."""
    return f"{whole}-{number:05}-of-{count:05}.gguf"


def one_model(paths: Iterable[str]) -> bool:
    """Whether the paths are one file, or parts of one file and nothing else."""
    listed = list(paths)
    parts = [part_of(path) for path in listed]
    if len(listed) == 1:
        return True
    return None not in parts and len({(part.whole, part.count) for part in parts if part}) == 1
