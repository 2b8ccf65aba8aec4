"""Calibration files: strict JSON, written whole, and refused where they are not understood."""

from __future__ import annotations

import json
from pathlib import Path
from typing import get_args

from pydantic import ValidationError

from offline_judge.domain.calibration import Calibration
from offline_judge.domain.strict_json import parse_row
from offline_judge.errors import DataError
from offline_judge.outfiles import write_output

_VERSIONS = get_args(Calibration.model_fields["version"].annotation)
_REMEDY = "Make it anew: offline-judge calibrate RUN --labels FILE --out FILE"


def read_calibration(path: Path) -> Calibration:
    """Read a calibration.

    Raises:
        DataError: there is no such file, or it is no calibration this program understands.
    """
    where = str(path)
    try:
        raw = parse_row(path.read_bytes())
    except OSError as error:
        raise DataError(f"Cannot read the calibration: {error.strerror}", where=where) from None
    except ValueError as error:
        raise DataError(f"Not a calibration: {error}", where=where, remedy=_REMEDY) from None
    if raw.get("version") not in _VERSIONS:
        raise DataError(
            f"Not a calibration, or one of another version of this program: `version` is "
            f"{json.dumps(raw.get('version'))[:40]}, not {_VERSIONS[-1]}.",
            where=where,
            remedy=_REMEDY,
        )
    try:
        return Calibration.model_validate(raw)
    except ValidationError as error:
        first = error.errors()[0]
        field = ".".join(str(part) for part in first["loc"])
        raise DataError(
            f"This calibration is damaged: `{field}`: {first['msg']}", where=where, remedy=_REMEDY
        ) from None


def write_calibration(path: Path, calibration: Calibration) -> None:
    """Write a calibration whole or not at all.

    Raises:
        StorageError: it could not be written; an old file is untouched.
    """
    content = json.dumps(calibration.model_dump(mode="json"), indent=2, allow_nan=False)
    write_output(path, [f"{content}\n"])
