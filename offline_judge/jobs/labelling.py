"""A run brought together with what people said of its samples."""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Mapping
from dataclasses import dataclass, field
from pathlib import Path

from offline_judge import wiring
from offline_judge.datasets.readers import read_samples
from offline_judge.datasets.rows import DataFile as RowFile
from offline_judge.datasets.rows import WrongShapeError
from offline_judge.domain.judgment import Judgment
from offline_judge.domain.run import RunManifest
from offline_judge.domain.scores import LabelCounts
from offline_judge.errors import DataError
from offline_judge.jobs.resuming import load_again
from offline_judge.labels.joining import Joined, join
from offline_judge.labels.reading import LabelSet, read_labels
from offline_judge.runs.reducer import RunState
from offline_judge.runs.store import RunDirectory
from offline_judge.settings import Settings


@dataclass(frozen=True)
class LabelFile:
    """A file of labels and how to read it.

    Attributes:
        path: JSONL, CSV or TSV with columns `id` and `label`.
        mapping: Column to field, `id` or `label`; several columns may be `label`.
        form: The form of a public set, whose samples' own ids and labels are taken; "" for none.
        skip_bad: Leave out rows that cannot be read and labels of unknown samples.
    """

    path: Path
    mapping: Mapping[str, str] = field(default_factory=dict)
    form: str = ""
    skip_bad: bool = False


@dataclass(frozen=True)
class JudgedSample:
    """A sample that is labelled and scored; `question` is its question's key."""

    id: str
    question: str
    label: bool
    judgment: Judgment


@dataclass(frozen=True)
class LabelledRun:
    """A run's labelled and scored samples, and what they leave out."""

    manifest: RunManifest
    samples: tuple[JudgedSample, ...]
    counts: LabelCounts

    @property
    def questions(self) -> int:
        """Questions of the samples."""
        return len({sample.question for sample in self.samples})


def open_labelled(run_id: str, labels: LabelFile | None, settings: Settings) -> LabelledRun:
    """Bring a run together with a file of labels, or with those of its own data.

    Raises:
        RunNotFoundError: no run has this id.
        UsageError: the file's columns are mapped to fields that there are not.
        DataError: the file cannot be used, its labels are of other samples, or there are none.
        StorageError: the run's files are damaged.
    """
    directory = wiring.run_store(settings).open(run_id)
    manifest, state = directory.manifest(), directory.state()
    if labels is None:
        return _with_own_labels(manifest, state)
    given, sha256 = read_label_file(labels)
    where = str(labels.path)

    def in_data() -> Collection[str] | None:
        return _ids_of_data(manifest, directory)

    joined = join(given, state.samples.keys(), in_data, where, skip_bad=labels.skip_bad)
    counts = _counts(state, joined, str(labels.path.absolute()), sha256)
    more = {"several": given.several, "blank": len(given.blank), "bad_rows": len(given.problems)}
    return LabelledRun(manifest, _judged(state, joined.labels), counts.model_copy(update=more))


def _with_own_labels(manifest: RunManifest, state: RunState) -> LabelledRun:
    samples = state.samples.items()
    own = {name: sample.label for name, sample in samples if sample.label is not None}
    if not own:
        raise DataError(
            "No sample of this run has a label.",
            where=manifest.data.path,
            remedy="Name a file of labels: --labels FILE",
        )
    counts = _counts(state, Joined(own), manifest.data.path, manifest.data.sha256)
    return LabelledRun(manifest, _judged(state, own), counts)


def read_label_file(labels: LabelFile) -> tuple[LabelSet, str]:
    """What people said, and the hash of the file that says it.

    Raises:
        UsageError: the file's columns are mapped to fields that there are not.
        DataError: the file cannot be used, or holds no labels.
    """
    where = str(labels.path)
    if labels.form:
        loaded = read_samples(labels.path, form=labels.form, skip_bad=labels.skip_bad)
        own = {s.id: s.label for s in loaded.samples if s.label is not None}
        if not own:
            raise DataError("The file holds no labels.", where=where)
        return LabelSet(own, problems=loaded.problems), loaded.source.sha256
    file = RowFile(labels.path)
    try:
        found = read_labels(file.rows(), where, labels.mapping, skip_bad=labels.skip_bad)
    except WrongShapeError as error:
        raise DataError(
            f"The file of labels is {error.found}.",
            where=where,
            remedy=f"Write one object a line: jq -c '.[]' {labels.path.name} > labels.jsonl. Of a "
            "public set `score` and `calibrate` take the name of its form: --format NAME.",
        ) from None
    return found, file.sha256


def _ids_of_data(manifest: RunManifest, directory: RunDirectory) -> Collection[str] | None:
    """Ids of all samples of the run's data; None where the data is gone or another by now."""
    try:
        loaded = load_again(manifest, directory)
    except DataError:
        return None
    same = loaded.source.sha256 == manifest.data.sha256
    return [sample.id for sample in loaded.samples] if same else None


def _judged(state: RunState, labels: Mapping[str, bool]) -> tuple[JudgedSample, ...]:
    found = []
    for name, label in labels.items():
        finished = state.finished.get(name)
        if finished is not None and finished.judgment is not None:
            question = state.samples[name].question_key()
            found.append(JudgedSample(name, question, label, finished.judgment))
    return tuple(found)


def _counts(state: RunState, joined: Joined, source: str, sha256: str) -> LabelCounts:
    unscored: Counter[str] = Counter()
    for name in joined.labels:
        finished = state.finished.get(name)
        if finished is None:
            unscored["unfinished"] += 1
        elif finished.judgment is None:
            unscored[finished.reason or finished.outcome.value] += 1
    return LabelCounts(
        source=source,
        sha256=sha256,
        labelled=len(joined.labels),
        scored=len(joined.labels) - unscored.total(),
        unscored=dict(sorted(unscored.items())),
        unlabelled=len(state.samples) - len(joined.labels),
        ties=len(joined.ties),
        unknown=len(joined.unknown),
        not_taken_up=joined.not_taken_up,
    )
