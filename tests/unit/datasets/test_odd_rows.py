"""Whatever stands in a later row of a public set, it is used or named, and never a crash."""

from __future__ import annotations

import copy
import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from form_files import AMBIGQA, EVOUNA, HOTPOTQA, ORIGINAL, SIMPLIFIED, TRIVIAQA, write_file

from offline_judge.datasets.readers import read_samples
from offline_judge.errors import DataError

JUDGED = {
    "id": 4,
    "Question": "who sang it",
    "Model answer": "Ida Berg",
    "Acceptable?": "Yes",
    "annotator1": "Yes",
}
PREDICTED = {
    "id": 4,
    "question": "who",
    "answer": ["Ida", "I."],
    "prediction": ["Ida Berg", "Olaf"],
}
WIDER = {
    "question": "who sank it",
    "answer": ["a storm"],
    "answer_and_def_correct_predictions": ["a storm", "storm"],
}
FRESH = {
    "id": "0",
    "question": "Who is mayor?",
    "effective_year": "2026",
    "false_premise": "FALSE",
    "answer_0": "Ana Lima",
    "model_response": "Ana.",
}
ROWS: dict[str, tuple[str, str, dict[str, Any]]] = {
    "ambigqa": ("ambigqa", "dev.json", AMBIGQA[0]),
    "evouna": ("evouna", "NQ.json", EVOUNA[0]),
    "freshqa": ("freshqa", "fresh.csv", FRESH),
    "hotpotqa": ("hotpotqa", "hotpot.json", HOTPOTQA[0]),
    "natural-questions, simplified": ("natural-questions", "nq.jsonl", SIMPLIFIED),
    "natural-questions, original": ("natural-questions", "nq.jsonl", ORIGINAL),
    "nq-open": ("nq-open", "open.jsonl", WIDER),
    "openqa-eval, judged": ("openqa-eval", "human.jsonl", JUDGED),
    "openqa-eval, predicted": ("openqa-eval", "fid.jsonl", PREDICTED),
    "triviaqa": ("triviaqa", "web.json", TRIVIAQA["Data"][0]),
}
"""A form, a file name and a sound row of it."""
ODD: tuple[Any, ...] = (
    *(None, True, False, 0, -1, 3, 0.5, 10**30, "", " ", "None", "\x00", "x"),
    *([], [None], [[]], [{}], ["x", 1], {}, {"a": 1}),
)
TABLES = (".csv", ".tsv")
ANSWERED = ("evouna", "freshqa", "openqa-eval")


def _mutants(value: Any) -> Iterator[Any]:
    """The value with one thing in it, at any depth, left out or replaced."""
    if isinstance(value, dict | list):
        for place in list(value) if isinstance(value, dict) else range(len(value)):
            lacking = copy.copy(value)
            del lacking[place]
            yield lacking
            for inner in _mutants(value[place]):
                changed: Any = copy.copy(value)
                changed[place] = inner
                yield changed
    yield from ODD


def _bad_rows(name: str, row: dict[str, Any]) -> list[dict[str, Any]]:
    if name.endswith(TABLES):  # all cells are texts and none is missing
        return [{**row, key: odd} for key in row for odd in ODD if isinstance(odd, str)]
    return [mutant for mutant in _mutants(row) if isinstance(mutant, dict)]


def _write(folder: Path, form: str, name: str, rows: list[dict[str, Any]]) -> Path:
    if name.endswith(TABLES):
        lines = [",".join(cells) for cells in (list(rows[0]), *(row.values() for row in rows))]
        return write_file(folder, name, "\n".join(lines))
    if name.endswith(".jsonl"):
        return write_file(folder, name, "".join(json.dumps(row) + "\n" for row in rows))
    return write_file(folder, name, {"Data": rows} if form == "triviaqa" else rows)


@pytest.mark.parametrize("case", sorted(ROWS))
def test_any_odd_row_is_used_or_named_by_its_place(tmp_path: Path, case: str) -> None:
    form, name, sound = ROWS[case]
    rows = [sound, *_bad_rows(name, sound)]
    path = _write(tmp_path, form, name, rows)
    loaded = read_samples(path, form=form, skip_bad=True, unanswered=form not in ANSWERED)
    assert loaded.source.rows == len(rows)
    assert loaded.problems
    assert loaded.samples[0].question == sound.get("question", loaded.samples[0].question)
    for problem in loaded.problems:
        place, _, reason = problem.partition(": ")
        assert place.startswith(("line ", "entry "))
        assert "`" in reason or reason.startswith(("no column", "a short answer", "neither"))
        assert "\n" not in reason


@pytest.mark.parametrize(
    ("case", "column"),
    [
        ("evouna", "golden_answer"),
        ("openqa-eval, predicted", "answer"),
        ("openqa-eval, predicted", "prediction"),
        ("openqa-eval, judged", "Acceptable?"),
    ],
)
def test_a_row_without_a_column_of_its_form_is_refused_by_name(
    tmp_path: Path, case: str, column: str
) -> None:
    form, name, sound = ROWS[case]
    lacking = {key: value for key, value in sound.items() if key != column}
    path = _write(tmp_path, form, name, [sound, lacking])
    with pytest.raises(DataError) as caught:
        read_samples(path, form=form)
    assert f" 2: `{column}` is missing" in caught.value.message
    assert caught.value.where == str(path)
    assert "--skip-bad" in caught.value.remedy


@pytest.mark.parametrize("odd", [7, "\x00", " "])
def test_of_a_row_that_is_skipped_no_system_is_kept(tmp_path: Path, odd: Any) -> None:
    bad = {**EVOUNA[0], "question": "who sank it", "answer_gpt4": odd}
    path = _write(tmp_path, "evouna", "NQ.json", [EVOUNA[0], bad])
    loaded = read_samples(path, form="evouna", skip_bad=True)
    systems = [sample.metadata["system"] for sample in loaded.samples if "sank" in sample.question]
    assert systems == ([] if loaded.problems else ["fid", "gpt4"])
    assert loaded.source.left_out.get("answers that `newbing` did not give") == 2 - len(
        loaded.problems
    )
