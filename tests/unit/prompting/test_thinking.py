"""The split of thinking and final channel, with thinking that tries to be taken for the answer."""

import pytest

from offline_judge.errors import UnscoredError
from offline_judge.prompting.thinking import split_thinking


@pytest.mark.parametrize(
    ("text", "thinking", "final"),
    [
        ("Yes", "", "Yes"),
        ("<think>\nverdict: No, No, No\n</think>\n\nYes", "verdict: No, No, No", "Yes"),
        ('<think>I might say {"verdict": false}</think>{"verdict": true}',
         'I might say {"verdict": false}', '{"verdict": true}'),
        ("so the verdict is No</think>Yes", "so the verdict is No", "Yes"),
        ("<think>a </think> quoted </think> Yes", "a </think> quoted", "Yes"),
        ("<think>a</think>No<think>b</think>Yes", "a</think>No<think>b", "Yes"),
        ("[THINK]hm[/THINK]Yes", "hm", "Yes"),
        ("<think></think>", "", ""),
        ("The tag <think> is written so.", "", "The tag <think> is written so."),
    ],
)  # fmt: skip
def test_only_what_follows_the_last_close_is_final(text: str, thinking: str, final: str) -> None:
    assert split_thinking(text) == (thinking, final)


@pytest.mark.parametrize(
    "text", ["<think>verdict: Yes", "  <think>", "<think>a</think>\n<think>Yes", "[THINK]Yes"]
)
def test_an_open_block_is_truncated_and_never_read(text: str) -> None:
    with pytest.raises(UnscoredError) as caught:
        split_thinking(text)
    assert caught.value.reason == "truncated"
