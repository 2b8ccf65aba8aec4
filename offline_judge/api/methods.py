"""Methods of judging, and what can be chosen of each."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from offline_judge.methods.options import OptionHelp


@dataclass(frozen=True)
class MethodView:
    """A method.

    Attributes:
        name: As `run` takes it.
        summary: What it does, in a sentence.
        searches: It looks for evidence.
        asks: It asks a judge.
        stages: How many slots of the engine a lane of it has.
        options: What can be chosen; empty for a method that does not describe its options.
    """

    name: str
    summary: str
    searches: bool
    asks: bool
    stages: int
    options: tuple[OptionHelp, ...]


def methods_list() -> list[MethodView]:
    """All methods, shipped ones first; those of other packages that cannot be used are left out."""
    from offline_judge import wiring
    from offline_judge.errors import OfflineJudgeError
    from offline_judge.registry import METHODS

    found = []
    for name in METHODS:
        try:
            method = wiring.build_method(name, {})
            options = wiring.method_options(name)
        except OfflineJudgeError:
            continue
        stages = len(method.stages)
        view = MethodView(name, _summary(method), method.searches, stages > 0, stages, options)
        found.append(view)
    return found


def _summary(method: object) -> str:
    return (type(method).__doc__ or "").strip().partition("\n")[0]
