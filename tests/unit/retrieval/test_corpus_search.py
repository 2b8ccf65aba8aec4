"""Corpus search: what is found, in which order, and what damage looks like."""

from __future__ import annotations

import json
import shutil
import threading
import unicodedata
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from offline_judge.errors import MissingError, SearchError
from offline_judge.retrieval.corpus.build import Source, build_corpus
from offline_judge.retrieval.corpus.documents import Document
from offline_judge.retrieval.corpus.store import remove_corpus
from offline_judge.retrieval.search.corpus import PROVIDER, CorpusSearch

TOKYO = "\u6771\u4eac\u306f\u65e5\u672c\u306e\u9996\u90fd\u3067\u3042\u308b\u3002"
KYOTO = "\u4eac\u90fd\u306f\u53e4\u3044\u90fd\u5e02\u3067\u3001\u5bfa\u304c\u591a\u3044\u3002"
SEOUL = "\uc11c\uc6b8\uc740 \ub300\ud55c\ubbfc\uad6d\uc758 \uc218\ub3c4\uc774\ub2e4."
BANGKOK = (
    "\u0e01\u0e23\u0e38\u0e07\u0e40\u0e17\u0e1e\u0e40\u0e1b\u0e47\u0e19"
    "\u0e40\u0e21\u0e37\u0e2d\u0e07\u0e2b\u0e25\u0e27\u0e07"
)
DOCUMENTS = [
    Document("otter", "Otter", "Otters hold hands while sleeping. They eat fish."),
    Document("fish", "Herring", "The herring is a fish that otters eat. Otters like herrings."),
    Document("sao", "S\u00e3o Tom\u00e9", "An island in the Gulf of Guinea."),
    Document("ja", "\u6771\u4eac", TOKYO),
    Document("ja2", "\u4eac\u90fd", KYOTO),
    Document("ko", "\uc11c\uc6b8", SEOUL),
    Document("th", "\u0e01\u0e23\u0e38\u0e07\u0e40\u0e17\u0e1e", BANGKOK),
    Document(
        "ru",
        "\u041c\u043e\u0441\u043a\u0432\u0430",
        "\u0421\u0442\u043e\u043b\u0438\u0446\u0430 \u0420\u043e\u0441\u0441\u0438\u0438.",
    ),
    Document("hi", "\u0939\u093f\u0928\u094d\u0926\u0940", "\u092d\u093e\u0937\u093e"),
    Document("hidden", "Badger", "It digs.", keywords=("Brock",)),
]


