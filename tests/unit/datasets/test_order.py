"""The order of samples: grouped, fixed, and stable as samples come and go."""

from __future__ import annotations

import random

from hypothesis import given
from hypothesis import strategies as st

from offline_judge.datasets.order import group_samples
from offline_judge.domain.sample import Sample

_SAMPLES = st.lists(st.integers(0, 4), max_size=25).map(
    lambda questions: [
        Sample(id=f"s{i}", question=f"q{question}", response=f"r{i}")
        for i, question in enumerate(questions)
    ]
)


def _flat(groups: list[tuple[Sample, ...]]) -> list[str]:
    return [sample.id for group in groups for sample in group]


@given(_SAMPLES, st.none() | st.integers())
def test_every_sample_is_taken_once_and_each_question_is_one_group(
    samples: list[Sample], seed: int | None
) -> None:
    groups = group_samples(samples, seed=seed)
    assert sorted(_flat(groups)) == sorted(sample.id for sample in samples)
    questions = [{sample.question for sample in group} for group in groups]
    assert all(len(found) == 1 for found in questions)
    assert len({next(iter(found)) for found in questions}) == len(groups)


@given(_SAMPLES, st.integers(), st.data())
def test_samples_that_come_or_go_do_not_change_the_order_of_the_others(
    samples: list[Sample], seed: int, data: st.DataObject
) -> None:
    ids = {sample.id for sample in samples if data.draw(st.booleans())}
    some = [sample for sample in samples if sample.id in ids]
    whole = _flat(group_samples(samples, seed=seed))
    assert _flat(group_samples(some, seed=seed)) == [name for name in whole if name in ids]


@given(_SAMPLES, st.integers(), st.randoms())
def test_the_random_order_does_not_depend_on_the_file(
    samples: list[Sample], seed: int, shuffle: random.Random
) -> None:
    other = list(samples)
    shuffle.shuffle(other)
    assert group_samples(other, seed=seed) == group_samples(samples, seed=seed)


def test_without_a_seed_questions_keep_the_order_of_the_file() -> None:
    samples = [
        Sample(id=name, question=name[0], response=name) for name in ("b1", "a1", "b2", "c1", "a2")
    ]
    assert _flat(group_samples(samples)) == ["b1", "b2", "a1", "a2", "c1"]


def test_seeds_give_different_orders() -> None:
    samples = [Sample(id=f"s{i}", question=f"q{i}", response="r") for i in range(30)]
    orders = {tuple(_flat(group_samples(samples, seed=seed))) for seed in range(5)}
    assert len(orders) == 5
    assert tuple(sample.id for sample in samples) not in orders
