"""The forms of public sets, by small files of our own in exactly those forms."""

from __future__ import annotations

import gzip
import hashlib
import json
from pathlib import Path
from typing import Any

import pytest
from form_files import (
    FILES,
    FRESHQA,
    HOTPOTQA,
    ORIGINAL,
    SIMPLIFIED,
    write_file,
)

from offline_judge.datasets.forms.evouna import accepted
from offline_judge.datasets.forms.signs import SIGNS
from offline_judge.datasets.readers import Loaded, read_samples
from offline_judge.errors import DataError, UsageError
from offline_judge.registry import FORMS


def _read(folder: Path, name: str, **options: Any) -> Loaded:
    return read_samples(write_file(folder, *FILES[name]), form=name, **options)


def test_every_form_is_tried_here_and_has_its_signs() -> None:
    assert set(FILES) == set(SIGNS) == set(FORMS.names())


def test_ambigqa_accepts_what_any_annotator_accepted(tmp_path: Path) -> None:
    (sample,) = _read(tmp_path, "ambigqa", unanswered=True).samples
    assert (sample.id, sample.response) == ("71", "")
    assert sample.reference == ("1902", "in 1902", "1888")
    assert sample.metadata == {"nq_doc_title": "Lighthouse", "type": "mixed"}


def test_hotpotqa_keeps_the_kind_and_reads_a_testwrite_file(tmp_path: Path) -> None:
    first, second = _read(tmp_path, "hotpotqa", unanswered=True).samples
    assert (first.id, first.reference) == ("5a", ("the mill",))
    assert first.metadata == {"type": "comparison", "level": "hard"}
    assert (second.id, second.reference, second.metadata) == ("5b", (), {})


def test_triviaqa_accepts_aliases_behind_the_value(tmp_path: Path) -> None:
    first, second = _read(tmp_path, "triviaqa", unanswered=True).samples
    assert first.id == "tc_7"
    assert first.reference == ("Inari", "Lake Inari", "Inarijärvi")
    assert second.reference == ()


def test_triviaqa_in_json_lines(tmp_path: Path) -> None:
    row = {
        "question": "Which lake?",
        "question_id": "tc_7",
        "answer": {"value": "Inari", "aliases": ["Lake Inari"], "normalized_value": "inari"},
    }
    path = write_file(tmp_path, "web.jsonl", json.dumps(row) + "\n")
    (sample,) = read_samples(path, form="triviaqa", unanswered=True).samples
    assert (sample.id, sample.reference) == ("tc_7", ("Inari", "Lake Inari"))


@pytest.mark.parametrize(
    ("row", "reference"), [(SIMPLIFIED, ("1931", "yes")), (ORIGINAL, ("1931",))]
)
def test_natural_questions_reads_spans_of_the_page(
    tmp_path: Path, row: dict[str, Any], reference: tuple[str, ...]
) -> None:
    path = tmp_path / "nq-00.jsonl.gz"
    path.write_bytes(gzip.compress(json.dumps(row).encode() + b"\n"))
    loaded = read_samples(path, form="natural-questions", unanswered=True)
    (sample,) = loaded.samples
    assert (sample.id, sample.question) == ("-12", "when was the ferry built")
    assert sample.reference == reference
    assert sample.metadata == {"document_url": "https://wiki.example/Ferry"}
    assert loaded.source.sha256 == hashlib.sha256(path.read_bytes()).hexdigest()


def test_nq_open_takes_answers_that_people_added(tmp_path: Path) -> None:
    first, second = _read(tmp_path, "nq-open", unanswered=True).samples
    assert first.reference == ("Ida Berg", "Berg")
    assert second.reference == ("a storm", "storm")
    assert first.id != second.id


def test_freshqa_keeps_date_and_kind_of_the_question(tmp_path: Path) -> None:
    first, second = _read(tmp_path, "freshqa", unanswered=True).samples
    assert (first.id, first.reference) == ("0", ("Ana Lima", "A. Lima"))
    assert first.metadata == {
        "split": "TEST",
        "effective_year": "2026",
        "next_review": "weekly",
        "num_hops": "one-hop",
        "fact_type": "fast-changing",
        "source": "https://e.example",
        "false_premise": False,
    }
    assert second.metadata["false_premise"] is True
    assert second.metadata["note"] == "check"


def test_freshqa_takes_a_column_of_model_responses(tmp_path: Path) -> None:
    lines = FRESHQA.splitlines()
    ends = ("", "", ",model_response", ",Ana Lima.", ",")
    text = "\n".join(line + end for line, end in zip(lines, ends, strict=True))
    loaded = read_samples(write_file(tmp_path, "f.csv", text), form="freshqa", skip_bad=True)
    assert [sample.response for sample in loaded.samples] == ["Ana Lima."]
    assert loaded.problems == ("line 5: `model_response` is empty",)


def test_evouna_gives_a_sample_a_system_and_counts_what_it_leaves_out(tmp_path: Path) -> None:
    loaded = _read(tmp_path, "evouna")
    first, second = loaded.samples
    assert (first.response, first.label) == ("Ida Berg", True)
    assert second.label is False
    assert first.reference == ("Ida Berg", "I. Berg")
    assert first.metadata == {"system": "fid"}
    assert first.id == second.id.replace("gpt4", "fid")
    assert loaded.source.left_out == {
        "answers that `newbing` did not give": 1,
        "questions flagged as improper": 1,
    }
    assert loaded.problems == ()
    assert any("1 questions flagged as improper" in note for note in loaded.notes)