@pytest.fixture(scope="module")
def corpora(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("corpora")
    build_corpus("c", DOCUMENTS, path)
    # Twenty alike in title and text: only their ids tell them apart.
    build_corpus("ties", (Document(f"d{i:02}", "T", "same words") for i in range(20)), path)
    return path


@pytest.fixture
def copy(corpora: Path, tmp_path: Path) -> Path:
    shutil.copytree(corpora / "c", tmp_path / "c")
    return tmp_path


async def _ids(corpora: Path, query: str, limit: int = 3, offset: int = 0) -> list[str]:
    name = "ties" if query == "same words" else "c"
    hits = await CorpusSearch(name, corpora).search(query, limit=limit, offset=offset)
    assert [hit.rank for hit in hits] == list(range(offset + 1, offset + 1 + len(hits)))
    return [hit.passage.document_id for hit in hits]


async def test_a_hit_holds_the_passage_as_it_was_cut(corpora: Path) -> None:
    (hit,) = await CorpusSearch("c", corpora).search("hands", limit=3)
    assert hit.passage.id == "otter#0"
    assert hit.passage.title == "Otter"
    assert DOCUMENTS[0].text[hit.passage.start : hit.passage.end] == hit.passage.text
    assert hit.passage.source == "corpus:c"
    assert hit.score > 0


@pytest.mark.parametrize(
    ("query", "first"),
    [
        ("What does an otter do?", "otter"),
        ("sleep", "otter"),  # stem
        ("HERRINGS", "fish"),
        ("Sao Tome", "sao"),
        (unicodedata.normalize("NFD", "S\u00e3o Tom\u00e9"), "sao"),
        ("\uff26\uff29\uff33\uff28 herring", "fish"),  # full-width letters
        ("\u65e5\u672c\u306e\u9996\u90fd", "ja"),
        ("\u4eac\u90fd", "ja2"),
        ("\u5bfa", ""),
        ("\ub300\ud55c\ubbfc\uad6d", "ko"),
        ("\u0e40\u0e21\u0e37\u0e2d\u0e07\u0e2b\u0e25\u0e27\u0e07", "th"),
        ("\u0441\u0442\u043e\u043b\u0438\u0446\u0430", "ru"),
        ("\u0939\u093f\u0928\u094d\u0926\u0940 \u092d\u093e\u0937\u093e", "hi"),
        ("Brock", "hidden"),
    ],
)
async def test_what_is_found_first(corpora: Path, query: str, first: str) -> None:
    found = await _ids(corpora, query)
    assert found[:1] == ([first] if first else [])


async def test_a_word_in_the_title_weighs_more(corpora: Path) -> None:
    assert await _ids(corpora, "otters") == ["otter", "fish"]


@pytest.mark.parametrize(
    "query", ["", "  \n", "?!", '"', "((", ":", "\u3002", "\U0001f600", "\ud83d", "\x00"]
)
async def test_a_query_without_a_word_finds_nothing(corpora: Path, query: str) -> None:
    assert await _ids(corpora, query) == []


@pytest.mark.parametrize(
    "query",
    ['otter"', "otter AND (", "title:otter", "otter*", "-otter", "[otter TO", "otter^", "\\otter"],
)
async def test_query_syntax_is_only_punctuation(corpora: Path, query: str) -> None:
    assert (await _ids(corpora, query))[0] == "otter"


async def test_a_query_of_function_words_alone_is_still_searched(corpora: Path) -> None:
    assert "fish" in await _ids(corpora, "is that the")


async def test_function_words_do_not_choose_among_passages(corpora: Path) -> None:
    assert await _ids(corpora, "what is that in the of a badger") == ["hidden"]


async def test_an_endless_query_is_cut_and_not_refused(corpora: Path) -> None:
    query = "otter " + " ".join(f"word{i}" for i in range(50_000))
    assert await _ids(corpora, query) == ["otter", "fish"]


@settings(
    max_examples=60, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture]
)
@given(query=st.text(st.characters(), max_size=40))
async def test_no_query_raises(corpora: Path, query: str) -> None:
    await _ids(corpora, query)


async def test_equal_scores_are_ordered_by_id_whatever_the_limit(corpora: Path) -> None:
    every = [f"d{i:02}" for i in range(20)]
    assert await _ids(corpora, "same words", limit=50) == every
    for offset in range(0, 20, 3):
        found = await _ids(corpora, "same words", limit=3, offset=offset)
        assert found == every[offset : offset + 3]


async def test_ranks_behind_the_last_hit_are_empty(corpora: Path) -> None:
    assert await _ids(corpora, "same words", limit=3, offset=20) == []
    assert await _ids(corpora, "otters", limit=1, offset=1) == ["fish"]


@pytest.mark.parametrize(("limit", "offset"), [(0, 0), (-1, 0), (3, -1)])
async def test_no_ranks_is_a_mistake_of_the_caller(corpora: Path, limit: int, offset: int) -> None:
    with pytest.raises(ValueError, match="ask for no ranks"):
        await CorpusSearch("c", corpora).search("otter", limit=limit, offset=offset)


