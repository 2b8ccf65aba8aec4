"""What the program costs above the judge itself: tokens read anew, and wall time.

    .venv/bin/python scripts/bench_overhead.py [--judge NAME] [--data FILE] [--limit N]

Judges a file with `sage`, completion cache off, one lane. Figure 1 sets prompt tokens that the
engine read anew against the tokens of the content, each piece counted once: results as shown,
question, response, summaries and other outputs. It is given twice: pieces counted once a sample
(what a reused answer brought counts for the first sample only), and, stricter, questions and
results counted once for all samples of a question. Figure 2 sends the same requests, to the byte,
straight at a freshly started server and compares wall times. Loading is on neither side.
"""

from __future__ import annotations

import argparse
import asyncio
import re
import sys
import tempfile
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from bench_content import Piece, content, read_anew
from bench_recorder import Recorded, Recorder, recording
from benching import bootstrap, machine
from replay_client import Replayed, replay

from offline_judge import api, wiring
from offline_judge.backends.llama_cpp import LlamaCppBackend
from offline_judge.backends.serving import Serving
from offline_judge.settings import Settings, load_settings

SCRIPTS = Path(__file__).resolve().parent
SHIPPED = (SCRIPTS.parent / "offline_judge/demo/samples.jsonl", SCRIPTS / "bench_samples.jsonl")
LIMITS = {"tokens": 1.25, "tokens, strict": 1.25, "time": 1.05}
METHOD = "sage"


def judge(settings: Settings, data: Path, limit: int | None) -> list[Recorded]:
    """Run the method and give what each finished sample sent, took and produced."""
    recorder = Recorder()
    with recording(recorder):
        view = api.run(api.RunRequest(METHOD, data, limit=limit), settings, recorder)
    print(f"run {view.manifest.run_id}: {view.summary.status}, {view.summary.outcomes}")
    return recorder.samples()


@dataclass(frozen=True)
class Measured:
    """What the fresh server came to: each sample replayed, and its content in tokens."""

    replayed: list[Replayed]
    content: list[int]
    strict: list[int]


async def measure(settings: Settings, samples: Sequence[Recorded]) -> Measured:
    """Replay at a fresh server, then count content with its tokenizer."""
    narrator = Recorder()
    with wiring.open_components(settings, METHOD, {}, narrator) as parts:
        backend = parts.engine.backend
        assert isinstance(backend, LlamaCppBackend)
        engine = backend.engine
        await engine.start(narrator.phase)
        try:
            requests = [sample.requests() for sample in samples]
            replayed = await replay(engine.address, engine.api_key, requests)
            seen: dict[str, set[Piece]] = {sample.question: set() for sample in samples}
            return Measured(
                replayed,
                [await _tokens(engine, content(s.events)) for s in samples],
                [await _tokens(engine, content(s.events, seen[s.question])) for s in samples],
            )
        finally:
            await engine.close()


async def _tokens(engine: Serving, texts: Sequence[str]) -> int:
    wire = await engine.wire()
    answers = [await wire.post("/tokenize", {"content": text}) for text in texts]
    return sum(len(answer["tokens"]) for answer in answers)


def generated(replayed: Replayed) -> int:
    """Tokens the server generated for one sample, from its final events."""
    found = [re.findall(rb'"tokens_predicted":(\d+)', answer) for answer in replayed.answers]
    return sum(int(numbers[-1]) for numbers in found)


def report(name: str, pairs: Sequence[tuple[float, float]], unit: str) -> bool:
    """Print one ratio of sums with its interval over samples; true where the limit is kept."""

    def ratio(chosen: Sequence[tuple[float, float]]) -> float:
        return sum(above for above, _ in chosen) / sum(below for _, below in chosen)

    found, (low, high) = ratio(pairs), bootstrap(pairs, ratio)
    above, below = (sum(column) for column in zip(*pairs, strict=True))
    print(
        f"{name}: {above:,.1f} / {below:,.1f} {unit} = {found:.3f} [{low:.3f}, {high:.3f}], "
        f"limit {LIMITS[name]}, n = {len(pairs)}"
    )
    return found <= LIMITS[name]


def main() -> int:
    """Measure and print; 1 where a limit is missed or there are fewer than 20 samples."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else "")
    parser.add_argument("--judge", help="model card; default: the settings' judge")
    parser.add_argument("--data", type=Path, help="JSONL; default: 24 shipped samples")
    parser.add_argument("--limit", type=int, help="samples at most")
    arguments = parser.parse_args()
    settings = load_settings({"judge": arguments.judge, "cache": False, "lanes": 1})

    with tempfile.TemporaryDirectory() as folder:
        data = arguments.data
        if data is None:
            data = Path(folder) / "samples.jsonl"
            data.write_text("".join(path.read_text("utf-8") for path in SHIPPED), "utf-8")
        samples = judge(settings, data, arguments.limit)
    measured = asyncio.run(measure(settings, samples))

    print(f"{settings.judge}; {machine()}")
    requests, here = sum(len(s.calls) for s in samples), sum(s.generated for s in samples)
    there = sum(generated(sample) for sample in measured.replayed)
    print(f"{requests} requests; tokens generated: {here} in the run, {there} in the replay")
    anew = [read_anew(sample.events) for sample in samples]
    kept = [
        report("tokens", list(zip(anew, measured.content, strict=True)), "tokens"),
        report(
            "time",
            [(s.seconds, r.seconds) for s, r in zip(samples, measured.replayed, strict=True)],
            "s",
        ),
    ]
    report("tokens, strict", list(zip(anew, measured.strict, strict=True)), "tokens")
    if len(samples) < 20:
        print("fewer than 20 samples: no figure to quote")
    return int(not (all(kept) and len(samples) >= 20))


if __name__ == "__main__":
    sys.exit(main())
