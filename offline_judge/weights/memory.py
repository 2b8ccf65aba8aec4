"""How much memory programs may take on this machine, and in this process's control group."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

_TABLE = Path("/proc/meminfo")
_GROUPS = Path("/proc/self/cgroup")
_TREE = Path("/sys/fs/cgroup")
_UNLIMITED = 1 << 60
"""The older kind of groups says so with the largest number of pages there is."""
# What a group's statistics call the cache of files, which goes when memory is wanted.
_CACHE = ("active_file", "inactive_file", "total_active_file", "total_inactive_file")


def free_memory(table: Path = _TABLE, groups: Path = _GROUPS, tree: Path = _TREE) -> int | None:
    """Bytes that programs may take without swapping; None where the system does not tell.

    Pages of files that are cached count as free, so weights that were read lately and are mapped
    again are counted once, not twice. A container's limit counts where it is the narrower one.
    """
    told = [value for value in (_available(table), *_left_in_groups(groups, tree)) if value >= 0]
    return min(told) if told else None


def _available(table: Path) -> int:
    """What the machine says; -1 where it says nothing."""
    try:
        lines = table.read_text("ascii").splitlines()
    except OSError:
        return -1
    for line in lines:
        name, _, value = line.partition(":")
        if name == "MemAvailable":
            return int(value.split()[0]) * 1024
    return -1


def _left_in_groups(groups: Path, tree: Path) -> Iterator[int]:
    """What each limit on this process's groups leaves, both kinds of control groups."""
    try:
        lines = groups.read_text("utf-8", "replace").splitlines()
    except OSError:
        return
    for line in lines:
        number, _, rest = line.partition(":")
        controllers, _, path = rest.partition(":")
        parts = [part for part in path.split("/") if part not in ("", "..")]
        if number == "0":
            yield from _left(tree, parts, "memory.max", "memory.current")
        elif "memory" in controllers.split(","):
            names = ("memory.limit_in_bytes", "memory.usage_in_bytes")
            yield from _left(tree / "memory", parts, *names)


def _left(root: Path, parts: list[str], limit: str, usage: str) -> Iterator[int]:
    # In a container the path is often one that is seen outside only; what can be read counts.
    for depth in range(len(parts), -1, -1):
        folder = root.joinpath(*parts[:depth])
        most, used = _number(folder / limit), _number(folder / usage)
        if most is not None and used is not None and most < _UNLIMITED:
            yield max(0, most - used + _cached(folder / "memory.stat"))


def _number(path: Path) -> int | None:
    try:
        text = path.read_text("ascii").strip()
    except OSError:
        return None
    return int(text) if text.isdigit() else None


def _cached(path: Path) -> int:
    try:
        lines = path.read_text("ascii").splitlines()
    except OSError:
        return 0
    found = dict(line.split(None, 1) for line in lines if len(line.split()) == 2)
    # The older kind has totals over the groups below, which are what its usage counts too.
    names = _CACHE[2:] if _CACHE[2] in found else _CACHE[:2]
    return sum(int(found[name]) for name in names if found.get(name, "").strip().isdigit())
