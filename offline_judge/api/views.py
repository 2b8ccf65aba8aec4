"""What the API takes and gives: requests, and views of runs, samples and models."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from offline_judge.domain.events import AnyEvent
    from offline_judge.domain.run import Agreement, Parent, RunManifest, RunSummary
    from offline_judge.domain.sample import Sample
    from offline_judge.metrics.gates import Shortfall
    from offline_judge.runs.reducer import SampleRow
    from offline_judge.weights.cards import ModelCard
    from offline_judge.weights.fit import Fit


@dataclass(frozen=True)
class RunRequest:
    """What to judge and how.

    Attributes:
        method: Name in the method registry.
        data: JSONL or CSV file of samples.
        mapping: Column to field, where the file names its columns otherwise.
        skip_bad: Leave rows out that cannot be read, instead of refusing the file.
        limit: Samples at most; they are taken in a fixed random order.
        minutes: No sample is taken after this time; also in a fixed random order.
        options: The method's own options.
        format: The form of a public set that the file has, such as `triviaqa`.
        responses: A file with the responses to the questions of `data`, joined by id.
        candidate: Name of the model that writes the responses that are missing.
        calibration: A calibration file, by which every judgment is read a second way.
        fail_under: Figures the run must reach, such as `kappa=0.6`; needs labels in the data, but
            for `scored`, the share of samples with a verdict.
        run_id: The id that the new run shall have, one that `start` has made; "" makes one.
    """

    method: str
    data: Path
    mapping: Mapping[str, str] = field(default_factory=dict)
    skip_bad: bool = False
    limit: int | None = None
    minutes: float | None = None
    options: Mapping[str, Any] = field(default_factory=dict)
    format: str | None = None
    responses: Path | None = None
    candidate: str | None = None
    calibration: Path | None = None
    fail_under: Sequence[str] = ()
    run_id: str = ""


@dataclass(frozen=True)
class AskOptions:
    """How one response is judged.

    Attributes:
        options: The method's own options.
        calibration: A calibration file, by which the judgment is read a second way.
    """

    options: Mapping[str, Any] = field(default_factory=dict)
    calibration: Path | None = None


@dataclass(frozen=True)
class OwnPassage:
    """A passage that a person adds to a sample's evidence. `date` is ISO 8601, whole or in part."""

    text: str
    title: str = ""
    url: str = ""
    date: str = ""


@dataclass(frozen=True)
class RunView:
    """A run as it stands: its manifest, its summary and one row a sample taken up.

    `before` is how the sample of a derived run was judged in its parent; `shortfalls` are the
    figures asked for that were not reached.
    """

    manifest: RunManifest
    summary: RunSummary
    rows: tuple[SampleRow, ...]
    before: SampleRow | None = None
    shortfalls: tuple[Shortfall, ...] = ()


@dataclass(frozen=True)
class SampleView:
    """One sample of a run: its row, itself, and how it was judged, large texts included.

    In a derived run `parent` says of what, and `before` how the sample was judged there.
    """

    row: SampleRow
    sample: Sample
    events: tuple[AnyEvent, ...]
    parent: Parent | None = field(default=None, kw_only=True)
    before: SampleRow | None = field(default=None, kw_only=True)


@dataclass(frozen=True)
class AskView(SampleView):
    """The answer to `ask`: the one sample, and the run it was judged in."""

    run: RunView


@dataclass(frozen=True)
class RunListing:
    """One run in the list of runs.

    Attributes:
        manifest: What shapes its judgments.
        status: Where it stands.
        planned: Samples it set out to judge.
        outcomes: Outcome to number of samples.
        agreement: Against labels, where there are any.
        counted: Whether its samples were counted; false only where that was not waited for.
    """

    manifest: RunManifest
    status: str
    planned: int
    outcomes: Mapping[str, int]
    agreement: Agreement | None
    counted: bool = True

    @property
    def id(self) -> str:
        """The run's id."""
        return self.manifest.run_id

    @property
    def started(self) -> str:
        """UTC, ISO 8601."""
        return self.manifest.created

    @property
    def method(self) -> str:
        """Name of the method."""
        return self.manifest.method

    @property
    def judge(self) -> str:
        """Name of the judge's model card."""
        return self.manifest.judge.name

    @property
    def parent(self) -> Parent | None:
        """Whose sample it judges again, where it is a derived run."""
        return self.manifest.parent

    @property
    def finished(self) -> int:
        """Samples with an outcome that is not `cancelled`."""
        return sum(n for name, n in self.outcomes.items() if name != "cancelled")

    @property
    def unscored(self) -> int:
        """Finished samples without a verdict, errors included."""
        return self.finished - self.outcomes.get("scored", 0)


@dataclass(frozen=True)
class ModelView:
    """A model card, and what is known of its weights on this machine.

    Attributes:
        card: The card, with its files where they are known.
        state: Whether they are here: `present`, `partial` or `absent`.
        path: What an engine opens, where it is here.
        fit: What an engine with one slot needs of the memory that is free.
        terms: What is to be accepted before its weights are fetched; empty where nothing is.
        added: The card was made by `models_add`.
        remedy: How weights that are not here come to be.
    """

    card: ModelCard
    state: str
    path: Path | None
    fit: Fit | None = None
    terms: str = ""
    added: bool = False
    remedy: str = ""


@dataclass(frozen=True)
class AddedModel:
    """A model that was added, and what could not be told of it and was assumed."""

    model: ModelView
    notes: tuple[str, ...]


@dataclass(frozen=True)
class RemovedModel:
    """What `models_rm` takes away.

    Attributes:
        name: Name of the card.
        files: Files that go.
        size: Bytes that go, of these and of interrupted downloads.
        kept: Files that stay, because they were only referred to.
        card: The card goes too.
    """

    name: str
    files: tuple[Path, ...]
    size: int
    kept: tuple[Path, ...]
    card: bool
