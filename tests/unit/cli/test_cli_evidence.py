"""`evidence` and the flags of runs that use it, over the real API with the scripted judge."""

from __future__ import annotations

import importlib.util
import json
import os
import shutil
from contextlib import closing
from datetime import datetime, timedelta
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from offline_judge.cli.main import main
from offline_judge.domain.ages import ago, earlier
from offline_judge.domain.evidence import Passage, SearchHit
from offline_judge.retrieval.embedding.hashing import HashingEmbedder
from offline_judge.retrieval.evidence.lock import IndexLock
from offline_judge.retrieval.evidence.model import Question
from offline_judge.retrieval.evidence.record import Record
from offline_judge.retrieval.evidence.vectors import Space, VectorTable, embed_missing

HOSTILE = "\x1b[2J[red]日本\u202e"
LIMA = f"Lima is the capital of Peru. {HOSTILE}"
TEXTS = {"peru#0": (LIMA, "2024-05-01"), "chad#0": ("N'Djamena is the capital of Chad.", "")}


class Program:
    def __init__(self, folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
        self.folder = folder
        self._capsys = capsys
        self.code: int | str | None = None
        self.out = self.err = ""

    def __call__(self, *arguments: str) -> Program:
        with pytest.raises(SystemExit) as end:
            main(arguments)
        self.code = end.value.code
        self.out, self.err = self._capsys.readouterr()
        return self

    def json(self, *arguments: str) -> Any:
        self(*arguments, "--json")
        assert self.code == 0, self.err
        return json.loads(self.out, parse_constant=pytest.fail)

    @property
    def evidence(self) -> Path:
        return self.folder / "data" / "evidence"


@pytest.fixture
def program(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> Program:
    monkeypatch.chdir(tmp_path)
    values = {"DATA_DIR": tmp_path / "data", "CACHE_DIR": tmp_path / "cache"}
    names = {"JUDGE": "scripted", "EMBEDDER": "hashing"}
    for name, value in {**values, **names}.items():
        monkeypatch.setenv(f"OFFLINE_JUDGE_{name}", str(value))
    monkeypatch.setenv("XDG_RUNTIME_DIR", str(tmp_path))
    return Program(tmp_path, capsys)


@pytest.fixture
def filled(program: Program) -> Program:
    """A record of two passages that one query found, the vectors with them."""
    with closing(Record(program.evidence)) as record:
        hits = [
            SearchHit(rank=n, score=1.0, passage=_passage(name, *TEXTS[name]))
            for n, name in enumerate(TEXTS, 1)
        ]
        record.keep(Question("corpus", {"name": "world"}, f"capitals {HOSTILE}"), hits, limit=2)
        embedder = HashingEmbedder()
        embed_missing(VectorTable(record, Space(embedder.id, embedder.dimension)), embedder)
    return program


def _passage(id: str, text: str, date: str) -> Passage:
    return Passage(
        id=id,
        document_id=id[:-2],
        title=f"Title of {id}",
        text=text,
        end=len(text),
        source="corpus:world",
        url="https://example.org/",
        date=date,
    )


def _lines(out: str) -> dict[str, str]:
    """Names and values of aligned pairs."""
    pairs = (line.split("  ", 1) for line in out.splitlines() if not line.startswith(" "))
    return {name.strip(): value.strip() for name, value in pairs}


def test_stats_count_what_is_there(filled: Program) -> None:
    told = _lines(filled("evidence", "stats").out)
    assert filled.code == 0
    assert told["queries"].startswith("1 with 2 results, 20")
    assert (told["documents"], told["passages"]) == ("2", "2")
    assert told["sources"] == "corpus:world (2)"
    assert told["vectors"] == f"{HashingEmbedder().id}: 2 of 2 passages"
    assert told["lock"] == "free"
    state = filled.json("evidence", "stats")
    assert (state["passages"], state["results"], state["holder"]) == (2, 2, 0)
    assert state["vectors"][0]["vectors"] == 2


def test_what_lacks_vectors_is_told_and_an_embedder_of_before_is_not_waited_for(
    filled: Program,
) -> None:
    hint = "The next run embeds what has no vector yet."
    with closing(Record(filled.evidence)) as record:
        old = VectorTable(record, Space("an-embedder-of-before", 2))
        old.store([1], np.eye(1, 2, dtype=np.float32))
        assert hint not in filled("evidence", "stats").err
        with record.database.writing() as connection:
            connection.execute("DELETE FROM vectors")
    assert hint in filled("evidence", "stats").err


def test_nothing_recorded_is_an_answer_and_makes_nothing(program: Program) -> None:
    assert program.json("evidence", "stats")["passages"] == 0
    assert program("evidence", "stats").code == 0
    assert program("evidence", "search", "Peru").code == 0
    assert (program.out, program.err.strip()) == ("", "Nothing is recorded that fits.")
    assert program("evidence", "search", "Peru", "--source", "corpus:any").code == 0
    assert program("evidence", "prune", "--older-than", "1").code == 0
    assert program("evidence", "show", "1").code == 2
    assert not program.evidence.exists()


def test_a_search_tells_numbers_places_and_ages(filled: Program) -> None:
    filled("evidence", "search", "capital of Peru")
    first = filled.out.splitlines()[1]
    assert first.split()[0] == "1"
    assert "(corpus:world of 2024-05-01, found just now)" in first
    assert "\x1b[2J" not in filled.out
    assert "offline-judge evidence show 1" in filled.err
    filled("evidence", "search", "capital of Peru", "--json", "--limit", "1")
    (row,) = map(json.loads, filled.out.splitlines())
    assert (row["number"], row["id"], row["text"]) == (1, "peru#0", LIMA)


@pytest.mark.parametrize(
    ("flags", "found"),
    [
        (["--from", "2024"], ["peru#0"]),
        (["--to", "2024-05"], ["peru#0"]),
        (["--from", "2024-05-02"], []),
        (["--to", "2023"], []),
        (["--source", "corpus:world"], ["peru#0", "chad#0"]),
    ],
)
def test_a_search_keeps_to_dates_and_sources(
    filled: Program, flags: list[str], found: list[str]
) -> None:
    filled("evidence", "search", "the capital of Peru", *flags, "--json")
    assert [json.loads(line)["id"] for line in filled.out.splitlines()] == found


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["search", "?! ."], "no word"),
        (["search", "x", "--from", "2024-02-30"], "is no date"),
        (["search", "x", "--to", "yesterday"], "is no date"),
        (["search", "x", "--from", "2025", "--to", "2024"], "No day is from"),
        (["search", "x", "--source", "corpus:worl"], "Did you mean `corpus:world`"),
        (["search", "x", "--limit", "0"], "x>=1"),
        (["show", "77"], "no passage `77`"),
        (["show", "no#1"], "no passage `no#1`"),
        (["prune"], "Without a limit everything would go"),
        (["prune", "--source", "corpus:worl"], "Did you mean `corpus:world`"),
        (["prune", "--older-than", "-1"], "x>=0"),
        (["serch"], "Did you mean `search`"),
    ],
)
def test_what_cannot_be_is_refused_in_words(
    filled: Program, arguments: list[str], message: str
) -> None:
    assert filled("evidence", *arguments).code == 2
    assert message in filled.err
    assert filled.out == ""


