"""The passage that the verdict is shown."""

from __future__ import annotations

from collections.abc import Sequence

from offline_judge.domain.evidence import Passage, SearchHit
from offline_judge.methods.sage.choose import choose_evidence
from offline_judge.methods.sage.memory import Memory, Round

QUESTION = "What is the capital of Kenya?"


def memory_of(*rounds: tuple[Sequence[str], str]) -> Memory:
    memory = Memory()
    for number, (texts, summary) in enumerate(rounds, 1):
        hits = [
            SearchHit(
                rank=rank,
                score=1.0,
                passage=Passage(id=text, document_id="d", title="", text=text),
            )
            for rank, text in enumerate(texts, 1)
        ]
        evidence = memory.add_hits(hits, len(hits))
        memory.rounds.append(Round(number, "q", evidence, summary, "", {}, ""))
    return memory


def chosen(memory: Memory, limit: int = 1) -> list[str]:
    return [item.id for item in choose_evidence(memory, QUESTION, limit)]


def test_the_passage_the_summary_was_taken_from() -> None:
    texts = ["Kenya has lions.", "The capital of Kenya is Nairobi.", "Paris is a capital."]
    assert chosen(memory_of((texts, "The capital of Kenya is Nairobi."))) == ["E2"]


def test_a_later_round_about_something_else_does_not_displace_it() -> None:
    first = (["The capital of Kenya is Nairobi."], "The capital of Kenya is Nairobi.")
    second = (["The civil law of Spain, and the of the."], "The civil law of Spain.")
    assert chosen(memory_of(first, second)) == ["E1"]


def test_what_a_summary_makes_up_speaks_for_no_passage() -> None:
    first = (["The capital of Kenya is Nairobi."], "The capital of Kenya is Nairobi.")
    second = (["The capital of Kenya grows."], "The capital of Kenya is Mombasa, they say.")
    assert chosen(memory_of(first, second)) == ["E1"]


def test_of_equals_the_earlier_comes_first() -> None:
    assert chosen(memory_of((["One thing.", "Other thing."], ""))) == ["E1"]


def test_several_are_given_in_the_order_they_were_found() -> None:
    texts = ["Kenya has lions.", "Spain has bulls.", "The capital of Kenya is Nairobi."]
    assert chosen(memory_of((texts, "The capital of Kenya is Nairobi.")), 2) == ["E1", "E3"]


def test_nothing_found_is_nothing_to_choose() -> None:
    assert chosen(memory_of(((), ""))) == []


def test_a_later_round_needs_a_clearly_better_passage() -> None:
    first = (["Kenya, capital: Nairobi."], "The capital of Kenya is Nairobi.")
    near = (["The capital of Kenya is old."], "The capital of Kenya is old.")
    assert chosen(memory_of(first, near)) == ["E1"]
    astray = (["Paris is a city."], "Nothing found.")
    assert chosen(memory_of(astray, near)) == ["E2"]
