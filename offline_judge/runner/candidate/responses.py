"""Responses that a candidate wrote, and the samples they belong to."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

from offline_judge.domain.events import ResponseWritten
from offline_judge.domain.message import FinishReason
from offline_judge.domain.sample import Sample

Written = Mapping[str, ResponseWritten]
"""Sample id to the response that the candidate wrote."""

CANDIDATE = "candidate"
CUT = "candidate_cut"
"""Metadata of a sample: who wrote its response, and that the output limit cut it."""


def answered(sample: Sample, written: Written) -> Sample:
    """The sample with what was written for it; as it is where nothing was."""
    event = written.get(sample.id)
    if event is None or sample.response:
        return sample
    marks: dict[str, str | bool] = {CANDIDATE: event.candidate}
    if event.response and event.finish_reason is FinishReason.LENGTH:
        marks[CUT] = True
    metadata = {**sample.metadata, **marks}
    return sample.model_copy(update={"response": event.response, "metadata": metadata})


def is_missing(sample: Sample, written: Written) -> bool:
    """Whether the sample's response is still to be written."""
    return not sample.response and sample.id not in written


def ready(
    groups: Iterable[Sequence[Sample]], written: Written
) -> tuple[tuple[tuple[Sample, ...], ...], int]:
    """The groups whose samples can be judged, and how many samples still lack a response."""
    found, left = [], 0
    for group in groups:
        done = tuple(answered(s, written) for s in group if not is_missing(s, written))
        left += len(group) - len(done)
        if done:
            found.append(done)
    return tuple(found), left


def refused(written: Written) -> dict[str, tuple[str, str]]:
    """Sample id to reason and detail, for samples that got no response to judge."""
    return {
        name: (event.reason, event.detail) for name, event in written.items() if not event.response
    }
