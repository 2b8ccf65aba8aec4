"""What a run is: its manifest, written once, and its summary, derived from the trace."""

from __future__ import annotations

from typing import Any

from pydantic import Field

from offline_judge.domain.base import Frozen
from offline_judge.domain.calibration import Calibration


class SettingValue(Frozen):
    """A setting as it was used, and where it came from: flag, environment, a file, default."""

    value: Any
    origin: str


class ResponseSource(Frozen):
    """The file whose responses were joined to the questions of the data file.

    Attributes:
        path: Absolute.
        sha256: Of the file's bytes.
        rows: Rows read.
        unknown: Rows whose question is not in the data file.
    """

    path: str
    sha256: str
    rows: int
    unknown: int = 0


class DataSource(Frozen):
    """The data file of a run.

    Attributes:
        path: Absolute.
        sha256: Of the file's bytes, as they lie there.
        format: `jsonl`, `csv` or `tsv`, or the name of a public set's form.
        rows: Rows read.
        skipped: Rows that cannot be used.
        mapping: Field to column, where they were named differently.
        left_out: Why rows or answers that are sound were left out, and how many.
        responses: Where the responses come from, if from a file of their own.
    """

    path: str
    sha256: str
    format: str
    rows: int
    skipped: int = 0
    mapping: dict[str, str] = Field(default_factory=dict)
    left_out: dict[str, int] = Field(default_factory=dict)
    responses: ResponseSource | None = None


class ModelIdentity(Frozen):
    """The weights behind a role: card name, file hash, engine and its version."""

    name: str
    sha256: str
    engine: str
    engine_version: str = ""
    family: str = ""


class CandidateIdentity(Frozen):
    """The model that wrote the responses of a run before they were judged.

    Attributes:
        name: As it was asked for.
        model: Its weights.
        prompts: Template name to source hash.
        options: How its answers were drawn.
    """

    name: str
    model: ModelIdentity
    prompts: dict[str, str] = Field(default_factory=dict)
    options: dict[str, Any] = Field(default_factory=dict)


class Parent(Frozen):
    """Where a derived run comes from: one sample of another run, whose evidence a person changed.

    Attributes:
        run_id: The other run, which is never changed.
        sample_id: The one sample that is judged again.
        passages: Ids of the passages added to its evidence, by content; earlier ones first.
        without: Ids of the passages left out of it.
    """

    run_id: str
    sample_id: str
    passages: tuple[str, ...] = ()
    without: tuple[str, ...] = ()


class RunManifest(Frozen):
    """`run.json`: all that shapes the judgments of a run. Written once, atomically.

    Attributes:
        run_id: Unique, sorts by time.
        created: UTC, ISO 8601.
        method: Name in the method registry.
        options: The method's own options, all of them.
        data: The data file.
        judge: The weights that judge.
        search: Identity of the search provider, empty where the method does not search.
        prompts: Template name to source hash.
        settings: Every setting with its origin.
        versions: Versions of this program and of the packages that matter.
        leaves_machine: What is sent to other machines, and where; empty for a local run.
        candidate: Who wrote the responses, where the run had them written.
        parent: Whose sample is judged again, where the run is a derived one.
        calibration: How verdicts are read beside the plain way, whole, so that the run stands
            without its file.
    """

    run_id: str
    created: str
    method: str
    options: dict[str, Any] = Field(default_factory=dict)
    data: DataSource
    judge: ModelIdentity
    search: dict[str, Any] = Field(default_factory=dict)
    prompts: dict[str, str] = Field(default_factory=dict)
    settings: dict[str, SettingValue] = Field(default_factory=dict)
    versions: dict[str, str] = Field(default_factory=dict)
    leaves_machine: tuple[str, ...] = ()
    candidate: CandidateIdentity | None = None
    parent: Parent | None = None
    calibration: Calibration | None = None


class Agreement(Frozen):
    """Agreement with people over the `n` samples that are both labelled and scored.

    `kappa` is Cohen's kappa; None where it is undefined (one class only on both sides).
    """

    n: int
    accuracy: float
    kappa: float | None
    unscored: int = 0


class RunSummary(Frozen):
    """`results.json`: counts and means over the trace, each with what they leave out.

    Attributes:
        run_id: The run.
        status: `running`, `interrupted`, or the status of the last `run_finished`.
        planned: Samples the run set out to judge.
        outcomes: Outcome to number of samples.
        reasons: Reason to number of samples that are not scored.
        evidence_states: Evidence state to number of scored samples.
        verdict_true: Scored samples judged correct.
        agreement: Against labels, where there are any.
        prompt_tokens: Tokens sent, reused completions excluded.
        read_anew: Tokens of these the engine had to read.
        completion_tokens: Tokens generated.
        calls: Requests to the engine.
        reused_calls: Answers from the completion cache.
        searches: Searches made.
        recorded_searches: Of these, searches that found nothing but what the record held already.
        failed_searches: Searches that failed.
        seconds: Time in which samples were worked on, summed over samples.
        distinct_queries: Mean number of distinct queries a scored sample, None without searches.
        fallback_rounds: Rounds that fell back to further ranks.
        disagreeing_rationales: Rationales that argue for the other label.
        dropped_citations: Citations of evidence that is not in the notes.
        calibrated_true: Scored samples judged correct by the calibrated reading; None in a run
            without a calibration.
        calibrated_agreement: Of that reading with labels.
        responses_written: Responses the candidate wrote, empty ones included.
        responses_cut: Of these, responses that its output limit cut.
        responses_missing: Of these, samples for which nothing came.
        warnings: What a reader must know of the run as a whole, each once.
    """

    run_id: str
    status: str
    planned: int = 0
    outcomes: dict[str, int] = Field(default_factory=dict)
    reasons: dict[str, int] = Field(default_factory=dict)
    evidence_states: dict[str, int] = Field(default_factory=dict)
    verdict_true: int = 0
    agreement: Agreement | None = None
    prompt_tokens: int = 0
    read_anew: int = 0
    completion_tokens: int = 0
    calls: int = 0
    reused_calls: int = 0
    searches: int = 0
    recorded_searches: int = 0
    failed_searches: int = 0
    seconds: float = 0.0
    distinct_queries: float | None = None
    fallback_rounds: int = 0
    disagreeing_rationales: int = 0
    dropped_citations: int = 0
    calibrated_true: int | None = None
    calibrated_agreement: Agreement | None = None
    responses_written: int = 0
    responses_cut: int = 0
    responses_missing: int = 0
    warnings: tuple[str, ...] = ()
