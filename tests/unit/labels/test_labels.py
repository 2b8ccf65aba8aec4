"""Labels: how they are spelt, several annotators, and ids that fit no sample."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from offline_judge.errors import DataError, UsageError
from offline_judge.labels.joining import Joined, join
from offline_judge.labels.reading import LabelSet, label_columns, read_labels, settle


@dataclass(frozen=True)
class Row:
    place: str
    columns: dict[str, Any] = field(default_factory=dict)
    problem: str = ""


def read(*rows: dict[str, Any], skip_bad: bool = False, **mapping: str) -> LabelSet:
    numbered = [Row(f"line {number}", row) for number, row in enumerate(rows, 1)]
    return read_labels(numbered, "labels.jsonl", mapping, skip_bad=skip_bad)


@pytest.mark.parametrize("word", [True, 1, "1", "true", "TRUE", " Yes ", "correct", 1.0])
def test_ways_to_say_true(word: Any) -> None:
    assert read({"id": "a", "label": word}).labels == {"a": True}


@pytest.mark.parametrize("word", [False, 0, "0", "false", "No", "INCORRECT"])
def test_ways_to_say_false(word: Any) -> None:
    assert read({"id": "a", "label": word}).labels == {"a": False}


def test_a_number_is_an_id_too() -> None:
    assert read({"id": 7, "label": 1}).labels == {"7": True}


def test_the_majority_of_rows_with_one_id_counts() -> None:
    rows = [{"id": "a", "label": label} for label in (True, False, True)]
    found = read(*rows)
    assert found.labels == {"a": True}
    assert found.several == 1


@pytest.mark.parametrize("cell", [["Yes", "No", "Yes"], "yes|no|yes", ["Yes", None, ""]])
def test_the_majority_of_one_cell_counts(cell: Any) -> None:
    assert read({"id": "a", "annotators": cell}, annotators="label").labels == {"a": True}


def test_the_majority_of_several_columns_counts() -> None:
    row = {"id": "a", "first": 0, "second": 0, "third": 1}
    assert read(row, first="label", second="label", third="label").labels == {"a": False}


def test_a_tie_is_no_label_and_is_told() -> None:
    found = read({"id": "a", "label": "yes|no"}, {"id": "b", "label": 1})
    assert found.labels == {"b": True}
    assert found.ties == ("a",)


def test_a_row_without_a_label_is_counted() -> None:
    found = read({"id": "a", "label": ""}, {"id": "b", "label": 1}, {"id": "c", "label": None})
    assert found.labels == {"b": True}
    assert found.blank == ("a", "c")


@given(st.dictionaries(st.text(min_size=1), st.lists(st.booleans()), max_size=8))
def test_every_sample_is_labelled_tied_or_blank(votes: dict[str, list[bool]]) -> None:
    found = settle(votes)
    assert sorted([*found.labels, *found.ties, *found.blank]) == sorted(votes)


def test_an_unknown_spelling_is_an_error_that_names_row_and_value() -> None:
    with pytest.raises(DataError, match='line 2: `label` is "maybe"') as caught:
        read({"id": "a", "label": 1}, {"id": "b", "label": "maybe"})
    assert "--skip-bad" in caught.value.remedy


def test_bad_rows_can_be_left_out_and_are_told() -> None:
    found = read({"id": "a", "label": 1}, {"id": "b", "label": "maybe"}, skip_bad=True)
    assert found.labels == {"a": True}
    assert len(found.problems) == 1


def test_a_missing_column_is_guessed() -> None:
    with pytest.raises(DataError, match=r"--map sample_id=id --map annotators=label"):
        read({"sample_id": "a", "annotators": ["yes"]})


def test_a_file_without_labels_is_an_error() -> None:
    with pytest.raises(DataError, match="no labels"):
        read({"id": "a", "label": ""})
    with pytest.raises(DataError, match="no labels"):
        read()


def test_only_ids_and_labels_are_mapped() -> None:
    with pytest.raises(UsageError, match="no field of a label"):
        label_columns({"x": "question"})
    with pytest.raises(UsageError, match="Two columns"):
        label_columns({"x": "id", "y": "id"})


def joined(labels: dict[str, bool], known: list[str], data: list[str], **more: Any) -> Joined:
    return join(LabelSet(labels, **more), known, lambda: data, "labels.jsonl")


def test_labels_of_unknown_samples_are_an_error_with_counts_both_ways() -> None:
    with pytest.raises(DataError) as caught:
        joined({"a": True, "x": True, "y": False}, ["a", "b", "c"], ["a", "b", "c"])
    assert "2 of 3 labels are of no sample of this run: `x`, `y`" in caught.value.message
    assert "2 of its 3 samples have no label" in caught.value.message


def test_labels_of_unknown_samples_can_be_left_out() -> None:
    given_labels = LabelSet({"a": True, "x": True})
    found = join(given_labels, ["a", "b"], lambda: ["a", "b"], "f", skip_bad=True)
    assert found.labels == {"a": True}
    assert found.unknown == ("x",)


def test_labels_of_samples_beyond_a_limit_are_no_error() -> None:
    found = joined({"a": True, "later": False}, ["a"], ["a", "later"])
    assert found.labels == {"a": True}
    assert found.not_taken_up == 1


def test_the_data_is_not_read_where_every_label_has_its_sample() -> None:
    def never() -> list[str]:
        raise AssertionError("read")

    assert join(LabelSet({"a": True}), ["a", "b"], never, "f").labels == {"a": True}


@pytest.mark.parametrize("skip_bad", [False, True])
def test_no_overlap_is_an_error_with_a_remedy(skip_bad: bool) -> None:
    with pytest.raises(DataError) as caught:
        join(LabelSet({"1": True}), ["q1"], lambda: ["q1"], "f", skip_bad=skip_bad)
    assert "`1`" in caught.value.message
    assert "`q1`" in caught.value.message
    assert "--map COLUMN=id" in caught.value.remedy


def test_no_overlap_with_data_that_is_gone_does_not_blame_the_ids_alone() -> None:
    with pytest.raises(DataError, match="cannot be told") as caught:
        join(LabelSet({"1": True}), ["q1"], lambda: None, "f")
    assert "Put the data file back" in caught.value.remedy


def test_labels_of_later_samples_only_say_to_go_on() -> None:
    with pytest.raises(DataError, match="not come to yet"):
        joined({"later": True}, ["a"], ["a", "later"])


def test_a_run_without_samples_says_so() -> None:
    with pytest.raises(DataError, match="not taken up any"):
        joined({"a": True}, [], [])


def test_ties_of_other_samples_are_not_the_runs() -> None:
    found = joined({"a": True}, ["a", "b"], ["a", "b", "c"], ties=("b", "c"))
    assert found.ties == ("b",)
