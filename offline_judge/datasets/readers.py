"""Data files in, samples out: the program's own columns, or the form of a public set."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Protocol

from offline_judge.datasets.forms.base import Draft, Form, LeftOutError, first_row
from offline_judge.datasets.forms.plain import Plain
from offline_judge.datasets.forms.signs import hint
from offline_judge.datasets.joining import Joined, Responses, join, named, read_responses
from offline_judge.datasets.rows import NOT_UTF8, DataFile, Row, WrongShapeError, utf8_remedy
from offline_judge.domain.run import DataSource
from offline_judge.domain.sample import Sample, derived_id
from offline_judge.errors import DataError, UsageError
from offline_judge.registry import FORMS

SHOWN_PROBLEMS = 5

_WITHOUT = "Join responses with --responses FILE, or have them written: --candidate NAME."


@dataclass(frozen=True)
class Loaded:
    """A data file's samples in its order, where they come from, and what was left out.

    Attributes:
        samples: In the file's order; a response is "" where one is to be written.
        source: Where they come from.
        problems: Rows that cannot be used, each with its reason.
        notes: What else was left out and why, one sentence each.
    """

    samples: tuple[Sample, ...]
    source: DataSource
    problems: tuple[str, ...] = ()
    notes: tuple[str, ...] = ()


def read_samples(
    path: Path,
    *,
    mapping: Mapping[str, str] | None = None,
    skip_bad: bool = False,
    form: str = "",
    responses: Path | None = None,
    unanswered: bool = False,
) -> Loaded:
    """Read all samples of a file, once, row by row.

    Without a form, fields are `question` and `response`, which may not be empty, and `id`,
    `reference`, `label` (see `offline_judge.datasets.fields`); all other columns become metadata.
    In CSV and TSV the first row names the columns, and accepted answers in `reference` are parted
    by `|`.

    A row without an id gets one from its content; where that is taken, `-2`, `-3` and so on is
    added. An id that a row brings itself may not have been used before.

    Args:
        path: Suffix .jsonl, .ndjson, .json (one object a line, or what the form demands), .csv or
            .tsv, with .gz behind it where it is packed.
        mapping: Field to column, where they are named differently.
        skip_bad: Leave bad rows out and report them instead of refusing the file; with
            `responses`, those to unknown questions too.
        form: The form of a public set, a name of the registry.
        responses: A file of responses, joined by id. Questions without one are left out.
        unanswered: Rows need no response, because those missing will be written.

    Returns:
        `source.rows` counts all rows that are not blank, the skipped ones included.

    Raises:
        UsageError: the mapping names an unknown field, or there is no such form.
        DataError: the file cannot be read, is of another form, lacks a column, holds no usable
            row or no response, or holds bad rows: the first five are named, and all are counted.
    """
    mapping = dict(mapping or {})
    if form and mapping:
        raise UsageError(
            f"The columns of --format {form} are known.", remedy="Leave --map out, or --format."
        )
    bare = unanswered or responses is not None
    known: Form | None = FORMS.load(form)() if form else None
    collector = _Collector(DataFile(path), known, wanted=not bare)
    collector.read(known or Plain(mapping, unanswered=bare))
    given = read_responses(responses) if responses is not None else None
    if given is not None:
        collector.problems += [f"responses, {problem}" for problem in given.problems]
    if collector.problems and not skip_bad:
        raise _bad_rows(path, collector.problems, collector.rows)
    loaded = collector.loaded(form, mapping)
    if given is not None:
        return _joined(loaded, given, skip_bad=skip_bad)
    if unanswered:
        _check_some_missing(loaded)
    return loaded


class _Reader(Protocol):
    def rows(self, file: DataFile) -> Iterator[Row]: ...

    def drafts(self, row: Row) -> Iterable[Draft | LeftOutError]: ...


@dataclass
class _Collector:
    """Turns rows into samples and keeps what is wrong with the others."""

    file: DataFile
    form: Form | None
    wanted: bool
    rows: int = 0
    samples: list[Sample] = field(default_factory=list)
    problems: list[str] = field(default_factory=list)
    left_out: dict[str, int] = field(default_factory=dict)
    _places: dict[str, str] = field(default_factory=dict)

    def read(self, reader: _Reader) -> None:
        """Take all rows in.

        Raises:
            DataError: the file is not of the form, or the form has no responses.
        """
        try:
            for row in reader.rows(self.file):
                self.rows += 1
                self._take(row, reader)
        except WrongShapeError as error:
            raise self._wrong(error) from error

    def loaded(self, form: str, mapping: dict[str, str]) -> Loaded:
        """All that was taken in.

        Raises:
            DataError: there is no sample.
        """
        path = self.file.path
        notes = tuple(f"{count} {why} are left out." for why, count in self.left_out.items())
        if not self.rows:
            raise DataError("The data file holds no rows", where=str(path))
        if not self.samples:
            why = [*self.problems, *notes]
            raise DataError(f"None of {self.rows} rows can be used: {why[0]}", where=str(path))
        source = DataSource(
            path=str(path.absolute()),
            sha256=self.file.sha256,
            format=form or self.file.format,
            rows=self.rows,
            skipped=len(self.problems),
            mapping=mapping,
            left_out=self.left_out,
        )
        return Loaded(tuple(self.samples), source, tuple(self.problems), notes)

    def _take(self, row: Row, reader: _Reader) -> None:
        try:
            if row.problem:
                raise ValueError(row.problem)
            # All of them first: of a row that is skipped no part is kept.
            for draft in tuple(reader.drafts(row)):
                if isinstance(draft, LeftOutError):
                    self.left_out[str(draft)] = self.left_out.get(str(draft), 0) + 1
                else:
                    self._add(draft, row.place)
        except ValueError as error:
            self.problems.append(f"{row.place}: {error}")

    def _add(self, draft: Draft, place: str) -> None:
        if draft.response is None and self.wanted and self.form is not None:
            raise DataError(
                f"{self.form.title} has questions and no responses to judge",
                where=str(self.file.path),
                remedy=_WITHOUT,
            )
        sample = Sample(
            id=self._id(draft),
            question=draft.question,
            response=draft.response or "",
            reference=draft.reference,
            label=draft.label,
            metadata=draft.metadata,
        )
        self._places[sample.id] = place
        self.samples.append(sample)

    def _id(self, draft: Draft) -> str:
        if draft.id is not None:
            if draft.id in self._places:
                raise ValueError(f"`id` {draft.id!r} was used in {self._places[draft.id]}")
            return draft.id
        base = unique = draft.stem or derived_id(draft.question, draft.response or "")
        number = 1
        while unique in self._places:
            number += 1
            unique = f"{base}-{number}"
        return unique

    def _wrong(self, error: WrongShapeError) -> DataError:
        if self.form is None:
            return DataError(f"The file is {error.found}", where=str(self.file.path))
        return DataError(
            f"This is no {self.form.title} file. Expected: {self.form.expects}. "
            f"Found: {error.found}",
            where=str(self.file.path),
            remedy=hint(error.columns) or hint(first_row(self.file.path)),
        )


def _check_some_missing(loaded: Loaded) -> None:
    if all(sample.response for sample in loaded.samples):
        raise DataError(
            "Every row has a response already, so there is none to write",
            where=loaded.source.path,
            remedy="Leave --candidate out.",
        )


def _joined(loaded: Loaded, responses: Responses, *, skip_bad: bool) -> Loaded:
    """Join, and refuse what cannot be meant.

    Raises:
        DataError: the data has responses of its own, none fits, or some fit no question.
    """
    samples, where = loaded.samples, str(responses.path)
    own = [sample.id for sample in samples if sample.response]
    if own:
        raise DataError(
            f"{len(own)} of {len(samples)} rows of the data have responses of their own",
            where=where,
            remedy="Leave --responses out, or the column `response`.",
        )
    found = join(samples, responses)
    if not found.samples:
        raise DataError(
            f"No response fits a question: the data has {responses.by}s such as "
            f"{named(_keys(samples, responses.by))}, the responses "
            f"{named(list(responses.found)) or 'none'}",
            where=where,
        )
    wrong = [*found.problems]
    if found.unknown:
        wrong.append(
            f"{len(found.unknown)} of {len(responses.found)} {responses.by}s are not in the "
            f"data: {named(found.unknown)}"
        )
    if wrong and not skip_bad:
        raise DataError(
            f"{'; '.join(wrong[:SHOWN_PROBLEMS])}.",
            where=where,
            remedy="Mend them, or leave them out with --skip-bad.",
        )
    source = responses.source.model_copy(update={"unknown": len(found.unknown)})
    return replace(
        loaded,
        samples=found.samples,
        source=loaded.source.model_copy(update={"responses": source}),
        notes=(*loaded.notes, *_join_notes(found)),
    )


def _keys(samples: tuple[Sample, ...], by: str) -> list[str]:
    return [sample.id if by == "id" else sample.question for sample in samples]


def _join_notes(found: Joined) -> tuple[str, ...]:
    notes = []
    if found.unanswered:
        notes.append(
            f"{len(found.unanswered)} questions without a response are left out: "
            f"{named(found.unanswered)}."
        )
    if found.unknown:
        notes.append(
            f"{len(found.unknown)} responses to unknown questions are left out: "
            f"{named(found.unknown)}."
        )
    notes += [f"Left out: {problem}." for problem in found.problems[:SHOWN_PROBLEMS]]
    return tuple(notes)


def _bad_rows(path: Path, problems: list[str], rows: int) -> DataError:
    shown = "; ".join(problem.rstrip(".") for problem in problems[:SHOWN_PROBLEMS])
    more = f"; and {len(problems) - SHOWN_PROBLEMS} more" if len(problems) > SHOWN_PROBLEMS else ""
    foreign = any(problem.endswith(NOT_UTF8) for problem in problems)
    return DataError(
        f"{len(problems)} of {rows} rows cannot be used: {shown}{more}.",
        where=str(path),
        remedy=utf8_remedy(path) if foreign else "Mend them, or leave them out with --skip-bad.",
    )
