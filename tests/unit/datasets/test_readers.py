"""Reading data files: formats, fields, and what becomes of bad rows and files."""

from __future__ import annotations

import csv
import hashlib
import json
from pathlib import Path
from typing import Any

import pytest

from offline_judge.datasets.readers import Loaded, read_samples
from offline_judge.domain.sample import derived_id
from offline_judge.errors import DataError, UsageError

GOOD: dict[str, Any] = {"id": "a", "question": "Who?", "response": "Me"}


def _jsonl(folder: Path, *rows: Any, name: str = "data.jsonl") -> Path:
    lines = [row if isinstance(row, str) else json.dumps(row) for row in rows]
    path = folder / name
    path.write_text("".join(f"{line}\n" for line in lines), "utf-8")
    return path


def _file(folder: Path, name: str, content: str | bytes) -> Path:
    path = folder / name
    path.write_bytes(content if isinstance(content, bytes) else content.encode())
    return path


def _problem(path: Path, **options: Any) -> str:
    with pytest.raises(DataError) as caught:
        read_samples(path, **options)
    return str(caught.value)


def _only_problem(path: Path) -> str:
    """The problem of the one bad row beside a good one."""
    loaded = read_samples(path, skip_bad=True)
    assert loaded.source.skipped == len(loaded.problems) == 1
    assert len(loaded.samples) == loaded.source.rows - 1
    return loaded.problems[0]


def test_all_fields_of_a_json_row(tmp_path: Path) -> None:
    row = GOOD | {"reference": ["I", "me"], "label": True, "kind": "plain", "n": 3, "x": {"b": [1]}}
    loaded = read_samples(_jsonl(tmp_path, row))
    (sample,) = loaded.samples
    assert (sample.id, sample.question, sample.response) == ("a", "Who?", "Me")
    assert sample.reference == ("I", "me")
    assert sample.label is True
    assert sample.metadata == {"kind": "plain", "n": 3, "x": '{"b":[1]}'}


def test_csv_and_json_lines_of_one_content_give_the_same_samples(tmp_path: Path) -> None:
    rows = [
        {"id": "1", "question": 'say "x", y', "response": "two\nlines", "label": "yes"},
        {"id": "2", "question": "Größe?", "response": "1,80 m", "label": "no"},
    ]
    path = tmp_path / "data.csv"
    with path.open("w", encoding="utf-8", newline="") as file:
        writer = csv.DictWriter(file, fieldnames=list(rows[0]))
        writer.writeheader()
        writer.writerows(rows)
    assert read_samples(path).samples == read_samples(_jsonl(tmp_path, *rows)).samples


def test_the_source_tells_path_hash_format_and_counts(tmp_path: Path) -> None:
    for name, content in (
        ("a.csv", "id,question,response\n1,q,r\n,,\n2,q,\n"),
        ("a.tsv", "id\tquestion\tresponse\n1\tq\tr\n2\tq\t\n"),
        ("a.NDJSON", '{"question":"q","response":"r"}\n\n{"question":"q"}\n'),
    ):
        path = _file(tmp_path, name, content)
        source = read_samples(path, skip_bad=True).source
        assert source.sha256 == hashlib.sha256(path.read_bytes()).hexdigest()
        assert (source.rows, source.skipped) == (2, 1)
        assert Path(source.path) == path
        assert source.format in {"csv", "tsv", "jsonl"}


