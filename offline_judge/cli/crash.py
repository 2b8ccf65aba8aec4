"""Keeps the traceback of an unexpected error for a bug report."""

from __future__ import annotations

import os
import sys
import time
import traceback
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from offline_judge.errors import OfflineJudgeError


def write_crash_log(flags: Mapping[str, Any]) -> Path | None:
    """Write the exception that is being handled to a file of its own.

    Returns:
        The file, below the data directory; None where it cannot be written.
    """
    from offline_judge.settings import load_settings

    try:
        folder = load_settings(flags).data_path / "logs"
        folder.mkdir(parents=True, exist_ok=True)
        stamp = time.strftime("%Y%m%dT%H%M%SZ", time.gmtime())
        path = folder / f"crash-{stamp}-{os.getpid()}.log"
        story = f"python {sys.version}\n\n{traceback.format_exc()}"
        path.write_text(story, encoding="utf-8", errors="backslashreplace")
    except (OSError, OfflineJudgeError):
        return None
    return path