async def test_the_search_leaves_the_event_loop_alone(
    corpora: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    threads: list[int] = []
    original = CorpusSearch._search

    def noted(self: CorpusSearch, query: str, limit: int, offset: int) -> object:
        threads.append(threading.get_ident())
        return original(self, query, limit, offset)

    monkeypatch.setattr(CorpusSearch, "_search", noted)
    await CorpusSearch("c", corpora).search("otter", limit=1)
    assert threads
    assert threading.get_ident() not in threads


def test_the_identity_is_that_of_the_content(corpora: Path, tmp_path: Path) -> None:
    manifest = build_corpus("c", DOCUMENTS, tmp_path, source=Source("elsewhere"))
    identity = CorpusSearch("c", corpora).identity()
    assert identity == {
        "provider": "corpus",
        "name": "c",
        "content": manifest.content,
        "passages": len(DOCUMENTS),
        "mode": "words",
    }
    assert PROVIDER.name == "corpus"


async def test_a_missing_corpus_names_those_there_are_and_the_command(corpora: Path) -> None:
    search = CorpusSearch("nowhere", corpora)
    with pytest.raises(MissingError, match=r"no corpus `nowhere` \(here: c, ties\)") as caught:
        await search.search("otter", limit=1)
    assert caught.value.exit_code == 3
    assert "offline-judge corpus build nowhere FILE" in caught.value.remedy
    with pytest.raises(MissingError):
        search.identity()


def _files(corpora: Path) -> list[str]:
    index = next((corpora / "c").glob("index-*"))
    return sorted(path.name for path in index.iterdir() if not path.name.endswith(".lock"))


async def _is_damaged(corpora: Path) -> None:
    with pytest.raises(SearchError, match="The corpus `c` is damaged"):
        await CorpusSearch("c", corpora).search("otter", limit=1)


async def test_any_file_of_the_index_cut_short_changed_or_gone_is_damage(copy: Path) -> None:
    index = next((copy / "c").glob("index-*"))
    files = _files(copy)
    assert len(files) > 5
    for name in files:
        whole = (index / name).read_bytes()
        (index / name).write_bytes(whole[:-1])
        await _is_damaged(copy)
        (index / name).write_bytes(bytes([whole[0] ^ 1]) + whole[1:])
        await _is_damaged(copy)
        (index / name).unlink()
        await _is_damaged(copy)
        (index / name).write_bytes(whole)
    assert await _ids(copy, "otters") == ["otter", "fish"]


@pytest.mark.parametrize("content", [None, b"", b"{}", b"\xff", b'{"name": "c"'])
async def test_a_manifest_that_is_gone_or_unreadable_is_damage(
    copy: Path, content: bytes | None
) -> None:
    path = copy / "c" / "manifest.json"
    path.unlink()
    if content is not None:
        path.write_bytes(content)
    await _is_damaged(copy)


async def test_a_corpus_of_an_earlier_version_says_so(copy: Path) -> None:
    path = copy / "c" / "manifest.json"
    manifest = json.loads(path.read_text())
    path.write_text(json.dumps(manifest | {"builder": 1, "index_schema": 1}))
    with pytest.raises(SearchError, match="another version of this program built it"):
        await CorpusSearch("c", copy).search("otter", limit=1)


async def test_damage_is_noticed_by_a_later_search_when_the_first_was_refused(copy: Path) -> None:
    index = next((copy / "c").glob("index-*"))
    store = next(index.glob("*.store"))
    whole = store.read_bytes()
    store.write_bytes(whole[:-1])
    search = CorpusSearch("c", copy)
    for _ in range(2):
        with pytest.raises(SearchError):
            await search.search("otter", limit=1)
    store.write_bytes(whole)
    assert len(await search.search("otter", limit=1)) == 1


async def test_an_open_corpus_stays_what_it_was_when_rebuilt_or_removed(copy: Path) -> None:
    search = CorpusSearch("c", copy)
    before = await search.search("otters", limit=3)
    identity = search.identity()
    build_corpus("c", [Document("new", "Otter", "Otters changed.")], copy)
    assert await search.search("otters", limit=3) == before
    remove_corpus("c", copy)
    assert await search.search("otters", limit=3) == before
    assert search.identity() == identity


async def test_a_closed_search_opens_again(copy: Path) -> None:
    search = CorpusSearch("c", copy)
    await search.search("otters", limit=3)
    build_corpus("c", [Document("new", "Otter", "Otters changed.")], copy)
    search.close()
    search.close()
    assert [hit.passage.document_id for hit in await search.search("otters", limit=3)] == ["new"]


async def test_a_rebuild_gives_the_same_order_and_scores(corpora: Path, tmp_path: Path) -> None:
    build_corpus("c", DOCUMENTS, tmp_path)
    for query in ("otters eat fish", "\u4eac\u90fd", "island hands digs"):
        found = await CorpusSearch("c", tmp_path).search(query, limit=9)
        assert found == await CorpusSearch("c", corpora).search(query, limit=9)
