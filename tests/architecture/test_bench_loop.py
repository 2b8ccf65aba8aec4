"""The bench against a hand-written loop: its arithmetic and its talk with a child, no model."""

import re
import sys
from pathlib import Path
from typing import Any, ClassVar

import bench_loop
import pytest

from offline_judge.domain.events import SampleFinished, SampleStarted
from offline_judge.domain.evidence import Passage, SearchHit
from offline_judge.domain.judgment import Outcome
from offline_judge.domain.sample import Sample
from offline_judge.settings import Settings

CHILD = """
import json, sys
for row in sys.stdin:
    sample = json.loads(row)
    print(json.dumps({"search": sample["question"], "limit": 2}), flush=True)
    hits = json.loads(input())
    print(json.dumps({"verdict": hits[1]["text"] == sample["response"]}), flush=True)
"""


class Search:
    name: ClassVar[str] = "two"

    def identity(self) -> dict[str, Any]:
        return {}

    async def search(self, query: str, *, limit: int, offset: int = 0) -> tuple[SearchHit, ...]:
        passages = [
            Passage(id=f"p{n}", document_id="d", title="T" if n else "", text=f"{query} {n}")
            for n in range(limit)
        ]
        return tuple(SearchHit(rank=n + 1, score=1, passage=p) for n, p in enumerate(passages))

    def close(self) -> None:
        pass


def sample(name: str, question: str = "q", response: str = "r") -> Sample:
    return Sample(id=name, question=question, response=response)


def question(seconds: tuple[float, float, float], samples: int = 1) -> bench_loop.Question:
    found = bench_loop.Question([sample(str(n)) for n in range(samples)])
    found.seconds = dict(zip(bench_loop.SIDES, seconds, strict=True))
    found.verdicts = {side: [True] * samples for side in bench_loop.SIDES}
    return found


def test_the_loop_is_as_short_as_promised() -> None:
    assert bench_loop.LOOP.read_text("utf-8").count("\n") <= bench_loop.MOST_LINES == 80


def test_the_loop_asks_for_templates_that_exist() -> None:
    prompts = bench_loop.SCRIPTS.parent / "offline_judge/methods/sage/prompts"
    source = bench_loop.LOOP.read_text("utf-8")
    names = re.findall(r'asked\("([\w.]+)"', source)
    assert {"query", "reflection"} <= set(names)
    for name in names:
        files = (
            [f"{name}.jinja"] if "." in name else [f"{name}.{r}.jinja" for r in ("system", "user")]
        )
        assert [file for file in files if not (prompts / file).exists()] == []


def test_a_loop_is_answered_its_searches_and_gives_its_verdict() -> None:
    with bench_loop.Loop([sys.executable, "-c", CHILD], Search()) as loop:
        assert loop.judge(sample("a", "who", "T: who 1")) is True
        assert loop.judge(sample("b", "who", "who 1")) is False


def test_a_loop_that_ends_is_told_with_its_code() -> None:
    with (
        bench_loop.Loop([sys.executable, "-c", "input(); exit(3)"], Search()) as loop,
        pytest.raises(SystemExit, match="3"),
    ):
        loop.judge(sample("a"))


def test_a_ratio_is_of_sums_over_the_same_samples() -> None:
    questions = [question((1.0, 3.0, 4.0)), question((3.0, 3.0, 8.0))]
    assert bench_loop.ratio(questions, "loop") == 1.5
    assert bench_loop.ratio(questions, "loop with schemas") == 3.0


def test_limits_are_kept_or_missed(capsys: pytest.CaptureFixture[str]) -> None:
    assert bench_loop.report([question((1.0, 1.5, 2.0))] * 3)
    assert not bench_loop.report([question((1.0, 1.4, 2.0))] * 3)
    assert not bench_loop.report([question((1.0, 1.5, 1.9))] * 3)
    assert "n = 3 samples of 3 questions" in capsys.readouterr().out


def test_a_samples_time_runs_until_the_next_one_starts(monkeypatch: pytest.MonkeyPatch) -> None:
    clock = iter([10.0, 12.0, 15.0, 19.0])
    monkeypatch.setattr("bench_loop.time.perf_counter", lambda: next(clock))
    watch = bench_loop.Watch()
    for name in ("a", "b"):
        watch.event(SampleStarted(sample_id=name, sample=sample(name)))
        watch.event(SampleFinished(sample_id=name, outcome=Outcome.SCORED))
    assert watch.seconds == {"a": 5.0, "b": 4.0}


def test_samples_are_taken_by_whole_questions_up_to_a_limit(tmp_path: Path) -> None:
    data = tmp_path / "d.jsonl"
    rows = [f'{{"question": "q{n // 2}", "response": "r{n}"}}\n' for n in range(8)]
    data.write_text("".join(rows))
    assert [len(one.samples) for one in bench_loop.take(data, Settings(), 3)] == [2, 1]
    assert sum(len(one.samples) for one in bench_loop.take(data, Settings(), None)) == 8