def test_evouna_writes_nothing_as_words_too(tmp_path: Path) -> None:
    row = {
        "question": "how many",
        "golden_answer": "three",
        "answer_fid": "None",
        "judge_fid": "nan",
        "answer_gpt4": "Three.",
        "judge_gpt4": "nan",
        "improper": False,
    }
    loaded = read_samples(write_file(tmp_path, "TQ.json", [row]), form="evouna")
    assert [(sample.response, sample.label) for sample in loaded.samples] == [("Three.", None)]
    assert loaded.source.left_out == {"answers that `fid` did not give": 1}


@pytest.mark.parametrize(
    ("golden", "answers"),
    [
        ("Ida/I. Berg", ("Ida", "I. Berg")),
        ("11/9/1989", ("11/9/1989",)),
        ("90 km/h", ("90 km/h",)),
        ("1960/1961", ("1960", "1961")),
        ("US/United States", ("US", "United States")),
        ("Vitamin C/C/ascorbic acid", ("Vitamin C", "C", "ascorbic acid")),
        ("", ()),
    ],
)
def test_golden_answers_are_parted_where_they_are_several(
    golden: str, answers: tuple[str, ...]
) -> None:
    assert accepted(golden) == answers


def test_openqa_eval_reads_judgments_without_unquoting(tmp_path: Path) -> None:
    first, second, third = _read(tmp_path, "openqa-eval").samples
    assert first.response == '"Blue Boat" is sung by Ida Berg'
    assert (first.label, second.label, third.label) == (True, False, None)
    assert (first.id, second.id, third.id) == ("4", "4-2", "5")
    assert first.metadata == {"question_id": "4", "annotators": "Yes No Yes"}


def test_openqa_eval_reads_predictions(tmp_path: Path) -> None:
    text = '{"question": "who", "answer": ["Ida", "I."], "prediction": ["Ida Berg", "Olaf"]}\n'
    (sample,) = read_samples(write_file(tmp_path, "fid.jsonl", text), form="openqa-eval").samples
    assert (sample.response, sample.reference) == ("Ida Berg", ("Ida", "I."))


@pytest.mark.parametrize("name", sorted(set(FILES) - {"evouna", "openqa-eval"}))
def test_a_set_without_responses_says_how_to_get_them(tmp_path: Path, name: str) -> None:
    with pytest.raises(DataError) as caught:
        _read(tmp_path, name)
    assert "no responses to judge" in str(caught.value)
    assert "--responses" in str(caught.value)
    assert "--candidate" in str(caught.value)


@pytest.mark.parametrize("wanted", sorted(FILES))
@pytest.mark.parametrize("given", sorted(FILES))
def test_another_sets_file_is_refused_and_recognised(
    tmp_path: Path, wanted: str, given: str
) -> None:
    path = write_file(tmp_path, *FILES[given])
    if wanted == given or (given == "hotpotqa" and wanted == "nq-open"):
        return  # a question with an answer fits both
    with pytest.raises(DataError) as caught:
        read_samples(path, form=wanted, unanswered=True)
    message = str(caught.value)
    assert "Expected:" in message
    assert "Found:" in message
    assert f"--format {given}" in message


@pytest.mark.parametrize("name", sorted(set(FILES) - {"triviaqa", "freshqa"}))
def test_the_plain_reader_recognises_a_public_set(tmp_path: Path, name: str) -> None:
    with pytest.raises(DataError) as caught:
        read_samples(write_file(tmp_path, *FILES[name]))
    assert f"This looks like --format {name}." in str(caught.value)


def test_a_broken_row_is_named_by_its_entry(tmp_path: Path) -> None:
    rows = [*HOTPOTQA, {"_id": "5c", "question": ""}, {"_id": "5a", "question": "Again?"}]
    path = write_file(tmp_path, "h.json", rows)
    loaded = read_samples(path, form="hotpotqa", unanswered=True, skip_bad=True)
    assert loaded.problems == (
        "entry 3: `question` is empty",
        "entry 4: `id` '5a' was used in entry 1",
    )
    assert (loaded.source.rows, loaded.source.skipped) == (4, 2)


def test_a_file_cut_short_is_refused(tmp_path: Path) -> None:
    path = write_file(tmp_path, "h.json", json.dumps(HOTPOTQA)[:-20])
    with pytest.raises(DataError, match="cut short"):
        read_samples(path, form="hotpotqa", unanswered=True)


def test_a_damaged_archive_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "nq.jsonl.gz"
    path.write_bytes(gzip.compress(json.dumps(SIMPLIFIED).encode())[:-10])
    with pytest.raises(DataError, match="Cannot read"):
        read_samples(path, form="natural-questions", unanswered=True)


def test_a_mapping_and_a_form_exclude_one_another(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="--map"):
        _read(tmp_path, "evouna", mapping={"response": "answer_fid"})


def test_an_unknown_form_gets_the_nearest(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="Did you mean `triviaqa`"):
        read_samples(write_file(tmp_path, *FILES["triviaqa"]), form="trivia-qa")


@pytest.mark.parametrize("name", sorted(FILES))
def test_a_byte_order_mark_does_no_harm(tmp_path: Path, name: str) -> None:
    plain = (
        _read(tmp_path, name, unanswered=True)
        if name not in ("evouna", "openqa-eval")
        else (_read(tmp_path, name))
    )
    path = tmp_path / FILES[name][0]
    path.write_bytes(b"\xef\xbb\xbf" + path.read_bytes())
    marked = read_samples(path, form=name, unanswered=name not in ("evouna", "openqa-eval"))
    assert marked.samples == plain.samples
