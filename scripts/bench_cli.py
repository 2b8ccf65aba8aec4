"""How long `offline-judge --help` takes, in starts of a bare interpreter.

    .venv/bin/python scripts/bench_cli.py [--n 40]

Both are started in turn, so that a busy moment of the machine meets both.
"""

from __future__ import annotations

import argparse
import statistics
import subprocess
import sys
import time
from collections.abc import Sequence
from pathlib import Path

from benching import bootstrap, machine

LIMIT = 7.0


def seconds(command: Sequence[str]) -> float:
    """Wall time of one run of a command that must succeed."""
    began = time.perf_counter()
    subprocess.run(command, check=True, stdout=subprocess.DEVNULL)
    return time.perf_counter() - began


def main() -> int:
    """Measure and print; 1 where the limit is missed."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else "")
    parser.add_argument("--n", type=int, default=40, help="pairs of starts (at least 30)")
    n = max(parser.parse_args().n, 30)

    script = Path(sys.executable).parent / "offline-judge"
    program = [str(script)] if script.exists() else [sys.executable, "-m", "offline_judge"]
    commands = ([*program, "--help"], [sys.executable, "-c", "pass"])
    for command in commands:  # bytecode and file cache are warm for both
        seconds(command)
    pairs = [(seconds(commands[0]), seconds(commands[1])) for _ in range(n)]

    ratios = [help_s / bare_s for help_s, bare_s in pairs]
    ratio, (low, high) = statistics.median(ratios), bootstrap(ratios, statistics.median)
    help_ms, bare_ms = (1000 * statistics.median(column) for column in zip(*pairs, strict=True))
    print(f"help {help_ms:.0f} ms, bare interpreter {bare_ms:.1f} ms (medians, n = {n})")
    print(f"ratio {ratio:.2f} [{low:.2f}, {high:.2f}], limit {LIMIT:g}; {machine()}")
    return int(ratio > LIMIT)


if __name__ == "__main__":
    sys.exit(main())
