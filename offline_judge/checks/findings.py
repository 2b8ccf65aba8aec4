"""What a check finds, and the checks run one after another."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field
from typing import Any, Literal

from offline_judge.errors import OfflineJudgeError
from offline_judge.settings import Settings

State = Literal["ok", "note", "problem"]


@dataclass(frozen=True)
class Finding:
    """One thing that was looked at.

    Attributes:
        area: What it belongs to.
        name: What was looked at.
        state: `ok`, `note` (worth knowing) or `problem` (something will not work).
        text: What was found.
        remedy: What to do about it; "" where nothing is to be done.
        data: The same for programs.
    """

    area: str
    name: str
    state: State
    text: str
    remedy: str = ""
    data: dict[str, Any] = field(default_factory=dict)


Check = Callable[[Settings], Iterable[Finding]]


def findings(checks: Sequence[tuple[str, Check]], settings: Settings) -> list[Finding]:
    """What all checks find; one that fails is a finding itself and keeps no other from its turn."""
    found: list[Finding] = []
    for area, check in checks:
        try:
            found += check(settings)
        except OfflineJudgeError as error:
            where = f" [{error.where}]" if error.where else ""
            found.append(Finding(area, area, "problem", f"{error.message}{where}", error.remedy))
        except Exception as error:  # noqa: BLE001 - the other checks must go on, whatever this one met
            text = f"could not be looked at: {type(error).__name__}: {error}"
            found.append(Finding(area, area, "problem", text, "Report this."))
    return found
