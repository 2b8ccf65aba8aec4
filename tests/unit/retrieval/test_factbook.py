"""The default corpus: its documents, and what natural questions find in it."""

from __future__ import annotations

import re
import time

import pytest

from offline_judge.domain.evidence import SearchHit
from offline_judge.retrieval.corpus.build import build_corpus
from offline_judge.retrieval.corpus.documents import Document
from offline_judge.retrieval.corpus.factbook import (
    FACTBOOK,
    factbook_documents,
    factbook_hash,
    territory_documents,
)
from offline_judge.retrieval.corpus.passages import count_words
from offline_judge.retrieval.search.corpus import CorpusSearch

LAND = {
    "Introduction": {"Background": {"text": "<p>Founded <b>late</b>.</p><p>Grew.<br><br>Fell</p>"}},
    "Geography": {
        "Map references": {"text": "Nowhere"},
        "Climate": {"text": "mild&nbsp;&amp; dry"},
        "Land use": {
            "agricultural land": {"text": "10%"},
            "agricultural land: arable land": {"text": "arable land: 4%"},
        },
    },
    "Environment": {"Climate": {"text": "mild & dry"}, "Issues": {"text": "noise"}},
    "Government": {
        "Country name": {
            "conventional long form": {"text": "none"},
            "conventional short form": {"text": "C&ocirc;te"},
            "former": {"text": "Old Coast"},
            "note": "<strong>note:</strong> a note",
        }
    },
    "Economy": {
        "Real GDP": {"Real GDP 2024": {"text": "$1"}, "note": "<b>note 1:</b> in dollars"},
        "Exports": {"text": ""},
    },
}


@pytest.fixture(scope="module")
def documents() -> list[Document]:
    return list(factbook_documents())


@pytest.fixture(scope="module")
def search(documents: list[Document], tmp_path_factory: pytest.TempPathFactory) -> CorpusSearch:
    path = tmp_path_factory.mktemp("factbook")
    build_corpus(FACTBOOK, documents, path)
    return CorpusSearch(FACTBOOK, path)


def test_a_territory_becomes_clean_documents() -> None:
    found = {document.id: document for document in territory_documents("zz", LAND)}
    assert {name: (document.title, document.text) for name, document in found.items()} == {
        "zz/introduction/background": (
            "Côte: Introduction: Background",
            "Founded late. Grew. Fell",
        ),
        "zz/geography/climate": (
            "Côte: Geography",
            "Climate: mild & dry\nLand use: agricultural land: 10%; "
            "agricultural land: arable land: 4%",
        ),
        "zz/environment/issues": ("Côte: Environment: Issues", "noise"),
        "zz/government/country-name": (
            "Côte: Government: Country name",
            "conventional long form: none; conventional short form: Côte; "
            "former: Old Coast; note: a note",
        ),
        "zz/economy/real-gdp": (
            "Côte: Economy: Real GDP",
            "2024: $1; note: 1 in dollars",
        ),
    }
    assert all("Old Coast" in document.keywords for document in found.values())


def test_lines_of_a_list_are_parted() -> None:
    data = {"Government": {"Political parties": {"text": "<br>One (1)<br>Two,<br>Three.<br>Four"}}}
    (document,) = territory_documents("zz", data)
    assert document.text == "One (1); Two, Three. Four"


def test_small_fields_share_a_document_and_long_ones_stand_alone() -> None:
    fields = {f"Field {i}": {"text": "word " * 25} for i in range(6)}
    fields["Long"] = {"text": "word " * 300}
    groups = [
        re.findall(r"^(Field \d)", document.text, re.MULTILINE) or [document.title]
        for document in territory_documents("zz", {"Economy": fields})
    ]
    assert groups == [
        ["Field 0", "Field 1"],
        ["Field 2", "Field 3"],
        ["Field 4", "Field 5"],
        ["zz: Economy: Long"],
    ]


def test_a_field_that_is_asked_for_often_stands_alone() -> None:
    fields = {name: {"text": "words"} for name in ("Location", "Area", "Coastline")}
    found = [document.title for document in territory_documents("zz", {"Geography": fields})]
    assert found == ["zz: Geography: Area", "zz: Geography"]


