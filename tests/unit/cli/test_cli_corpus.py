"""`corpus`: what is passed on, what is told on which stream, and JSON."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from cli_fakes import HOSTILE, CommandLine, answering

from offline_judge.domain.corpus import BuildListener, CorpusState
from offline_judge.errors import MissingError, UsageError
from offline_judge.settings import Settings

STATE = CorpusState(
    "mine",
    documents=1,
    passages=1200,
    embedded=1200,
    complete=True,
    embedder="tiny:0123456789ab",
    size=98_400_000,
    paths=("/docs/a", "/docs/b.md"),
)


@pytest.fixture
def cli(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> CommandLine:
    return CommandLine(monkeypatch, capsys)


class Build:
    """Stands in for `api.corpus_build`."""

    def __init__(self, state: CorpusState = STATE) -> None:
        self.given: list[Any] = []
        self._state = state

    def __call__(
        self, name: str, paths: Any, settings: Settings, listener: BuildListener, **more: Any
    ) -> CorpusState:
        self.given = [name, paths, settings.embedder, more]
        listener.indexed(1, 1200)
        listener.embedded(200, 1000)
        listener.warn(f"something {HOSTILE}")
        return self._state


def test_a_corpus_is_built_of_files_and_its_progress_told(cli: CommandLine) -> None:
    cli.api.corpus_build = build = Build()

    cli("corpus", "build", "mine", "docs.jsonl", "notes", "--embedder", "tiny")

    paths = (Path("docs.jsonl"), Path("notes"))
    assert build.given == ["mine", paths, "tiny", {"vectors": True, "skip_bad": False}]
    assert cli.out == "mine  1 document, 1,200 passages, searched by words and vectors\n"
    assert "1,200 passages indexed" in cli.err
    assert "Embedding 800 of 1,000 texts" in cli.err
    assert "offline-judge corpus embed mine" in cli.err
    assert "--search corpus:mine" in cli.err
    assert "\x1b[2J" not in cli.err


def test_options_of_a_build_are_passed_on(cli: CommandLine) -> None:
    cli.api.corpus_build = build = Build(replace(STATE, complete=False))

    cli("corpus", "build", "mine", "--no-vectors", "--skip-bad")

    assert build.given[1] is None
    assert build.given[3] == {"vectors": False, "skip_bad": True}
    assert cli.out.endswith("searched by words\n")


def test_what_was_left_out_is_told_to_a_limit(cli: CommandLine) -> None:
    left_out = tuple(f"{n}.pdf: it holds no text" for n in range(7))
    cli.api.corpus_build = Build(replace(STATE, left_out=left_out))

    cli("corpus", "build", "mine", "docs")

    assert cli.err.count("it holds no text") == 5
    assert "and 2 more" in cli.err


def test_a_built_corpus_as_json(cli: CommandLine) -> None:
    cli.api.corpus_build = Build(replace(STATE, left_out=("a.pdf: no text",)))

    written = json.loads(cli("corpus", "build", "mine", "docs", "--json").out)

    assert written["passages"] == 1200
    assert written["complete"] is True
    assert written["left_out"] == ["a.pdf: no text"]


def test_a_corpus_is_embedded(cli: CommandLine) -> None:
    given: list[Any] = []

    def embed(name: str, settings: Settings, listener: BuildListener) -> CorpusState:
        given.append(name)
        listener.embedded(1200, 1200)
        return STATE

    cli.api.corpus_embed = embed

    assert cli("corpus", "embed", "mine").out.startswith("mine  1 document")
    assert given == ["mine"]
    assert "Embedding" not in cli.err


def test_corpora_are_listed_with_their_vectors(cli: CommandLine) -> None:
    begun = replace(STATE, name="begun", embedded=300, complete=False, paths=())
    broken = CorpusState("broken", problem=f"The corpus `broken` is damaged {HOSTILE}")
    cli.api.corpus_list = answering([STATE, begun, broken])

    cli("corpus", "list")

    rows = [line.split() for line in cli.out.splitlines()]
    assert rows[0] == ["name", "documents", "passages", "vectors", "embedder", "size", "source"]
    assert rows[1][:4] == ["mine", "1", "1,200", "1,200/1,200"]
    assert rows[1][4:7] == ["tiny:0123456789ab", "98.4", "MB"]
    assert rows[2][3] == "300/1,200"
    assert rows[2][-1] == "shipped"
    assert rows[3][-1] == "damaged"
    assert "is damaged" in cli.err
    assert "\x1b[2J" not in cli.err


def test_no_corpora_are_an_empty_list_and_a_hint(cli: CommandLine) -> None:
    cli.api.corpus_list = answering([])

    assert cli("corpus", "list", "--json").out == ""
    assert "corpus build NAME" in cli("corpus", "list").err


@pytest.mark.parametrize("returns", [True, False])
def test_a_removed_corpus_says_whether_it_comes_back(cli: CommandLine, returns: bool) -> None:
    cli.api.corpus_rm = answering(returns)

    cli("corpus", "rm", "factbook")

    assert cli.out == "factbook  removed\n"
    assert ("built again" in cli.err) is returns
    assert json.loads(cli("corpus", "rm", "factbook", "--json").out) == {
        "name": "factbook",
        "rebuilt_on_next_use": returns,
    }


@pytest.mark.parametrize(
    ("error", "code"),
    [(UsageError("Process 7 is building the corpus `a`"), 2), (MissingError("no corpus `a`"), 3)],
)
def test_a_corpus_that_cannot_be_removed_is_told(
    cli: CommandLine, error: Exception, code: int
) -> None:
    cli.api.corpus_rm = answering(error)

    assert cli("corpus", "rm", "a").code == code
    assert str(error) in cli.err
