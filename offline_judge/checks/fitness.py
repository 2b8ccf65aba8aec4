"""Figures of a judge out of known judgments, what speaks against it, and one line of advice."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence
from statistics import fmean

from scipy.stats import binomtest

from offline_judge.domain.fitness import Fitness, Judged, Share
from offline_judge.domain.scores import Interval
from offline_judge.metrics.agreement import Row, kappa
from offline_judge.metrics.bootstrap import Undefined, bootstrap

# Where a judge is called unfit. All of them are our choice: a judge that misses one of them on
# such easy items will do worse on real ones.
MOST_INVALID = 0.10
LEAST_AGREEMENT = 0.70
SAME_ANSWER = 0.90
MOST_ORDER_FLIPS = 0.25
MOST_LENGTH_SHIFT = 0.15
LEAST_STABLE = 0.75


def fitness(judge: str, judged: Sequence[Judged], seconds: float = 0.0) -> Fitness:
    """The figures of a judge.

    Args:
        judge: Its name.
        judged: Every answer, in any order.
        seconds: Wall time.
    """
    plain = [one for one in judged if one.way == "plain"]
    given = [one for one in plain if one.said is not None]
    rows = [Row(one.correct, bool(one.said)) for one in given]
    value = kappa(rows) if rows else None
    flips, shift = _order(plain, [one for one in judged if one.way == "reversed"])
    length_flips, length_shift = _length(plain)
    compared = [one for one in judged if one.prepared is not None and one.counted]
    found = Fitness(
        judge=judge,
        agreement=share(sum(one.said == one.correct for one in given), len(given)),
        kappa=None if isinstance(value, Undefined) else value,
        invalid=share(len(plain) - len(given), len(plain)) or Share(share=0, low=0, high=1, n=0),
        says_correct=share(sum(bool(one.said) for one in given), len(given)),
        order_flips=flips,
        order_shift=shift,
        length_flips=length_flips,
        length_shift=length_shift,
        stable=_stable([one for one in judged if one.way == "repeat"]),
        token_differences=sum(one.counted != one.prepared for one in compared),
        token_calls=len(compared),
        seconds=round(seconds, 1),
        judged=tuple(judged),
    )
    alarms = alarms_of(found)
    return found.model_copy(update={"alarms": alarms, "advice": _advice(found, alarms)})


def share(hits: int, n: int) -> Share | None:
    """A share with its interval after Wilson; None of nothing."""
    if not n:
        return None
    ends = binomtest(hits, n).proportion_ci(confidence_level=0.95, method="wilson")
    return Share(share=hits / n, low=float(ends.low), high=float(ends.high), n=n)


def alarms_of(found: Fitness) -> tuple[str, ...]:
    """What speaks against a judge, a sentence each."""
    alarms = []
    if found.invalid.share > MOST_INVALID:
        alarms.append(f"{found.invalid.share:.0%} of its answers are none")
    if found.agreement is None or found.agreement.share < LEAST_AGREEMENT:
        right = "none" if found.agreement is None else f"only {found.agreement.share:.0%}"
        alarms.append(f"{right} of its answers are right, where all can be told from the passage")
    if (says := found.says_correct) and max(says.share, 1 - says.share) >= SAME_ANSWER:
        word = "correct" if says.share > 0.5 else "incorrect"
        alarms.append(f"it calls nearly everything {word}")
    if (flips := found.order_flips) and flips.share > MOST_ORDER_FLIPS:
        alarms.append(f"{flips.share:.0%} of its verdicts turn with the order of the labels")
    shift = found.length_shift
    if shift and shift.value is not None and abs(shift.value) > MOST_LENGTH_SHIFT:
        which = "long" if shift.value > 0 else "short"
        if shift.low is not None and shift.high is not None and shift.low * shift.high > 0:
            alarms.append(f"it prefers {which} answers that say the same")
    # Where verdicts are read as probabilities, no run draws them, so it is only told.
    drawn = all(one.probability is None for one in found.judged)
    if drawn and (stable := found.stable) and stable.share < LEAST_STABLE:
        alarms.append(f"only {stable.share:.0%} of its answers stay the same with chance in them")
    if found.token_differences:
        alarms.append(
            f"the server read another number of tokens than was sent in {found.token_differences} "
            f"of {found.token_calls} calls"
        )
    return tuple(alarms)


def _advice(found: Fitness, alarms: tuple[str, ...]) -> str:
    if not alarms:
        assert found.agreement is not None
        return (
            f"Fit to judge such things: {found.agreement.share:.0%} right "
            f"[{found.agreement.low:.2f}, {found.agreement.high:.2f}]. Compare it with people on "
            "data of your own before you rely on it."
        )
    if found.token_differences:
        return "Do not use it: mend the server's window first, then check again."
    if found.says_correct and max(found.says_correct.share, 1 - found.says_correct.share) >= 0.9:
        return "Do not use it: it hardly looks at the answers. Take a larger model."
    return "Not fit as it is: take a larger model, or calibrate it on labels of your own."


def _order(plain: Sequence[Judged], other: Sequence[Judged]) -> tuple[Share | None, float | None]:
    """Verdicts that turn with the order of the labels, and the mean change of the probability."""
    before = {one.id: one for one in plain}
    pairs = [(before[one.id], one) for one in other if one.id in before]
    answered = [pair for pair in pairs if None not in (pair[0].said, pair[1].said)]
    shifts = [
        two.probability - one.probability
        for one, two in answered
        if one.probability is not None and two.probability is not None
    ]
    flips = sum(one.said != two.said for one, two in answered)
    return share(flips, len(answered)), fmean(shifts) if shifts else None


def _length(plain: Sequence[Judged]) -> tuple[Share | None, Interval | None]:
    """Verdicts that turn with the length, and how much more often long ones are called correct."""
    versions: dict[str, dict[bool, Judged]] = defaultdict(dict)
    for one in plain:
        if one.said is not None:
            versions[one.id[:-1]][one.long] = one
    pairs = [both for both in versions.values() if len(both) == 2]
    if not pairs:
        return None, None
    differences = [[float(bool(p[True].said)) - float(bool(p[False].said))] for p in pairs]
    flips = sum(p[True].said != p[False].said for p in pairs)
    return share(flips, len(pairs)), bootstrap(_mean, differences)


def _mean(values: Sequence[float]) -> float | Undefined:
    return fmean(values) if values else Undefined("no pairs")


def _stable(repeats: Sequence[Judged]) -> Share | None:
    """Items whose repeats all brought the same answer."""
    said: dict[str, list[bool | None]] = defaultdict(list)
    for one in repeats:
        said[one.id].append(one.said)
    same = sum(len(set(answers)) == 1 and answers[0] is not None for answers in said.values())
    return share(same, len(said))