@pytest.mark.parametrize("id", ["1", "peru#0"])
def test_a_passage_is_shown_with_where_and_for_what_it_was_found(filled: Program, id: str) -> None:
    told = _lines(filled("evidence", "show", id).out)
    assert told["passage"] == "1"
    assert "document peru of 2024-05-01, characters 0-" in told["found in"]
    assert told["found for"].startswith("“capitals ")
    assert told["found for"].endswith("(corpus:world), rank 1, just now")
    assert "\x1b" not in filled.out
    shown = filled.json("evidence", "show", id)
    assert shown["text"] == LIMA
    assert shown["queries"][0]["rank"] == 1


def test_what_would_go_is_told_and_kept_then_goes(filled: Program) -> None:
    limits = ("evidence", "prune", "--source", "corpus:world")
    told = _lines(filled(*limits, "--dry-run").out)
    gone = "2 passages with 2 vectors, 2 documents, 1 recorded answer"
    assert told == {"would go": gone, "left": "0 passages"}
    assert filled.json("evidence", "stats")["passages"] == 2
    assert _lines(filled(*limits).out)["deleted"] == gone
    assert filled.json("evidence", "stats")["passages"] == 0


def test_an_index_is_built_from_recorded_vectors_and_follows_a_prune(
    filled: Program, monkeypatch: pytest.MonkeyPatch
) -> None:
    pytest.importorskip("chromadb")

    def embed(*_: Any, **__: Any) -> Any:
        raise AssertionError("nothing is embedded again")

    monkeypatch.setattr(HashingEmbedder, "embed", embed)
    (space,) = filled.json("evidence", "rebuild")["vectors"]
    assert (space["vectors"], space["indexed"], space["problem"]) == (2, 2, "")
    # A state without its data is what a crash may leave; a second build mends it.
    for data in (filled.evidence / "chroma").glob("*/data-*"):
        shutil.rmtree(data)
    (space,) = filled.json("evidence", "stats")["vectors"]
    assert (space["vectors"], space["indexed"]) == (2, 0)
    assert "its folder is gone" in space["problem"]
    assert filled("evidence", "rebuild").out.split("  ", 1)[1].startswith("2 of 2 vectors")
    filled("evidence", "prune", "--older-than", "0")
    assert filled.err == ""
    (state,) = (filled.evidence / "chroma").glob("*/state.json")
    assert json.loads(state.read_text())["deletions"] == 1


def test_an_index_that_another_process_holds_is_not_rebuilt(filled: Program) -> None:
    pytest.importorskip("chromadb")
    other = IndexLock(filled.evidence / "chroma" / "lock")
    assert other.acquire()
    try:
        assert filled.json("evidence", "stats")["holder"] == os.getpid()
        assert filled("evidence", "rebuild").code == 2
        assert f"Process {os.getpid()} has the vector index open" in filled.err
    finally:
        other.release()
    assert filled.json("evidence", "stats")["holder"] == 0


