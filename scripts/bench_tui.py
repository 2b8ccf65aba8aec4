"""How the terminal UI feels: first paint, keys while a run streams, runs and samples of any size.

    .venv/bin/python scripts/bench_tui.py [paint keys large heavy] [--n 20] [--samples 100000]

Each part drives the program on a terminal of its own and waits for what it paints.
"""

from __future__ import annotations

import argparse
import random
import statistics
import sys
import tempfile
import time
from collections.abc import Callable, Sequence
from pathlib import Path

from bench_tui_parts import (
    EMPTY,
    Stream,
    Terminal,
    environment,
    sample_id,
    write_heavy,
    write_large,
    write_small,
)
from benching import bootstrap, machine

PROGRAM = [sys.executable, "-m", "offline_judge"]
RATIO, ROWS_S, KEY_MS, OPEN_S, MEMORY_MB = 1.5, 0.3, 50.0, 2.0, 400.0
RUNS, EVENTS, A_SECOND, HEAVY = 200, 30, 200, 50_000_000
CURSOR = r"48;2;90;169;230m"
"""The colour of the cursor of a table, which stands before the text of its row."""


def interval(values: Sequence[float], statistic: Callable[[Sequence[float]], float]) -> str:
    """A statistic with its 95 % interval and n."""
    low, high = bootstrap(values, statistic)
    return f"{statistic(values):.3g} [{low:.3g}, {high:.3g}], n = {len(values)}"


def p95(values: Sequence[float]) -> float:
    """The 95th percentile."""
    return statistics.quantiles(values, n=20)[-1] if len(values) > 1 else values[0]


def paint(folder: Path, n: int) -> bool:
    """First paint against an empty application, started in turn; then the first rows."""
    write_small(folder, RUNS)
    env = environment(folder)
    ratios, rows = [], []
    for turn in range(n + 1):
        empty = Terminal([sys.executable, "-c", EMPTY], env)
        empty_s = empty.wait("ready") - empty.began
        empty.end()
        ours = Terminal(PROGRAM, env)
        painted = ours.wait("reading runs")
        rows_s = ours.wait(r"data\.jsonl") - painted
        ours.end()
        if turn:  # bytecode and file cache are warm for both from the second turn on
            ratios.append((painted - ours.began) / empty_s)
            rows.append(rows_s)
    ratio, first_rows = statistics.median(ratios), statistics.median(rows)
    print(f"first paint: {interval(ratios, statistics.median)} times an empty one, limit {RATIO}")
    told = f"{interval(rows, statistics.median)}, limit {ROWS_S}, {RUNS} runs"
    print(f"first rows, seconds after it: {told}")
    return ratio <= RATIO and first_rows <= ROWS_S


def keys(folder: Path, n: int) -> bool:
    """A cursor key to the painted cursor, while a run records and tells 200 events a second."""
    stream = Stream(folder, A_SECOND)
    terminal = Terminal([*PROGRAM, "tui", stream.run_id], environment(folder))
    try:
        terminal.wait(sample_id(3))
        terminal.settle(3)
        chosen = random.Random(0)
        taken, place = [], 0
        for _ in range(10 * n):
            way = 1 if place == 0 or (place < 12 and chosen.random() < 0.6) else -1
            place += way
            pressed = terminal.press("j" if way > 0 else "k")
            painted = terminal.wait(rf"{CURSOR}[^\x1b]*{sample_id(place)}")
            taken.append(1000 * (painted - pressed))
            terminal.settle(chosen.uniform(0.05, 0.2))
    finally:
        terminal.end()
        stream.end()
    print(f"key to paint, ms: p95 {interval(taken, p95)}, limit {KEY_MS:g}")
    print(f"  median {statistics.median(taken):.1f}, most {max(taken):.1f}")
    return p95(taken) <= KEY_MS


def large(folder: Path, n: int, samples: int) -> bool:
    """A run of very many samples: its index, opening, scrolling, memory."""
    from offline_judge import api
    from offline_judge.settings import load_settings

    run = write_large(folder, samples, EVENTS)
    size = (run.path / "events-main.jsonl").stat().st_size
    settings = load_settings({"data_dir": str(folder / "data")})
    print(f"{samples:,} samples, {samples * EVENTS + 2:,} events, {size / 1e9:.2f} GB")
    told: list[int] = []

    def stop_at_second(done: int, _of: int) -> bool:
        told.append(done)
        return len(told) < 2

    assert not api.index_run(run.run_id, settings, stop_at_second)
    kept, began = told[-1], time.perf_counter()

    def go_on(done: int, _of: int) -> bool:
        told.append(done)
        return True

    assert api.index_run(run.run_id, settings, go_on)
    rest = time.perf_counter() - began
    assert told[2] > kept, "what was done before the stop was done again"
    print(f"index: {rest:.0f} s, told {len(told)} times, stopped once and gone on with")
    opened, moved, peak = [], [], 0.0
    for _ in range(max(5, n // 4)):
        terminal = Terminal([*PROGRAM, "tui", run.run_id], environment(folder))
        terminal.wait("opening")
        painted = time.perf_counter()
        opened.append(terminal.wait(sample_id(5)) - painted)
        terminal.settle(1)
        for key, seen in (("\x1b[F", samples - 1), ("\x1b[5~", samples - 2), ("\x1b[H", 0)):
            pressed = terminal.press(key)
            moved.append(terminal.wait(rf"{sample_id(seen)}") - pressed)
            terminal.settle(0.3)
        peak = max(peak, terminal.peak_mb)
        terminal.end()
    print(f"opens, seconds: {interval(opened, statistics.median)}, limit {OPEN_S:g}")
    print(f"end, page up, home to paint, seconds: {interval(moved, statistics.median)}")
    print(f"peak memory: {peak:.0f} MB, limit {MEMORY_MB:g}")
    return statistics.median(opened) <= OPEN_S and peak <= MEMORY_MB


def heavy(folder: Path, n: int) -> bool:
    """A sample whose trace is 50 MB opens."""
    run = write_heavy(folder, HEAVY)
    taken = []
    for _ in range(max(3, n // 6)):
        terminal = Terminal([*PROGRAM, "tui", run.run_id], environment(folder))
        terminal.wait(sample_id(0))
        terminal.settle(1)
        pressed = terminal.press("\r")
        taken.append(terminal.wait("verdict true") - pressed)
        peak = terminal.peak_mb
        terminal.end()
    told = interval(taken, statistics.median)
    print(f"a sample of {HEAVY / 1e6:.0f} MB opens, seconds: {told}; peak memory {peak:.0f} MB")
    return True


def main() -> int:
    """Measure and print; 1 where a limit is missed."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else "")
    known = ("paint", "keys", "large", "heavy")
    parser.add_argument("parts", nargs="*", metavar="PART", help=", ".join(known))
    parser.add_argument("--n", type=int, default=20, help="starts, and a tenth of the keys")
    parser.add_argument("--samples", type=int, default=100_000, help="of the large run")
    arguments = parser.parse_args()
    parts = arguments.parts or known
    if unknown := set(parts) - set(known):
        parser.error(f"no such part: {', '.join(sorted(unknown))}")
    print(f"scripts/bench_tui.py {' '.join(sys.argv[1:])}; {machine()}")
    missed = False
    for part in parts:
        with tempfile.TemporaryDirectory(prefix="oj-") as place:
            folder, n = Path(place), arguments.n
            if part == "large":
                missed |= not large(folder, n, arguments.samples)
            else:
                missed |= not {"paint": paint, "keys": keys, "heavy": heavy}[part](folder, n)
    return int(missed)


if __name__ == "__main__":
    sys.exit(main())