def test_all_territories_are_there_without_markup(documents: list[Document]) -> None:
    assert len({document.id.partition("/")[0] for document in documents}) == 256
    assert len({document.id for document in documents}) == len(documents)
    markup = re.compile(r"</?[a-z]+>|&[a-zA-Z]{2,};|\u00a0")
    assert [d.id for d in documents if markup.search(d.title + d.text)] == []
    assert all(len(document.title.split(": ")) >= 2 for document in documents)


def test_passages_are_of_a_size_a_judge_can_read(documents: list[Document]) -> None:
    sizes = [count_words(document.text) for document in documents]
    assert 13_000 <= len(sizes) <= 17_000
    shared = [count_words(d.text) for d in documents if "\n" in d.text]
    assert max(shared) <= 70
    assert 30 <= sum(sizes) / len(sizes) <= 70


def test_the_hash_is_stable() -> None:
    assert factbook_hash() == factbook_hash()
    assert re.fullmatch(r"[0-9a-f]{64}", factbook_hash())


def _shown(hit: SearchHit) -> str:
    """The passage as a judge is shown it."""
    return f"{hit.passage.title}: {hit.passage.text}"


def test_no_passage_says_the_name_of_its_field_twice(documents: list[Document]) -> None:
    alone = [d for d in documents if len(d.title.split(": ")) > 2]
    assert len(alone) > 5000
    assert [d.id for d in alone if d.text.startswith(f"{d.title.split(': ', 2)[2]}: ")] == []


@pytest.mark.parametrize(
    ("question", "territory", "fact"),
    [
        ("What is the capital of Burkina Faso?", "Burkina Faso", "name: Ouagadougou"),
        ("Who is the prime minister of the United Kingdom?", "United Kingdom", "STARMER"),
        ("What is the capital of Kazakhstan?", "Kazakhstan", "name: Astana"),
        ("What is the currency of Croatia?", "Croatia", "euros"),
        ("Which countries share a land border with Portugal?", "Portugal", "Spain 1,224 km"),
        ("What is the highest point in Kenya?", "Kenya", "Mount Kenya 5,199 m"),
        ("What languages are spoken in Bolivia?", "Bolivia", "Quechua"),
        ("When did Ghana gain independence?", "Ghana", "6 March 1957"),
        ("What is the population of Iceland?", "Iceland", "Population: total:"),
        ("What is the largest city in Vietnam?", "Vietnam", "Ho Chi Minh City"),
        ("How long is the coastline of Norway?", "Norway", "Coastline: 25,148 km"),
        ("What is the national anthem of Japan called?", "Japan", "Kimigayo"),
    ],
)
async def test_a_natural_question_finds_its_fact_in_three(
    search: CorpusSearch, question: str, territory: str, fact: str
) -> None:
    hits = await search.search(question, limit=3)
    facts = [_shown(hit) for hit in hits if hit.passage.title.startswith(territory)]
    assert any(fact in text for text in facts), [hit.passage.title for hit in hits]


@pytest.mark.parametrize(
    ("name", "code", "capital"),
    [
        ("Myanmar", "bm", "Rangoon"),
        ("the Czech Republic", "ez", "Prague"),
        ("Czechia", "ez", "Prague"),
        ("the US", "us", "Washington"),
        ("the United States", "us", "Washington"),
        ("the UK", "uk", "London"),
        ("Turkiye", "tu", "Ankara"),
        ("Turkey", "tu", "Ankara"),
        ("Swaziland", "wz", "Mbabane"),
        ("Ceylon", "ce", "Colombo"),
        ("Ivory Coast", "iv", "Yamoussoukro"),
        ("the DRC", "cg", "Kinshasa"),
    ],
)
async def test_other_names_of_a_territory_find_its_capital(
    search: CorpusSearch, name: str, code: str, capital: str
) -> None:
    hits = await search.search(f"What is the capital of {name}?", limit=3)
    texts = [_shown(hit) for hit in hits if hit.passage.document_id.startswith(f"{code}/")]
    assert any(capital in text and "Capital: " in text for text in texts)


def test_looking_whether_the_source_changed_is_quick() -> None:
    started = time.perf_counter()
    factbook_hash()
    assert time.perf_counter() - started < 2
