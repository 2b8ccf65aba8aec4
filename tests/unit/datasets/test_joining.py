"""Responses joined to questions: by id, by question, by system, and what fits nothing."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from offline_judge.datasets.readers import read_samples
from offline_judge.errors import DataError

QUESTIONS = [{"id": f"q{n}", "question": f"What is {n}?", "reference": str(n)} for n in range(3)]


def _lines(path: Path, rows: list[dict[str, Any]]) -> Path:
    path.write_text("".join(json.dumps(row) + "\n" for row in rows), "utf-8")
    return path


@pytest.fixture
def data(tmp_path: Path) -> Path:
    return _lines(tmp_path / "data.jsonl", QUESTIONS)


def _answers(folder: Path, *rows: dict[str, Any]) -> Path:
    return _lines(folder / "answers.jsonl", list(rows))


def test_responses_are_joined_by_id(data: Path, tmp_path: Path) -> None:
    answers = _answers(tmp_path, *({"id": f"q{n}", "response": f"It is {n}"} for n in (2, 0, 1)))
    loaded = read_samples(data, responses=answers)
    assert [(s.id, s.response, s.reference) for s in loaded.samples] == [
        (f"q{n}", f"It is {n}", (str(n),)) for n in range(3)
    ]
    assert loaded.notes == ()
    joined = loaded.source.responses
    assert joined is not None
    assert (joined.rows, joined.unknown) == (3, 0)


def test_responses_may_come_from_a_table(data: Path, tmp_path: Path) -> None:
    path = tmp_path / "answers.csv"
    path.write_text('id,response\nq0,"nought, nil"\nq1,one\nq2,two\n')
    assert [s.response for s in read_samples(data, responses=path).samples] == [
        "nought, nil",
        "one",
        "two",
    ]


def test_several_responses_an_id_are_told_apart_by_their_system(data: Path, tmp_path: Path) -> None:
    rows = [
        {"id": f"q{n}", "response": f"{n} by {name}", "system": name}
        for name in ("a", "b")
        for n in range(3)
    ]
    loaded = read_samples(data, responses=_answers(tmp_path, *rows))
    assert [sample.id for sample in loaded.samples[:3]] == ["q0-a", "q0-b", "q1-a"]
    assert loaded.samples[1].metadata == {"system": "b"}
    assert loaded.samples[1].response == "0 by b"


def test_a_second_response_without_a_system_is_refused(data: Path, tmp_path: Path) -> None:
    answers = _answers(tmp_path, *({"id": "q0", "response": word} for word in ("one", "two")))
    with pytest.raises(DataError, match="line 2: a second response for id 'q0'"):
        read_samples(data, responses=answers)


def test_responses_without_ids_are_joined_by_question(data: Path, tmp_path: Path) -> None:
    rows = [{"question": f"what is  {n}", "prediction": f"It is {n}"} for n in range(3)]
    loaded = read_samples(data, responses=_answers(tmp_path, *rows))
    assert [sample.response for sample in loaded.samples] == ["It is 0", "It is 1", "It is 2"]


def test_questions_without_a_response_are_left_out_and_named(data: Path, tmp_path: Path) -> None:
    loaded = read_samples(data, responses=_answers(tmp_path, {"id": "q1", "response": "one"}))
    assert [sample.id for sample in loaded.samples] == ["q1"]
    assert loaded.notes == ("2 questions without a response are left out: `q0`, `q2`.",)


def test_responses_to_unknown_questions_are_refused_or_counted(data: Path, tmp_path: Path) -> None:
    rows = [{"id": name, "response": "R"} for name in ("q0", "q1", "q2", "x", "y")]
    answers = _answers(tmp_path, *rows)
    with pytest.raises(DataError, match="2 of 5 ids are not in the data: `x`, `y`"):
        read_samples(data, responses=answers)
    loaded = read_samples(data, responses=answers, skip_bad=True)
    assert len(loaded.samples) == 3
    assert loaded.source.responses is not None
    assert loaded.source.responses.unknown == 2
    assert any("`x`, `y`" in note for note in loaded.notes)


def test_responses_that_fit_nothing_show_both_sides(data: Path, tmp_path: Path) -> None:
    answers = _answers(tmp_path, {"id": "1", "response": "R"})
    with pytest.raises(DataError) as caught:
        read_samples(data, responses=answers, skip_bad=True)
    assert "`q0`" in str(caught.value)
    assert "`1`" in str(caught.value)


def test_an_empty_response_is_a_bad_row(data: Path, tmp_path: Path) -> None:
    rows = [{"id": "q0", "response": " "}, {"id": "q1", "response": "one"}]
    answers = _answers(tmp_path, *rows)
    with pytest.raises(DataError, match="responses, line 1: `response` is empty"):
        read_samples(data, responses=answers)
    assert [s.id for s in read_samples(data, responses=answers, skip_bad=True).samples] == ["q1"]


def test_data_with_responses_of_its_own_takes_no_others(tmp_path: Path) -> None:
    data = _lines(tmp_path / "d.jsonl", [{"id": "a", "question": "Q", "response": "R"}])
    with pytest.raises(DataError, match="responses of their own"):
        read_samples(data, responses=_answers(tmp_path, {"id": "a", "response": "S"}))


def test_a_file_of_other_columns_is_no_file_of_responses(data: Path, tmp_path: Path) -> None:
    with pytest.raises(DataError, match=r"need `id`.*a row has: id, text"):
        read_samples(data, responses=_answers(tmp_path, {"id": "q0", "text": "R"}))


def test_two_samples_never_share_an_id(tmp_path: Path) -> None:
    data = _lines(
        tmp_path / "d.jsonl",
        [{"id": "a", "question": "Q"}, {"id": "a-b", "question": "R"}],
    )
    answers = _answers(
        tmp_path,
        {"id": "a", "response": "1", "system": "b-c"},
        {"id": "a-b", "response": "2", "system": "c"},
    )
    with pytest.raises(DataError, match="two samples would be called `a-b-c`"):
        read_samples(data, responses=answers)