def test_the_path_of_the_source_is_absolute(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    _jsonl(tmp_path, GOOD)
    monkeypatch.chdir(tmp_path)
    assert Path(read_samples(Path("data.jsonl")).source.path) == tmp_path / "data.jsonl"


@pytest.mark.parametrize("suffix", ["jsonl", "csv"])
def test_columns_of_other_names_are_mapped(tmp_path: Path, suffix: str) -> None:
    rows = {
        "jsonl": '{"Q": "q", "A": "r", "gold": "no", "id": "x", "question": "other"}\n',
        "csv": "Q,A,gold,id,question\nq,r,no,x,other\n",
    }
    path = _file(tmp_path, f"data.{suffix}", rows[suffix])
    mapping = {"question": "Q", "response": "A", "label": "gold"}
    loaded = read_samples(path, mapping=mapping)
    (sample,) = loaded.samples
    assert (sample.question, sample.response, sample.label) == ("q", "r", False)
    assert sample.metadata == {"question": "other"}
    assert loaded.source.mapping == mapping


def test_an_unknown_field_in_the_mapping_is_named_with_a_guess(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match=r"no field `respons`.*Did you mean `response`"):
        read_samples(_jsonl(tmp_path, GOOD), mapping={"respons": "x"})


def test_a_mapping_to_a_column_that_no_row_has_is_refused(tmp_path: Path) -> None:
    problem = _problem(_jsonl(tmp_path, GOOD), mapping={"label": "gold"})
    assert "No row has the column `gold`" in problem


@pytest.mark.parametrize(
    ("value", "label"),
    [
        (True, True),
        ("TRUE", True),
        (1, True),
        ("1.0", True),
        ("Yes", True),
        (" correct ", True),
        (False, False),
        ("false", False),
        (0, False),
        (0.0, False),
        ("NO", False),
        ("Incorrect", False),
        (None, None),
        ("", None),
    ],
)
def test_labels(tmp_path: Path, value: Any, label: bool | None) -> None:
    assert read_samples(_jsonl(tmp_path, GOOD | {"label": value})).samples[0].label is label


@pytest.mark.parametrize("value", ["maybe", 2, 0.5, [True], "not correct"])
def test_another_label_is_a_bad_row_and_not_a_guess(tmp_path: Path, value: Any) -> None:
    path = _jsonl(tmp_path, GOOD, GOOD | {"id": "b", "label": value})
    assert _only_problem(path).startswith("line 2: `label` is ")


def test_references(tmp_path: Path) -> None:
    path = _jsonl(
        tmp_path, *(GOOD | {"id": i, "reference": r} for i, r in enumerate(["x|y", ["x", 2], None]))
    )
    assert [s.reference for s in read_samples(path).samples] == [("x|y",), ("x", "2"), ()]
    path = _file(tmp_path, "d.csv", "question,response,reference\nq,r,x | y|\nq,s,\n")
    assert [s.reference for s in read_samples(path).samples] == [("x", "y"), ()]


def test_a_nested_reference_is_a_bad_row(tmp_path: Path) -> None:
    path = _jsonl(tmp_path, GOOD, GOOD | {"id": "b", "reference": [["x"]]})
    assert "`reference` must be text or a list of texts, not an array" in _only_problem(path)


@pytest.mark.parametrize(
    ("change", "problem"),
    [
        ({"response": ""}, "`response` is empty"),
        ({"question": " \t"}, "`question` is empty"),
        ({"response": None}, "`response` is missing"),
        ({"response": ["x"]}, "`response` must be text, not an array"),
        ({"response": True}, "`response` must be text, not a boolean"),
        ({"id": 1.5}, "`id` must be text or a whole number"),
        ({"id": "a"}, "`id` 'a' was used in line 1"),
    ],
)
def test_a_bad_field_is_named_with_its_line(
    tmp_path: Path, change: dict[str, Any], problem: str
) -> None:
    path = _jsonl(tmp_path, GOOD, GOOD | {"id": "b"} | change)
    assert _only_problem(path).startswith(f"line 2: {problem}")


@pytest.mark.parametrize(
    ("line", "problem"),
    [
        ("{", "not JSON"),
        ("[1]", "not a JSON object but an array"),
        ('{"question": "q", "response": NaN}', "NaN is not JSON"),
        ('{"question": "q", "response": 1e999}', "too large"),
        ('{"question": "q", "response": "r", "response": "s"}', "`response` is given twice"),
        ('{"question": "q", "response": "\\ud800"}', "`response` holds half of a surrogate pair"),
        ("[" * 100_000, "nested too deeply"),
        ("1" * 5000, "too large"),
    ],
)
def test_a_line_that_is_no_strict_json_is_a_bad_row(
    tmp_path: Path, line: str, problem: str
) -> None:
    found = _only_problem(_jsonl(tmp_path, GOOD, line))
    assert found.startswith("line 2: ")
    assert problem in found


def test_the_first_five_bad_rows_are_listed_and_all_are_counted(tmp_path: Path) -> None:
    bad = [{"question": "q", "response": "", "id": str(i)} for i in range(8)]
    problem = _problem(_jsonl(tmp_path, GOOD, *bad))
    assert "8 of 9 rows cannot be used" in problem
    assert "line 6: `response` is empty" in problem
    assert "line 7" not in problem
    assert "and 3 more" in problem
    assert "--skip-bad" in problem


def test_a_file_of_bad_rows_only_is_refused_even_when_they_may_be_skipped(tmp_path: Path) -> None:
    path = _jsonl(tmp_path, {"Prompt": "q", "answer": "r"})
    problem = _problem(path, skip_bad=True)
    assert "None of 1 rows can be used: line 1: `question` is missing" in problem
    assert "--map Prompt=question" in problem


def test_ids_come_from_content_where_a_row_has_none(tmp_path: Path) -> None:
    row = {"question": "q", "response": "r"}
    path = _jsonl(tmp_path, row, row | {"id": ""}, row | {"response": "s"}, row | {"id": None})
    base = derived_id("q", "r")
    ids = [sample.id for sample in read_samples(path).samples]
    assert ids == [base, f"{base}-2", derived_id("q", "s"), f"{base}-3"]


def test_a_derived_id_gives_way_to_a_row_that_brought_the_same(tmp_path: Path) -> None:
    row = {"question": "q", "response": "r"}
    base = derived_id("q", "r")
    path = _jsonl(tmp_path, GOOD | {"id": base}, row)
    assert [sample.id for sample in read_samples(path).samples] == [base, f"{base}-2"]


def test_whole_numbers_are_ids(tmp_path: Path) -> None:
    assert read_samples(_jsonl(tmp_path, GOOD | {"id": 7})).samples[0].id == "7"


def test_byte_order_mark_and_crlf_are_no_part_of_the_data(tmp_path: Path) -> None:
    row = b'{"question": "q", "response": "r"}'
    for name, content in (
        ("a.jsonl", b"\xef\xbb\xbf" + row + b"\r\n\r\n"),
        ("a.csv", b"\xef\xbb\xbfquestion,response\r\nq,r\r\n\r\n"),
        ("b.csv", b"question,response\rq,r\r"),
    ):
        (sample,) = read_samples(_file(tmp_path, name, content)).samples
        assert (sample.question, sample.response, sample.metadata) == ("q", "r", {}), name


def test_a_line_separator_inside_a_json_text_does_not_end_the_row(tmp_path: Path) -> None:
    row = '{"question": "a\u2028b\u0085c", "response": "r"}'
    (sample,) = read_samples(_jsonl(tmp_path, row)).samples
    assert sample.question == "a\u2028b\u0085c"


def test_bytes_that_are_no_utf8_are_named_by_row(tmp_path: Path) -> None:
    path = _file(
        tmp_path, "a.jsonl", json.dumps(GOOD).encode() + b'\n{"question": "caf\xe9", "x": 1}\n'
    )
    assert _only_problem(path) == "line 2: not UTF-8 at byte 18"
    path = _file(tmp_path, "a.csv", b"question,response\nq,r\nq,caf\xe9\n")
    assert _only_problem(path) == "line 3: field `response` is not UTF-8"


def test_utf16_is_named(tmp_path: Path) -> None:
    for name in ("a.jsonl", "a.csv"):
        path = _file(tmp_path, name, "question,response\nq,r\n".encode("utf-16"))
        assert "UTF-16" in _problem(path)


def test_a_field_of_ten_megabytes_is_read_and_the_csv_limit_is_put_back(tmp_path: Path) -> None:
    limit = csv.field_size_limit()
    large = "word " * 2_000_000
    path = _file(tmp_path, "a.csv", f"question,response\nq,{large}\n")
    assert len(read_samples(path).samples[0].response) == len(large)
    assert csv.field_size_limit() == limit


def test_lines_of_csv_are_those_of_the_file(tmp_path: Path) -> None:
    path = _file(tmp_path, "a.csv", 'question,response\n"q\nq\nq",r\n\nq,\nq,r,s\n')
    loaded = read_samples(path, skip_bad=True)
    assert loaded.problems == (
        "line 6: `response` is empty",
        "line 7: 3 fields, but the header names 2",
    )


def test_a_csv_without_header_is_told_what_its_columns_are(tmp_path: Path) -> None:
    problem = _problem(_file(tmp_path, "a.csv", "Who?,Me,true\nWho else?,You,true\n"))
    assert "no column `question`, `response`" in problem
    assert "Who?, Me, true" in problem
    assert "first row must name the columns" in problem


def test_a_csv_with_other_names_gets_a_mapping_to_try(tmp_path: Path) -> None:
    problem = _problem(_file(tmp_path, "a.csv", "Questions,answer\nq,r\n"))
    assert "`--map Questions=question --map answer=response`" in problem


def test_a_csv_parted_by_semicolons_is_read_as_office_programs_write_it(tmp_path: Path) -> None:
    path = _file(tmp_path, "a.csv", 'question;response\n"Quanto é 3;4 + 1?";4,4\n')
    (sample,) = read_samples(path).samples
    assert (sample.question, sample.response) == ("Quanto é 3;4 + 1?", "4,4")


def test_two_columns_of_one_name_are_refused(tmp_path: Path) -> None:
    problem = _problem(_file(tmp_path, "a.csv", "question,response,response\nq,r,s\n"))
    assert "Two columns are named `response`" in problem


def test_an_open_quote_is_an_error_and_not_one_long_field(tmp_path: Path) -> None:
    problem = _problem(_file(tmp_path, "a.csv", 'question,response\nq,"r\nq,r\n'))
    assert "Not CSV" in problem
    assert "line" in problem


@pytest.mark.parametrize(
    ("name", "content"),
    [("a.jsonl", ""), ("a.csv", ""), ("b.csv", "question,response\n"), ("b.jsonl", "\n \n")],
)
def test_a_file_without_rows_is_refused(tmp_path: Path, name: str, content: str) -> None:
    assert "holds no rows" in _problem(_file(tmp_path, name, content))


def test_a_json_array_is_told_how_to_become_lines(tmp_path: Path) -> None:
    assert "jq -c" in _problem(_file(tmp_path, "a.json", '[\n{"question": "q"}]'))


def test_an_unknown_suffix_and_a_missing_file_are_named(tmp_path: Path) -> None:
    assert ".jsonl" in _problem(tmp_path / "data.xlsx")
    assert "No such file" in _problem(tmp_path / "absent.csv")
    (tmp_path / "folder.csv").mkdir()
    assert "Is a directory" in _problem(tmp_path / "folder.csv")


def test_nothing_of_a_bad_row_is_kept(tmp_path: Path) -> None:
    """The id of a skipped row stays free for the next one."""
    path = _jsonl(tmp_path, GOOD | {"label": "?"}, GOOD)
    loaded: Loaded = read_samples(path, skip_bad=True)
    assert [sample.id for sample in loaded.samples] == ["a"]