def test_without_the_extra_search_goes_on_and_rebuild_says_what_to_install(
    filled: Program, monkeypatch: pytest.MonkeyPatch
) -> None:
    find_spec = importlib.util.find_spec

    def lacking(name: str, *more: Any) -> Any:
        return None if name == "chromadb" else find_spec(name, *more)

    monkeypatch.setattr(importlib.util, "find_spec", lacking)
    assert filled("evidence", "rebuild").code == 3
    assert 'pip install "offline-llm-judge[evidence]"' in filled.err
    assert "no Chroma" in _lines(filled("evidence", "stats").out)["index"]
    assert filled("evidence", "search", "capital of Peru").code == 0
    assert filled.out
    assert filled("evidence", "prune", "--older-than", "0").code == 0


def test_a_search_without_weights_goes_by_words_and_says_so(
    filled: Program, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("OFFLINE_JUDGE_EMBEDDER", "all-minilm-l6-v2-int8")
    monkeypatch.setenv("OFFLINE_JUDGE_MODELS_DIR", str(filled.folder / "none"))
    filled("evidence", "search", "Peru")
    assert filled.code == 0
    assert filled.out.splitlines()[1].split()[0] == "1"
    assert "by words only" in filled.err
    assert "models pull all-minilm-l6-v2-int8" in filled.err
    filled("evidence", "stats")
    assert "models pull all-minilm-l6-v2-int8" in filled.err


def test_a_damaged_record_is_named_with_its_remedy(program: Program) -> None:
    program.evidence.mkdir(parents=True)
    (program.evidence / "record.sqlite").write_bytes(b"nothing" * 999)
    for arguments in (["stats"], ["search", "x"], ["show", "1"], ["prune", "--older-than", "1"]):
        assert program("evidence", *arguments).code == 1
        assert "damaged" in program.err
        assert "mv " in program.err


def test_flags_reach_the_settings_of_a_run(filled: Program) -> None:
    flags = ("--search", "memory", "--offline", "--locale", "pt-BR", "--max-age", "9")
    asked = filled.json("ask", "Capital of Peru?", "Lima", *flags)
    manifest = json.loads((filled.folder / "data/runs" / asked["run"] / "run.json").read_text())
    recorded = {name: value["value"] for name, value in manifest["settings"].items()}
    assert recorded["offline"] is True
    assert (recorded["locale"], recorded["max_age_days"]) == ("pt-BR", 9)
    assert manifest["search"]["provider"] == "memory"
    for command in (["run"], ["ask"], ["study", "sage"]):
        helped = filled(*command, "--help").out
        assert all(flag in helped for flag in ("--offline", "--locale", "--max-age", "`memory`"))


def test_a_cached_hit_is_shown_with_its_age(
    filled: Program, monkeypatch: pytest.MonkeyPatch
) -> None:
    with closing(Record(filled.evidence)) as record, record.database.writing() as connection:
        then = (datetime.now().astimezone() - timedelta(days=3, hours=1)).isoformat()
        connection.execute("UPDATE places SET found_at = ?", (then,))
    monkeypatch.setenv("OFFLINE_JUDGE_MEMORY_SIMILARITY", "0.000001")
    question = "Peru, Chad: capital held named found city?"
    out = filled("ask", question, "Lima", "--search", "memory", "-o", "refine=false").out
    assert "(found for another query, 3 days earlier)" in out
    assert "evidence: cached" in out
    assert "found by earlier searches for other queries" in out
    shown = filled("show", "last", filled.json("runs", "export", "last")["id"]).out
    assert "3 days earlier" in shown


def test_a_search_answered_from_the_record_says_so(program: Program) -> None:
    (program.folder / "d.jsonl").write_text('{"id": "p", "title": "Peru", "text": "Lima, Peru."}\n')
    program("corpus", "build", "mine", "d.jsonl", "--no-vectors")
    ask = ("ask", "Capital of Peru?", "Lima", "--search", "corpus:mine", "-o", "refine=false")
    first, again = (
        next(line for line in program(*ask).out.splitlines() if "search for" in line)
        for _ in range(2)
    )
    assert again == f"{first} (from the record, found moments earlier)"


def test_ages_are_said_as_people_say_them() -> None:
    when = "2026-03-10T12:00:00Z"
    now = datetime.fromisoformat(when)
    ages = {
        "2026-03-10T11:59:30Z": "just now",
        "2026-03-10T11:59:00Z": "1 minute ago",
        "2026-03-10T10:00:01Z": "1 hour ago",
        "2026-03-09T12:00:01Z": "23 hours ago",
        "2026-03-09T12:00:00Z": "1 day ago",
        "2023-03-10T12:00:00Z": "1,096 days ago",
        "2026-03-11T12:00:00Z": "just now",
        "": "",
        "yesterday": "",
    }
    assert {found: ago(found, now) for found in ages} == ages
    assert earlier("2026-03-07T12:00:00", when) == "3 days earlier"
    assert earlier(when, when) == "moments earlier"
    assert earlier("", when) == earlier(when, "") == ""
