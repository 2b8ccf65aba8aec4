"""Owns where a run's control socket lies, and that only its user can reach it."""

from __future__ import annotations

import hashlib
import os
import stat
from pathlib import Path

from offline_judge.errors import StorageError

# A socket's path holds 108 bytes on Linux and 104 on macOS, its end mark included.
_LONGEST = 100


def socket_path(runtime_path: os.PathLike[str], run_id: str) -> Path:
    """Where the socket of a run lies: in `runtime_path`, or in /tmp where that is too long."""
    path = Path(runtime_path).absolute() / f"{run_id}.sock"
    if len(os.fsencode(path)) <= _LONGEST:
        return path
    short = hashlib.sha256(os.fsencode(path)).hexdigest()[:24]
    return Path("/tmp") / f"offline-judge-{os.getuid()}" / f"{short}.sock"


def make_private_directory(path: Path) -> None:
    """Make a directory that only this user may enter, or make sure that an old one is such.

    Raises:
        StorageError: it cannot be made, or is somebody else's.
    """
    try:
        path.mkdir(mode=0o700, parents=True, exist_ok=True)
        check_own_directory(path)
        if stat.S_IMODE(path.lstat().st_mode) & 0o077:
            path.chmod(0o700)
    except OSError as error:
        raise StorageError(
            f"Cannot make the folder for control sockets: {error.strerror}", where=str(path)
        ) from error


def check_own_directory(path: Path) -> None:
    """Make sure a directory is this user's: in /tmp anybody may have made it first.

    Raises:
        StorageError: it is somebody else's, or no directory.
        OSError: it cannot be looked at, for one because it is not there.
    """
    found = path.lstat()
    if not stat.S_ISDIR(found.st_mode) or found.st_uid != os.geteuid():
        raise StorageError(
            "The folder for control sockets is not this user's own directory.",
            where=str(path),
            remedy="Set XDG_RUNTIME_DIR to a folder of yours.",
        )
