"""One study from its data file to its report, and from the scores of an earlier one."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from pydantic import ValidationError

from offline_judge import wiring
from offline_judge.datasets.readers import Loaded, read_samples
from offline_judge.domain.sample import Sample
from offline_judge.errors import DataError, UsageError
from offline_judge.jobs.labelling import LabelFile, read_label_file
from offline_judge.jobs.orders import Limits
from offline_judge.labels.joining import join
from offline_judge.outfiles import make_output_folder
from offline_judge.protocols import RunListener
from offline_judge.settings import VERSION, Settings
from offline_judge.studies.collecting import collect
from offline_judge.studies.conditions import Condition
from offline_judge.studies.conduct import Work, conduct
from offline_judge.studies.costs import CostRow, read_costs
from offline_judge.studies.gold import read_gold
from offline_judge.studies.report import About, Material, StudyReport, make_report
from offline_judge.studies.scores import Score, read_scores
from offline_judge.studies.thresholds import fit, parse_source, scores_file

COSTS, REPORT = "costs.csv", "study.json"


@dataclass(frozen=True)
class Question:
    """What is asked of a study.

    Attributes:
        data: Data file.
        conditions: What is compared.
        mapping: Field to column.
        skip_bad: Leave rows out that cannot be read.
        form: Form of a public set; "" for the program's own columns.
        responses: File of responses to join; None where the data file has them.
        labels: File of labels in place of the data file's; None takes those.
        gold: File of the passages that hold the answers.
        threshold_from: Scores of another study to fit thresholds on, `PATH[:N]`; "" for none.
        limits: Samples and minutes.
        out: Folder for the answer, made before anything is judged; None makes none.
    """

    data: Path
    conditions: tuple[Condition, ...]
    mapping: Mapping[str, str] = field(default_factory=dict)
    skip_bad: bool = False
    form: str = ""
    responses: Path | None = None
    labels: Path | None = None
    gold: Path | None = None
    threshold_from: str = ""
    limits: Limits = field(default_factory=Limits)
    out: Path | None = None


@dataclass(frozen=True)
class Answer:
    """A report, and the rows it was made from."""

    report: StudyReport
    scores: Sequence[Score]
    costs: Sequence[CostRow]


def study(asked: Question, settings: Settings, listener: RunListener | None) -> Answer:
    """Judge what is not judged yet, and report on all that is.

    Raises:
        DataError: no sample has a label, or a file cannot be read.
        StorageError: the folder for the answer cannot be made or takes no files.
        OfflineJudgeError: as a run.
    """
    # All that can be wrong with the arguments is told before hours of judging.
    threshold = parse_source(asked.threshold_from) if asked.threshold_from else None
    gold = read_gold(asked.gold) if asked.gold else None
    loaded = read_samples(
        asked.data,
        mapping=asked.mapping,
        skip_bad=asked.skip_bad,
        form=asked.form,
        responses=asked.responses,
    )
    samples, notes = labelled(loaded, asked.labels, skip_bad=asked.skip_bad)
    conditions, skipped = possible(asked.conditions, samples)
    if asked.out is not None:
        make_output_folder(asked.out)
    work = Work(samples, loaded.source, conditions, asked.limits)
    conducted = conduct(work, settings, listener)
    collected = collect(conducted.runs, samples, settings, gold)
    fitted = fit(*threshold, conducted.runs) if threshold else None
    about = _about(conducted.runs, settings, (*notes, *skipped)).model_copy(
        update={"data": asked.data.name, "status": conducted.status}
    )
    report = make_report(Material(collected.scores, collected.costs, fitted), about)
    return Answer(report, collected.scores, collected.costs)


def report_again(path: Path, threshold_from: str = "") -> Answer:
    """The report on the scores of an earlier study, without its runs.

    Args:
        path: The folder it was written to, or its scores file.
        threshold_from: As `Question.threshold_from`.

    Raises:
        UsageError: there are no scores.
        DataError: they cannot be read.
    """
    source = scores_file(path)
    scores, costs = read_scores(source), read_costs(source.with_name(COSTS))
    conditions = dict.fromkeys(score.condition for score in scores)
    fitted = fit(*parse_source(threshold_from), conditions) if threshold_from else None
    report = make_report(Material(scores, costs, fitted), _about_again(source))
    return Answer(report, scores, costs)


def labelled(
    loaded: Loaded, labels: Path | None, *, skip_bad: bool
) -> tuple[tuple[Sample, ...], tuple[str, ...]]:
    """The samples that have a label, and what to say of the others.

    Raises:
        DataError: none has, or the file of labels cannot be used.
    """
    samples, notes = loaded.samples, [*loaded.notes]
    if labels is not None:
        samples, more = _relabelled(samples, labels, skip_bad=skip_bad)
        notes += more
    kept = tuple(sample for sample in samples if sample.label is not None)
    if not kept:
        raise DataError(
            "No sample has a label, and a study compares with what people said.",
            where=loaded.source.path,
            remedy="Add a column `label`, or give --labels FILE.",
        )
    if len(kept) < len(loaded.samples):
        notes.append(f"{len(loaded.samples) - len(kept)} samples without a label are left out.")
    if loaded.problems:
        notes.append(f"{len(loaded.problems)} bad rows of the data file are left out.")
    return kept, tuple(notes)


def _relabelled(
    samples: Sequence[Sample], path: Path, *, skip_bad: bool
) -> tuple[tuple[Sample, ...], list[str]]:
    given, _ = read_label_file(LabelFile(path, skip_bad=skip_bad))
    names = {sample.id for sample in samples}
    found = join(given, names, lambda: names, str(path), skip_bad=skip_bad)
    notes = [
        f"{len(left)} {what}"
        for left, what in (
            (found.unknown, "labels are of samples that the data file has not."),
            (found.ties, "samples have no label, since their annotators are of two minds."),
            (given.problems, "bad rows of the labels are left out."),
        )
        if left
    ]
    changed = (
        sample.model_copy(update={"label": found.labels.get(sample.id)}) for sample in samples
    )
    return tuple(changed), notes


def possible(
    conditions: Sequence[Condition], samples: Sequence[Sample]
) -> tuple[tuple[Condition, ...], tuple[str, ...]]:
    """Conditions that these samples allow, and what to say of those that are skipped.

    Raises:
        UsageError: none is left.
    """
    with_key = sum(bool(sample.reference) for sample in samples)
    kept = tuple(one for one in conditions if with_key or not one.shown_key)
    notes = [
        f"{one.name} is skipped: no row has a reference answer."
        for one in conditions
        if one not in kept
    ]
    if not kept:
        raise UsageError("No condition is left to judge under.", remedy=" ".join(notes))
    if with_key < len(samples) and any(one.shown_key for one in kept):
        notes.append(f"{len(samples) - with_key} samples have no reference answer.")
    return kept, tuple(notes)


def _about(runs: Mapping[str, str], settings: Settings, notes: Iterable[str]) -> About:
    store = wiring.run_store(settings)
    manifests = {name: store.open(run_id).manifest() for name, run_id in runs.items()}
    # A condition that compares strings has no judge.
    ordered = sorted(manifests.values(), key=lambda manifest: not manifest.judge.sha256)
    first = ordered[0]
    searches = (manifest.search.get("name") for manifest in manifests.values() if manifest.search)
    return About(
        data_sha256=first.data.sha256,
        judge=first.judge.name,
        judge_sha256=first.judge.sha256,
        search=str(next(searches, "")),
        runs=dict(runs),
        options={name: manifest.options for name, manifest in manifests.items()},
        version=VERSION,
        notes=tuple(notes),
    )


def _about_again(scores: Path) -> About:
    """What the report beside the scores says it is about; only their name where there is none."""
    beside = scores.with_name(REPORT)
    try:
        return About.model_validate(json.loads(beside.read_text("utf-8"))["about"])
    except (OSError, ValueError, KeyError, TypeError, ValidationError):
        return About(data=scores.name)
