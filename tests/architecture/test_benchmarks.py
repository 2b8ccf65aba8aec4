"""The arithmetic of the benchmarks, without an engine."""

import asyncio
import statistics
from pathlib import Path
from typing import Any

import bench_content
import benching
import httpx
import pytest
import replay_client
from bench_recorder import Call, Recorded, Recorder, recording

from offline_judge.backends.wire import Wire
from offline_judge.domain.events import CallFinished, SampleFinished, SampleStarted
from offline_judge.domain.judgment import Outcome
from offline_judge.domain.message import Usage
from offline_judge.domain.sample import Sample

SCRIPTS = Path(__file__).resolve().parents[2] / "scripts"


def _call(*, reused: bool = False, text: str = "", **values: Any) -> CallFinished:
    return CallFinished(
        sample_id="s",
        stage="summary",
        template="sage/summary",
        template_hash="h",
        prompt_hash="p",
        values=values,
        text=text,
        usage=Usage(prompt_tokens=10, cached_tokens=4),
        reused=reused,
    )


def _untrusted(text: str, kind: str = "evidence") -> dict[str, str]:
    return {"untrusted": kind, "text": text, "tag": "t"}


def test_content_counts_each_piece_once() -> None:
    results = _untrusted("[E1] Fiji: Suva is the capital.\n[E2] Suva: A city\nby the sea.")
    events = [
        _call(question="Q?", text="a query"),
        _call(question="Q?", results=results, text="Suva is it."),
        _call(question="Q?", response=_untrusted("Suva", "response"), summary="Suva is it."),
        _call(question="Q?", evidence=_untrusted("[E2] Suva: A city\nby the sea.")),
    ]
    assert sorted(bench_content.content(events)) == sorted(
        [
            "Q?",
            "a query",
            "Fiji: Suva is the capital.",
            "Suva: A city\nby the sea.",
            "Suva is it.",
            "Suva",
        ]
    )


def test_content_leaves_out_what_a_reused_call_brought() -> None:
    shown = _untrusted("[E1] A passage")
    events = [
        _call(reused=True, question="Q", results=shown, text="first summary"),
        _call(question="Q", response=_untrusted("R", "response"), evidence=shown, text="why"),
    ]
    assert sorted(bench_content.content(events)) == ["R", "why"]


def test_strict_content_counts_questions_and_results_once_for_all_samples_of_a_question() -> None:
    shared: set[bench_content.Piece] = set()
    first = _call(question="Q", results=_untrusted("[E1] A passage"), text="same words")
    second = _call(question="Q", results=_untrusted("[E2] A passage"), text="same words")
    assert len(bench_content.content([first], shared)) == 3
    assert bench_content.content([second], shared) == ["same words"]


def test_notes_composed_of_outputs_are_no_content() -> None:
    events = [_call(question="Q", notes=["searched: x"], text="y")]
    assert sorted(bench_content.content(events)) == ["Q", "y"]


def test_read_anew_skips_reused_calls() -> None:
    assert bench_content.read_anew([_call(), _call(reused=True), _call()]) == 12


def test_a_request_follows_only_those_that_had_ended() -> None:
    sample = Recorded(0.0)
    sample.calls = [Call(0.0, {}, 1.0), Call(1.5, {}, 3.0), Call(1.6, {}, 2.0), Call(3.5, {}, 4.0)]
    assert [request.after for request in sample.requests()] == [(), (0,), (0,), (0, 1, 2)]


def test_a_samples_time_reaches_to_the_next_one(monkeypatch: pytest.MonkeyPatch) -> None:
    clock = iter([10.0, 12.0, 15.0, 19.0])
    monkeypatch.setattr("bench_recorder.time.perf_counter", lambda: next(clock))
    recorder = Recorder()
    for name in ("a", "b"):
        sample = Sample(id=name, question="q", response="r")
        recorder.event(SampleStarted(sample_id=name, sample=sample))
        recorder.event(SampleFinished(sample_id=name, outcome=Outcome.SCORED))
    assert [sample.seconds for sample in recorder._samples] == [5.0, 4.0]


async def test_the_tap_sees_bodies_and_is_taken_off_again(monkeypatch: pytest.MonkeyPatch) -> None:
    def answer(request: httpx.Request) -> httpx.Response:
        return httpx.Response(200, text='data: {"stop": true}\n\n')

    monkeypatch.setattr(
        "httpx.AsyncHTTPTransport.handle_async_request",
        httpx.MockTransport(answer).handle_async_request,
    )
    recorder, original = Recorder(), Wire.stream
    sample = Sample(id="a", question="q", response="r")
    recorder.event(SampleStarted(sample_id="a", sample=sample))
    wire = Wire("http://127.0.0.1:1", "key", 1)
    with recording(recorder):
        async with wire.stream("/completion", {"prompt": [1]}) as events:
            assert [event async for event in events] == [{"stop": True}]
    await wire.close()
    assert Wire.stream is original
    (recorded,) = recorder._samples
    assert [call.body for call in recorded.calls] == [{"prompt": [1]}]
    assert recorded.calls[0].ended >= recorded.calls[0].began


async def test_the_replay_keeps_the_order_within_a_sample(monkeypatch: pytest.MonkeyPatch) -> None:
    seen: list[str] = []

    async def answer(request: httpx.Request) -> httpx.Response:
        name = request.content.decode()
        seen.append(f"begin {name}")
        await asyncio.sleep(0)
        seen.append(f"end {name}")
        return httpx.Response(200, content=name)

    monkeypatch.setattr(
        "httpx.AsyncHTTPTransport.handle_async_request",
        httpx.MockTransport(answer).handle_async_request,
    )
    first, second = replay_client.Request({"n": 1}, ()), replay_client.Request({"n": 2}, (0,))
    (replayed,) = await replay_client.replay("http://127.0.0.1:1", "key", [[first, second]])
    assert seen == ['begin {"n":1}', 'end {"n":1}', 'begin {"n":2}', 'end {"n":2}']
    assert replayed.answers == [b'{"n":1}', b'{"n":2}']


def test_the_replay_client_is_small() -> None:
    lines = (SCRIPTS / "replay_client.py").read_text("utf-8").splitlines()
    assert len(lines) <= 60


def test_the_bootstrap_is_repeatable_and_holds_the_mean() -> None:
    values = [float(number) for number in range(40)]
    low, high = benching.bootstrap(values, statistics.fmean)
    assert low < statistics.fmean(values) < high
    assert benching.bootstrap(values, statistics.fmean) == (low, high)
