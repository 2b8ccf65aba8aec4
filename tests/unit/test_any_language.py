"""Questions and responses in any language, from the data file to the export."""

from __future__ import annotations

import csv
import io
import json
from pathlib import Path
from typing import Any

import pytest
from api_fakes import direct, scripted_settings

from offline_judge import api
from offline_judge.cli.main import main
from offline_judge.datasets.readers import read_samples
from offline_judge.domain.events import CallFinished
from offline_judge.errors import DataError
from offline_judge.runs.store import RunStore
from offline_judge.settings import Settings

ROWS = [
    {
        "id": "pt",
        "question": "Qual é o maior município do Pará em população?",
        "response": "É Belém, capital do estado, com cerca de 1,3 milhão de habitantes.",
        "reference": "Belém",
    },
    {
        "id": "ja",
        "question": "日本で一番高い山は何ですか。",
        "response": "富士山です。標高は3,776メートルです。",
        "reference": "富士山",
    },
]
NAMES = ("id", "question", "response", "reference")


@pytest.fixture
def settings(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Settings:
    monkeypatch.setenv("XDG_RUNTIME_DIR", str(tmp_path))
    monkeypatch.setenv("OFFLINE_JUDGE_DATA_DIR", str(tmp_path / "data"))
    monkeypatch.chdir(tmp_path)
    return scripted_settings(tmp_path)


def _table(delimiter: str) -> str:
    text = io.StringIO()
    writer = csv.DictWriter(text, NAMES, delimiter=delimiter)
    writer.writeheader()
    writer.writerows(ROWS)
    return text.getvalue()


WRITTEN = {
    "utf8.jsonl": "".join(json.dumps(row, ensure_ascii=False) + "\n" for row in ROWS).encode(),
    "escaped.jsonl": "".join(json.dumps(row) + "\n" for row in ROWS).encode(),
    "plain.csv": _table(",").encode(),
    "excel.csv": _table(",").encode("utf-8-sig"),
    "european.csv": _table(";").encode("utf-8-sig"),
    "tabs.tsv": _table("\t").encode(),
}


@pytest.mark.parametrize("name", sorted(WRITTEN))
def test_every_way_to_write_them_reads_alike(tmp_path: Path, name: str) -> None:
    path = tmp_path / name
    path.write_bytes(WRITTEN[name])
    found = [
        {
            "id": sample.id,
            "question": sample.question,
            "response": sample.response,
            "reference": "|".join(sample.reference),
        }
        for sample in read_samples(path).samples
    ]
    assert found == ROWS


def test_a_table_in_an_old_encoding_is_refused_with_the_way_out(tmp_path: Path) -> None:
    path = tmp_path / "velho.csv"
    path.write_bytes("id,question,response\n1,Onde fica São Tomé?,Na África\n".encode("cp1252"))
    with pytest.raises(DataError) as caught:
        read_samples(path)
    message = str(caught.value)
    assert "line 2: field `question` is not UTF-8" in message
    assert "iconv -f WINDOWS-1252 -t UTF-8 velho.csv" in message


def test_a_header_in_an_old_encoding_is_refused_too(tmp_path: Path) -> None:
    path = tmp_path / "velho.csv"
    path.write_bytes("question,response,observação\nQ,R,x\n".encode("cp1252"))
    with pytest.raises(DataError, match="The header is not UTF-8"):
        read_samples(path)


def test_shift_jis_is_no_utf8_either(tmp_path: Path) -> None:
    path = tmp_path / "furui.csv"
    path.write_bytes(_table(",").replace("ç", "").encode("cp932", "ignore"))
    with pytest.raises(DataError, match="not UTF-8"):
        read_samples(path)


def _data(folder: Path) -> Path:
    path = folder / "rows.csv"
    path.write_bytes(WRITTEN["european.csv"])
    return path


def test_the_judge_reads_them_as_they_are(tmp_path: Path, settings: Settings) -> None:
    api.run(direct(_data(tmp_path)), settings)
    events = RunStore(settings.runs_path).open("last").events()
    calls: list[Any] = [e for e in events if isinstance(e, CallFinished) and e.masses]
    shown = {call.sample_id: call.values for call in calls}
    for row in ROWS:
        assert shown[row["id"]]["question"] == row["question"]
        assert shown[row["id"]]["response"]["text"] == row["response"]


def test_show_and_export_give_them_back(
    tmp_path: Path, settings: Settings, capsys: pytest.CaptureFixture[str]
) -> None:
    api.run(direct(_data(tmp_path)), settings)

    def program(*arguments: str) -> str:
        with pytest.raises(SystemExit) as end:
            main(arguments)
        assert end.value.code == 0
        return capsys.readouterr().out

    assert ROWS[1]["response"] in program("show", "last", "ja")
    lines = [json.loads(line) for line in program("runs", "export", "last").splitlines()]
    assert {line["id"]: line["response"] for line in lines} == {
        row["id"]: row["response"] for row in ROWS
    }
    program("runs", "export", "last", "--format", "csv", "--out", "out.csv")
    with (tmp_path / "out.csv").open(encoding="utf-8-sig", newline="") as file:
        exported = {row["id"]: row["question"] for row in csv.DictReader(file)}
    assert exported == {row["id"]: row["question"] for row in ROWS}


def test_an_exported_table_can_be_judged_again(tmp_path: Path, settings: Settings) -> None:
    api.run(direct(_data(tmp_path)), settings)
    with pytest.raises(SystemExit):
        main(["runs", "export", "last", "--format", "csv", "--out", "out.csv", "--quiet"])
    again = read_samples(tmp_path / "out.csv").samples
    assert {sample.id: sample.response for sample in again} == {
        row["id"]: row["response"] for row in ROWS
    }
