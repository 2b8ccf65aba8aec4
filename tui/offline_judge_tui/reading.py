"""What the sample screen reads, in threads: a sample with its trace, a prompt, its neighbours."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from offline_judge.api import SampleView
    from offline_judge.domain.events import AnyEvent
    from offline_judge.domain.message import Message
    from offline_judge.domain.run import RunManifest
    from offline_judge.settings import Settings
    from offline_judge_tui.traces.model import Trace


@dataclass(frozen=True)
class Reading:
    """A sample, how it was judged, and of which run it is."""

    view: SampleView
    manifest: RunManifest
    trace: Trace

    @property
    def run_id(self) -> str:
        """The run's whole id."""
        return self.manifest.run_id

    @property
    def sample_id(self) -> str:
        """The sample's id."""
        return self.view.sample.id


@dataclass(frozen=True)
class PromptText:
    """A call word by word; `problem` says why the prompt cannot be made again."""

    number: int
    messages: tuple[Message, ...] = ()
    thinking: str = ""
    answer: str = ""
    problem: str = ""


def read_sample(run_id: str, sample_id: str, settings: Settings) -> Reading:
    """Read one sample of a run.

    Raises:
        OfflineJudgeError: there is no such run or sample, or its files are damaged.
    """
    from offline_judge import api
    from offline_judge_tui.traces.build import build_trace

    view = api.show(run_id, sample_id, settings)
    return Reading(view, api.run_manifest(run_id, settings), build_trace(view.events))


def read_prompt(
    run_id: str, events: Sequence[AnyEvent], number: int, settings: Settings
) -> PromptText:
    """Make the prompt of a call again; what hinders that is part of the answer."""
    from offline_judge import api
    from offline_judge.errors import OfflineJudgeError

    try:
        sent = api.call_prompt(run_id, events, number, settings)
    except OfflineJudgeError as error:
        return PromptText(number, problem=str(error))
    return PromptText(number, sent.messages, sent.thinking, sent.answer)


def read_beside(
    run_id: str, sample_id: str, settings: Settings, *, back: bool, disagree: bool
) -> str | None:
    """Id of the sample taken up next behind one, or before it; None where there is none.

    Args:
        run_id: The run.
        sample_id: From here.
        settings: Where runs are.
        back: The one before it.
        disagree: Pass over samples whose verdict is their label, or that lack one of the two.

    Raises:
        OfflineJudgeError: the run is gone or damaged.
    """
    from offline_judge import api
    from offline_judge.domain.run_rows import RowQuery

    query = RowQuery(disagree=disagree, reverse=back)
    return api.neighbour(run_id, sample_id, settings, query)
