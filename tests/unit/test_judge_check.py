"""`judge check`: known judgments, figures with intervals, an alarm for each way to be unfit."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import pytest

from offline_judge import wiring
from offline_judge.backends.script import ScriptOptions
from offline_judge.backends.scripted import ScriptedBackend
from offline_judge.checks import known_answers
from offline_judge.checks.fitness import fitness, share
from offline_judge.checks.items import ITEMS, ORDERED, REPEATED, Item
from offline_judge.domain.fitness import Fitness, Judged
from offline_judge.domain.message import Label, Prompt, Sampling
from offline_judge.domain.run import ModelIdentity
from offline_judge.runner.engine import Engine
from offline_judge.settings import Settings

CALLS = len(ITEMS) + len(ORDERED) + 3 * len(REPEATED)


def item_of(prompt: Prompt) -> Item:
    text = prompt.messages[-1].content
    answer = text[text.index("Answer:") :]
    # A bare answer stands in its long version, too, so the longest response is the one.
    found = [one for one in ITEMS if one.response in answer and one.question in text]
    return max(found, key=lambda one: len(one.response))


class Judge:
    """A judge in a script: how likely it calls an item correct, and what it says when sampled."""

    def __init__(self, **faults: Any) -> None:
        self.faults = faults
        self.sampled = 0

    def correct(self, prompt: Prompt) -> float:
        item = item_of(prompt)
        truth = 0.95 if item.correct else 0.05
        if self.faults.get("same"):
            return 0.9
        if self.faults.get("long") and item.kind == "long":
            return 0.9
        if self.faults.get("order") and "No or Yes" in prompt.messages[-1].content:
            return 0.9
        if self.faults.get("guesses"):
            return truth if int(item.id[:2]) % 2 else 1 - truth
        return truth

    def read(self, prompt: Prompt, labels: Sequence[Label]) -> Mapping[str, float]:
        yes = self.correct(prompt)
        mass = 0.2 if self.faults.get("invalid") and int(item_of(prompt).id[:2]) < 4 else 1.0
        return {"true": mass * yes, "false": mass * (1 - yes)}

    def say(self, prompt: Prompt, sampling: Sampling) -> str:
        self.sampled += 1
        yes = self.correct(prompt) >= 0.5
        if self.faults.get("moody") and sampling.temperature > 0:
            yes = sampling.seed // 1000 % 2 == 0
        return '"Yes"' if yes else '"No"'


def checked(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Any, script: Mapping[str, Any], **faults: Any
) -> Fitness:
    judge = Judge(**faults)
    backend = ScriptedBackend(ScriptOptions(**script), respond=judge.say, read_labels=judge.read)
    engine = Engine(backend, "scripted", "1", "scripted", 4096)
    identity = ModelIdentity(name="scripted", sha256="ab", engine="scripted")
    monkeypatch.setattr(wiring, "make_engine", lambda *_: (engine, identity))
    told: list[tuple[int, int]] = []
    settings = Settings(data_dir=str(tmp_path))
    found = known_answers.check_judge(
        settings, lambda phase, detail="": None, lambda done, total: told.append((done, total))
    )
    assert told[-1] == (CALLS, CALLS)
    return found


def test_the_items_are_48_balanced_and_of_one_answer_each() -> None:
    assert len(ITEMS) == 48 == len({item.id for item in ITEMS})
    assert sum(item.correct for item in ITEMS) == 24
    assert sum(item.kind == "long" for item in ITEMS) == 16
    assert len(ORDERED) == 16
    assert len(REPEATED) == 12
    for item in ITEMS:
        told = item.passage.casefold()
        answer = next(one for one in ITEMS if one.id == f"{item.pair}s").response
        word = answer.removeprefix("The ").removeprefix("A ").removeprefix("An ").split()[-1]
        if item.correct and word not in ("Two",):
            assert word.casefold() in told, item.id


def test_a_judge_that_is_right_has_no_alarm(monkeypatch: pytest.MonkeyPatch, tmp_path: Any) -> None:
    found = checked(monkeypatch, tmp_path, {})
    assert found.fit
    assert found.agreement is not None
    assert (found.agreement.share, found.agreement.n) == (1.0, 48)
    assert 0.92 < found.agreement.low < 0.93
    assert found.kappa == 1.0
    assert found.invalid.share == 0
    assert found.stable is not None
    assert found.stable.share == 1.0
    assert (found.token_differences, found.token_calls) == (0, CALLS)
    assert found.advice.startswith("Fit")


@pytest.mark.parametrize(
    ("fault", "words"),
    [
        ("same", "nearly everything correct"),
        ("long", "prefers long answers"),
        ("order", "turn with the order"),
        ("guesses", "only 50% of its answers are right"),
        ("invalid", "of its answers are none"),
        ("moody", "stay the same with chance"),
    ],
)
def test_each_fault_has_its_alarm(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Any, fault: str, words: str
) -> None:
    script = {"label_probabilities": False} if fault == "moody" else {}
    found = checked(monkeypatch, tmp_path, script, **{fault: True})
    assert not found.fit
    assert any(words in alarm for alarm in found.alarms)
    assert not found.advice.startswith("Fit")
    if fault in ("long", "order", "invalid", "moody"):
        assert len(found.alarms) == 1


def test_what_chance_would_change_is_no_alarm_where_verdicts_are_read(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Any
) -> None:
    found = checked(monkeypatch, tmp_path, {}, moody=True)
    assert found.fit
    assert found.stable is not None
    assert found.stable.share < 0.5


def test_a_judge_without_probabilities_is_checked_by_its_answers(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Any
) -> None:
    found = checked(monkeypatch, tmp_path, {"label_probabilities": False, "token_level": False})
    assert found.fit
    assert all(one.probability is None for one in found.judged)
    assert found.order_shift is None
    assert found.token_calls == 0


def judged(**more: Any) -> Judged:
    return Judged(**{"id": "00rs", "way": "plain", "correct": True, "said": True, **more})


def test_a_server_that_counts_otherwise_is_an_alarm() -> None:
    right = [
        judged(id=f"{at:02d}{'r' if at % 2 else 'w'}s", correct=bool(at % 2), said=bool(at % 2))
        for at in range(20)
    ]
    fine = [one.model_copy(update={"counted": 9, "prepared": 9}) for one in right]
    assert fitness("j", fine).fit
    short = [*fine[:-1], fine[-1].model_copy(update={"counted": 8})]
    (alarm,) = fitness("j", short).alarms
    assert "in 1 of 20 calls" in alarm


def test_a_share_has_wilsons_interval() -> None:
    found = share(8, 10)
    assert found is not None
    assert (round(found.low, 4), round(found.high, 4)) == (0.4902, 0.9433)
    assert share(0, 0) is None


def test_nothing_answered_is_an_alarm_and_no_division() -> None:
    found = fitness("j", [judged(said=None, reason="off-menu") for _ in range(4)])
    assert found.agreement is None
    assert found.says_correct is None
    assert found.invalid.share == 1.0
    assert len(found.alarms) == 2
