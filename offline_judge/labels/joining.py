"""Labels brought together with the samples of a run, by id."""

from __future__ import annotations

from collections.abc import Callable, Collection
from dataclasses import dataclass

from offline_judge.errors import DataError
from offline_judge.labels.reading import LabelSet

_SHOWN = 5
_UNTOLD = (
    "The run's data file is gone or has changed, so it cannot be told which of them are of "
    "samples that the run has not come to."
)
_PUT_BACK = "Put the data file back as it was; `offline-judge runs show RUN` names it."


@dataclass(frozen=True)
class Joined:
    """Labels of samples that the run has taken up.

    Attributes:
        labels: Sample id to label.
        not_taken_up: Labels of samples that are in the run's data, which it has not come to.
        unknown: Ids of labels that are left out because the run's data has no such sample, or
            cannot be asked any more.
        ties: Samples of the run whose annotators are of two minds.
    """

    labels: dict[str, bool]
    not_taken_up: int = 0
    unknown: tuple[str, ...] = ()
    ties: tuple[str, ...] = ()


def join(
    given: LabelSet,
    taken_up: Collection[str],
    in_data: Callable[[], Collection[str] | None],
    where: str,
    *,
    skip_bad: bool = False,
) -> Joined:
    """Keep the labels of the run's samples; a label without a sample is an error.

    Args:
        given: What people said.
        taken_up: Ids of the samples that the run has taken up.
        in_data: Ids of all samples of the run's data, None where they are not known any more;
            asked only where a label has no sample taken up, since a run under a limit leaves
            samples out.
        where: The file of labels, for messages.
        skip_bad: Leave labels without a sample out.

    Raises:
        DataError: no label belongs to the run, or some belong to no sample of it.
    """
    known = set(taken_up)
    ids = [*given.labels, *given.ties]
    strangers = [name for name in ids if name not in known]
    data = in_data() if strangers else ()
    coming = set(data or ())
    unknown = tuple(name for name in strangers if name not in coming)
    if len(strangers) == len(ids):
        raise _nothing_shared(ids, unknown, known, where, told=data is not None)
    if unknown and not skip_bad:
        raise _some_unknown(ids, unknown, known, where, told=data is not None)
    return Joined(
        labels={name: label for name, label in given.labels.items() if name in known},
        not_taken_up=len(strangers) - len(unknown),
        unknown=unknown,
        ties=tuple(name for name in given.ties if name in known),
    )


def _some_unknown(
    ids: list[str], unknown: tuple[str, ...], known: set[str], where: str, *, told: bool
) -> DataError:
    some = f"{len(unknown)} of {len(ids)} labels are of no sample"
    bare = f"{len(known - set(ids))} of its {len(known)} samples have no label."
    if not told:
        return DataError(
            f"{some} that this run has taken up: {_named(unknown)}. {_UNTOLD} {bare}",
            where=where,
            remedy=f"{_PUT_BACK} Or leave those labels out with --skip-bad.",
        )
    return DataError(
        f"{some} of this run: {_named(unknown)}. {bare}",
        where=where,
        remedy="Mend the ids, or leave those labels out with --skip-bad.",
    )


def _nothing_shared(
    ids: list[str], unknown: tuple[str, ...], known: set[str], where: str, *, told: bool
) -> DataError:
    if not known:
        return DataError("The run has not taken up any sample.", where=where)
    if not unknown:
        return DataError(
            f"All {len(ids)} labels are of samples that the run has not come to yet.",
            where=where,
            remedy="Let it go on with `offline-judge resume RUN --limit NUMBER`.",
        )
    return DataError(
        f"None of {len(ids)} labels belongs to one of the run's {len(known)} samples: labels are "
        f"of {_named(ids)}; samples are {_named(list(known))}.{'' if told else f' {_UNTOLD}'}",
        where=where,
        remedy="Labels are joined by the sample's id: name its column with --map COLUMN=id."
        + ("" if told else f" {_PUT_BACK}"),
    )


def _named(names: list[str] | tuple[str, ...]) -> str:
    more = ", ..." if len(names) > _SHOWN else ""
    return ", ".join(f"`{name}`" for name in sorted(names)[:_SHOWN]) + more
