"""A study's report as Markdown, which reads on a terminal too."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence

from offline_judge.domain.scores import Interval
from offline_judge.studies.figures import DEFAULT, FIGURES, FITTED, GOLD_GROUPS, GoldFound
from offline_judge.studies.report import StudyReport

_TITLES = {
    "macro_f1": "macro-F1",
    "auroc": "AUROC",
    "says_correct": "says correct",
    "people_correct": "people",
    "gap": "says - people",
}


def to_markdown(report: StudyReport) -> str:
    """The whole report."""
    return "\n".join(_lines(report)).rstrip() + "\n"


def show(interval: Interval) -> str:
    """`.57 [.46, .69]`; a dash where there is no value, no ends where they are undefined."""
    if interval.value is None:
        return "-"
    value = number(interval.value)
    if interval.low is None or interval.high is None:
        return value
    return f"{value} [{number(interval.low)}, {number(interval.high)}]"


def number(value: float) -> str:
    """Two digits, without a zero in front: `.57`, `-.04`, `1.00`."""
    text = f"{value:.2f}"
    text = "0.00" if text == "-0.00" else text
    return text.replace("0.", ".", 1) if text.lstrip("-").startswith("0.") else text


def _lines(report: StudyReport) -> Iterator[str]:
    about = report.about
    yield f"# Study `sage` on {about.data or 'scores'}"
    yield ""
    yield from _head(report)
    yield from _agreement(report)
    yield from _differences(report)
    yield from _gold(report)
    yield from _costs(report)
    undefined = _undefined(report)
    if undefined:
        yield "Undefined:"
        yield from (f"- {line}" for line in undefined)


def _head(report: StudyReport) -> Iterator[str]:
    about = report.about
    yield (
        f"{report.samples} samples of {report.questions} questions that every condition judged"
        + (f"; {report.left_out} more under some conditions only" if report.left_out else "")
        + ". Intervals: 95 %, questions resampled."
    )
    if about.judge:
        searched = f", searching {about.search}" if about.search else ""
        yield f"Judge: {about.judge}{searched}. Ended: {about.status}."
    for note in about.notes:
        yield f"Note: {note}"
    yield ""


def _agreement(report: StudyReport) -> Iterator[str]:
    for reading in (DEFAULT, FITTED):
        rows = [one for one in report.figures if one.reading == reading]
        if not rows:
            continue
        title = "At the default threshold of .5"
        columns = ["condition", "n", "unscored"]
        if reading == FITTED:
            title = (
                f"At a threshold fitted for kappa on {report.threshold_rows} samples of "
                f"{report.threshold_source}"
            )
            columns.append("threshold")
        yield f"## {title}"
        yield ""
        titles = [_TITLES.get(name, name) for name in FIGURES]
        cells = []
        for one in rows:
            own = [one.condition, str(one.n), str(one.unscored)]
            if one.threshold is not None:
                own.append(number(one.threshold))
            cells.append([*own, *(show(one.figures[name]) for name in FIGURES)])
        yield from table([*columns, *titles], cells)
        yield ""


def _differences(report: StudyReport) -> Iterator[str]:
    if not report.differences:
        return
    yield "## Differences of kappa, paired"
    yield ""
    pairs = dict.fromkeys((one.first, one.second) for one in report.differences)
    readings = dict.fromkeys(one.reading for one in report.differences)
    found = {(one.first, one.second, one.reading): one.interval for one in report.differences}
    columns = ["difference", *(f"at the {reading} threshold" for reading in readings), "n"]
    cells = []
    for first, second in pairs:
        intervals = [found.get((first, second, reading)) for reading in readings]
        shown = ["-" if interval is None else show(interval) for interval in intervals]
        count = next(one.n for one in intervals if one is not None) // 2
        cells.append([f"{first} - {second}", *shown, str(count)])
    yield from table(columns, cells)
    yield ""


def _gold(report: StudyReport) -> Iterator[str]:
    if not report.gold:
        return
    yield "## Samples whose passage with the answer is in the corpus"
    yield ""
    columns = ["condition", "n", "kappa", "says - people", "found first", "later", "never"]
    cells = [
        [
            one.condition,
            str(one.n),
            show(one.kappa),
            show(one.gap),
            *(_of(part, one.first + one.later + one.never) for part in _parts(one)),
        ]
        for one in report.found
    ]
    yield from table(columns, cells)
    yield ""
    yield "## When the passage with the answer was found"
    yield ""
    main = report.gold[0].by
    others = list(report.gold[0].differences)
    known = report.gold[0].n
    columns = ["samples whose", "n", "questions", f"kappa {main}"]
    columns += [f"kappa {other}" for other in others] + [f"{main} - {other}" for other in others]
    cells = [
        [
            f"{GOLD_GROUPS[one.group]} ({_share(one.n, known)})",
            str(one.n),
            str(one.questions),
            show(one.kappas[main]),
            *(show(one.kappas[other]) for other in others),
            *(show(one.differences[other]) for other in others),
        ]
        for one in report.gold
    ]
    yield from table(columns, cells)
    yield ""


def _parts(one: GoldFound) -> tuple[int, int, int]:
    return one.first, one.later, one.never


def _of(part: int, whole: int) -> str:
    return f"{part} ({_share(part, whole)})" if whole else "-"


def _costs(report: StudyReport) -> Iterator[str]:
    if not report.costs:
        return
    yield "## Where the time goes"
    yield ""
    yield "What a sample costs where a condition is judged alone: means."
    yield ""
    columns = ["condition", "n", "seconds", "tokens sent", "read anew", "written"]
    cells = [
        [
            cost.condition + (" *" if cost.unpriced else ""),
            str(cost.n),
            _seconds(cost.seconds),
            f"{cost.prompt_tokens:,.0f}",
            f"{cost.read_anew:,.0f}",
            f"{cost.written:,.0f}",
        ]
        for cost in report.costs
    ]
    yield from table(columns, cells)
    yield ""
    if any(cost.unpriced for cost in report.costs):
        yield (
            "\\* too low: some answers came from the completion cache and were paid for by a run "
            "that is no part of this study."
        )
        yield ""
    yield from _roles(report)
    if report.shared is not None:
        doubt = (
            f" ({report.shared.unpriced} answers of the dearest came from earlier runs, so this "
            "says nothing)"
            if report.shared.unpriced
            else ""
        )
        yield (
            f"N = 1, 2, 3 together cost {report.shared.ratio:.2f} times N = 3 alone, in tokens "
            f"read anew and written{doubt}."
        )
        yield ""
    if report.cheapest is not None:
        best = report.cheapest
        yield (
            f"Best kappa at the default threshold: {best.best}. Cheapest condition whose paired "
            f"interval against it includes 0: {best.cheapest} (difference {show(best.interval)}). "
            f"All such, cheapest first: {', '.join(best.within)}."
        )
        yield ""


def _roles(report: StudyReport) -> Iterator[str]:
    cells = [
        [
            cost.condition,
            role.role,
            f"{(role.calls + role.reused) / cost.role_samples:.1f}",
            f"{role.seconds / cost.role_samples:.2f}",
            f"{role.prompt_tokens / cost.role_samples:,.0f}",
            f"{role.read_anew / cost.role_samples:,.0f}",
            f"{role.written / cost.role_samples:,.0f}",
        ]
        for cost in report.costs
        if cost.role_samples
        for role in cost.roles
    ]
    if cells:
        yield "By role, a sample:"
        yield ""
        names = ["condition", "role", "calls", "engine s", "tokens sent", "read anew", "written"]
        yield from table(names, cells)
        yield ""


def _undefined(report: StudyReport) -> list[str]:
    """Reasons, each with what it leaves without value or ends."""
    found: dict[str, dict[str, list[str]]] = {}
    for one in report.figures:
        for name, interval in one.figures.items():
            if interval.reason:
                figures = found.setdefault(interval.reason, {}).setdefault(one.condition, [])
                figures.append(_TITLES.get(name, name))
    for pair in report.differences:
        if pair.interval.reason:
            found.setdefault(pair.interval.reason, {})[f"{pair.first} - {pair.second}"] = []
    return [
        f"{reason}: {'; '.join(_named(where, names) for where, names in places.items())}"
        for reason, places in found.items()
    ]


def _named(where: str, figures: Sequence[str]) -> str:
    names = dict.fromkeys(figures)
    if not names:
        return where
    return f"{where} ({'all' if len(names) == len(FIGURES) else ', '.join(names)})"


def table(columns: Sequence[str], cells: Iterable[Sequence[str]]) -> Iterator[str]:
    """A Markdown table whose columns are aligned in plain text too."""
    rows = [list(columns), *map(list, cells)]
    widths = [max(3, *(len(row[i]) for row in rows)) for i in range(len(columns))]
    for position, row in enumerate(rows):
        yield "| " + " | ".join(c.ljust(w) for c, w in zip(row, widths, strict=True)) + " |"
        if position == 0:
            yield "| " + " | ".join("-" * w for w in widths) + " |"


def _seconds(interval: Interval) -> str:
    if interval.value is None:
        return "-"
    if interval.low is None or interval.high is None:
        return f"{interval.value:.1f}"
    return f"{interval.value:.1f} [{interval.low:.1f}, {interval.high:.1f}]"


def _share(part: int, whole: int) -> str:
    return number(part / whole) if whole else "-"
