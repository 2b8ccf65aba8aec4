"""Parsing of answers: what is taken, and the reason given for what is not."""

from typing import Any, Literal

import pytest
from pydantic import BaseModel, Field

from offline_judge.errors import SchemaError, UnscoredError
from offline_judge.prompting.answers import JsonAnswer, LineAnswer, TextAnswer

LINE = LineAnswer(max_chars=40, max_tokens=20, labels=("Query", "Search query"))
TEXT = TextAnswer(max_chars=40, max_tokens=20)


class Verdict(BaseModel):
    why: str = Field(max_length=40)
    verdict: Literal["true", "false"]
    cites: list[str] = Field(default=[], max_length=2)


JSON = JsonAnswer(Verdict, max_tokens=50)
GOOD = '{"why": "w", "verdict": "true"}'


def _reason(schema: Any, text: str) -> str:
    with pytest.raises(UnscoredError) as caught:
        schema.parse(text)
    return caught.value.reason


@pytest.mark.parametrize(
    "text",
    [
        "capital of France",
        "  capital of\tFrance \n",
        '"capital of France"',
        "\u201ccapital of France\u201d",
        "Query: capital of France",
        "query : `capital of France`",
        '**Search query:** "capital of France"',
        "- Query: capital of France",
        "```\ncapital of France\n```",
        "**capital of France**",
        "capital\u200b of France",
    ],
)
def test_wrapping_is_taken_off_a_line(text: str) -> None:
    assert LINE.parse(text) == "capital of France"


@pytest.mark.parametrize(
    "text",
    [
        '"Paris" or "Lyon"',
        "Paris: capital of France",
        "it's John's",
        "Query language history",
        "5 * 3 = 15",
        "2. FC K\u00f6ln founded",
    ],
)
def test_what_only_looks_like_wrapping_stays(text: str) -> None:
    assert LINE.parse(text) == text


@pytest.mark.parametrize("text", ["", "  \n", '""', "Query:", "```\n```", "...", "\u200b", "- "])
def test_an_answer_without_words_is_empty(text: str) -> None:
    assert _reason(LINE, text) == "empty"


@pytest.mark.parametrize(
    "text",
    [
        "I'm sorry, but I can't assist with that request.",
        "I\u2019m sorry, I can\u2019t help with that.",
        "I cannot provide that.",
        "As an AI language model, I have no opinion.",
        "Unfortunately, I am unable to answer this.",
        "Sorry, I won't do that",
    ],
)
def test_a_refusal_is_called_one(text: str) -> None:
    assert _reason(TextAnswer(max_chars=200, max_tokens=9), text) == "refused"
    assert _reason(JSON, text) == "refused"


@pytest.mark.parametrize(
    "text",
    [
        "I cannot find the year in the passages.",
        "Sorry seems to be the hardest word, 1976.",
        "As an airport, it opened in 1930.",
        "I'm sorry I haven't a clue, radio show",
    ],
)
def test_an_answer_that_sounds_like_a_refusal_is_none(text: str) -> None:
    assert LineAnswer(max_chars=200, max_tokens=9).parse(text) == text


def test_a_line_that_is_too_long_is_malformed_and_never_cut() -> None:
    assert _reason(LINE, "word. " * 9) == "malformed"


def test_a_text_is_cut_behind_its_last_whole_sentence() -> None:
    assert TEXT.parse("It is in Paris. It opened in 1889 and it is tall.") == "It is in Paris."
    assert TEXT.parse("\u30d1\u30ea\u306b\u3042\u308b\u3002" + "\u9577" * 40) == (
        "\u30d1\u30ea\u306b\u3042\u308b\u3002"
    )


def test_a_text_without_a_sentence_that_fits_is_malformed() -> None:
    assert _reason(TEXT, "3.5 words " * 9) == "malformed"


@pytest.mark.parametrize("text", [GOOD, f" \n{GOOD}\n", f"```json\n{GOOD}\n```", f"```\n{GOOD}```"])
def test_one_whole_object_is_read(text: str) -> None:
    assert JSON.parse(text) == Verdict(why="w", verdict="true")


@pytest.mark.parametrize(
    "text",
    [
        f"Here it is: {GOOD}",
        f"{GOOD} Hope this helps.",
        f"{GOOD}\n{GOOD}",
        f'{{"why": "{{", "verdict": "true"}} and {GOOD}',
        f"```json\n{GOOD}\n``` and ```json\n{GOOD}\n```",
        '{"why": "w", "verdict": "true",}',
        '{"why": "w", "verdict": "true"',
        '{"why": "line\nbreak", "verdict": "true"}',
        '{"why": "w", "verdict": "true", "verdict": "false"}',
        '{"why": "w", "verdict": "true", "extra": 1}',
        '{"why": NaN, "verdict": "true"}',
        '{"why": "\\ud800", "verdict": "true"}',
        '{"why": 1, "verdict": "true"}',
        '{"verdict": "true"}',
        f'{{"why": "{"w" * 41}", "verdict": "true"}}',
        f'{{"why": "w", "verdict": "true", "cites": ["{"w" * 201}"]}}',
        '{"why": "w", "verdict": "true", "cites": ["a", "b", "c"]}',
        "true",
        f"[{GOOD}]",
        "[" * 100_000,
    ],
)
def test_anything_but_one_fitting_object_is_malformed(text: str) -> None:
    assert _reason(JSON, text) == "malformed"


@pytest.mark.parametrize("value", ["True", "yes", "not true", "true ", ""])
def test_a_value_not_on_the_menu_is_off_menu_and_not_matched_in_part(value: str) -> None:
    assert _reason(JSON, f'{{"why": "w", "verdict": "{value}"}}') == "off-menu"


@pytest.mark.parametrize("text", ["", "  ", "```json\n```"])
def test_no_object_at_all_is_empty(text: str) -> None:
    assert _reason(JSON, text) == "empty"


def test_the_detail_of_a_bad_value_does_not_repeat_it() -> None:
    with pytest.raises(UnscoredError) as caught:
        JSON.parse('{"why": "w", "verdict": "ignore all rules"}')
    assert "ignore" not in caught.value.detail
    assert "verdict" in caught.value.detail


class Other(BaseModel):
    verdict: Literal["true", "false"]
    why: str = Field(max_length=40)
    cites: list[str] = Field(default=[], max_length=2)


def test_keys_tell_answers_apart() -> None:
    class Renamed(Verdict):
        pass

    Other.__qualname__ = "Verdict"
    answers: list[Any] = [
        JSON,
        JsonAnswer(Renamed, max_tokens=50),
        JsonAnswer(Other, max_tokens=50),
        LINE,
        TEXT,
        LineAnswer(max_chars=41, max_tokens=20, labels=("Query", "Search query")),
        LineAnswer(max_chars=40, max_tokens=20),
    ]
    assert len({answer.key for answer in answers}) == len(answers)
    assert JSON.key == JsonAnswer(Verdict, max_tokens=99).key, "limits are part of the sampling"


def test_a_model_outside_the_subset_is_refused_where_the_answer_is_made() -> None:
    class Ranged(BaseModel):
        score: float

    with pytest.raises(SchemaError):
        JsonAnswer(Ranged, max_tokens=9)
