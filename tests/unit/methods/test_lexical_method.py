"""Words against words: SQuAD's normalisation in every script, whole words only, no judge asked."""

from __future__ import annotations

from typing import Any

import pytest
from fake_judge import FakeJudge, ListTrace
from hypothesis import example, given
from hypothesis import strategies as st

from offline_judge.domain.judgment import Judgment, UnscoredReason
from offline_judge.domain.sample import Sample
from offline_judge.errors import UnscoredError, UsageError
from offline_judge.methods.lexical.method import Lexical
from offline_judge.methods.lexical.words import contains, exact, token_f1, words
from offline_judge.protocols import MethodContext


async def judged(response: str, *reference: str, **options: Any) -> Judgment:
    judge = FakeJudge(lambda template, values: "")
    context = MethodContext(judge=judge, search=None, trace=ListTrace())
    sample = Sample(id="s", question="Which?", response=response, reference=reference)
    found = await Lexical.from_options(options).judge(sample, context)
    assert judge.calls == []
    return found


@pytest.mark.parametrize(
    ("response", "answer", "found"),
    [
        ("Welcome to the party!", "art", False),
        ("It is modern ART.", "art", True),
        ("The capital is Astana, formerly Nur-Sultan.", "nur-sultan", True),
        ("new old york", "New York", False),
        ("York", "New York", False),
        ("It was the U.S. Army", "the US Army", True),
        ("Paris\u2014the capital of France", "Paris", True),
        ("1990\u20131995", "1995", True),
        ("It costs 1,200 dollars", "200", False),
        ("A capital do Brasil é Brasília.", "Brasília", True),
        ("Foi em São\u00a0Paulo", "Sa\u0303o Paulo", True),
        ("日本の首都は東京です。", "東京", True),
        ("日本の首都は京都です。", "東京", False),
        ("\uff34\uff2f\uff2b\uff39\uff2f", "tokyo", True),
        ("서울은 한국의 수도이다", "서울", True),
        ("STRASSE", "Straße", True),
        ("Vitamin A", "A", True),
        ("Vitamin B", "A", False),
        ("", "Astana", False),
    ],
)
async def test_an_answer_is_contained_as_whole_words(
    response: str, answer: str, found: bool
) -> None:
    judgment = await judged(response, answer)
    assert judgment.verdict is found
    assert judgment.probability == float(found)


async def test_any_of_several_answers_will_do_and_the_one_found_is_named() -> None:
    judgment = await judged("It is Nur-Sultan.", "Astana", "Nur-Sultan")
    assert judgment.verdict
    assert "“Nur-Sultan”" in judgment.rationale


async def test_exact_match_ignores_case_articles_and_punctuation_only() -> None:
    assert (await judged("The Beatles!", "beatles", metric="exact")).verdict
    assert not (await judged("The Beatles, a band", "beatles", metric="exact")).verdict


async def test_f1_counts_shared_words_and_the_threshold_decides() -> None:
    # Three of four words each way: P = R = 3/4.
    close = await judged("red green blue grey", "red green blue black", metric="f1")
    assert close.probability == pytest.approx(0.75)
    assert close.verdict
    strict = await judged("red green blue grey", "red green blue black", metric="f1", threshold=0.8)
    assert not strict.verdict
    assert strict.probability == pytest.approx(0.75)


async def test_f1_of_text_without_spaces_is_over_characters() -> None:
    # 東京 against 東京都: P = 1, R = 2/3.
    judgment = await judged("東京", "東京都", metric="f1")
    assert judgment.probability == pytest.approx(0.8)


async def test_f1_counts_a_repeated_word_once_for_each_time_the_answer_has_it() -> None:
    judgment = await judged("no no no", "no", metric="f1")
    assert judgment.probability == pytest.approx(0.5)


@pytest.mark.parametrize("reference", [(), ("...", " ")])
async def test_without_an_answer_to_compare_with_it_is_unscored(reference: tuple[str, ...]) -> None:
    with pytest.raises(UnscoredError) as caught:
        await judged("anything", *reference)
    assert caught.value.reason == UnscoredReason.NO_REFERENCE


@pytest.mark.parametrize(
    "options", [{"metric": "bleu"}, {"threshold": 0}, {"threshold": 1.5}, {"treshold": 0.4}]
)
def test_options_out_of_range_are_refused_by_name(options: dict[str, Any]) -> None:
    with pytest.raises(UsageError, match=next(iter(options))):
        Lexical.from_options(options)


def test_it_has_no_stage_and_no_prompt() -> None:
    method = Lexical.from_options({})
    assert method.stages == ()
    assert method.largest_prompts(Sample(id="s", question="q", response="r")) == ()
    assert method.options == {"metric": "contains", "threshold": 0.5}


@given(st.text(), st.text())
@example("C:\u0327", "")
def test_scores_agree_with_one_another_on_any_text(response: str, answer: str) -> None:
    said, wanted = words(response), words(answer)
    assert words(" ".join(said)) == said, "normalising twice changes nothing"
    f1 = token_f1(said, wanted)
    assert 0 <= f1 <= 1
    if wanted:
        assert exact(said, wanted) <= contains(said, wanted) <= float(f1 > 0)
