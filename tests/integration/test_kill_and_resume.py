"""A run killed at twenty random points and resumed each time judges every sample exactly once."""

from __future__ import annotations

import random
import shutil
import signal
import time
from pathlib import Path

from run_child import (
    POLL_S,
    Workplace,
    ended,
    final_counts,
    judged_again,
    probabilities,
    wait_until,
)

SAMPLES = 40
KILLS = 20
EARLY = 5
"""Kills at a random time after the start, wherever that finds the process."""
NEARLY_DONE = 8
"""With fewer samples left the rest of the kills meet a starting process, so that none is spent."""
TOKEN_S = 0.01
LANES = ("--lanes", "2")


def _kill_at_random(work: Workplace, command: tuple[str, ...], growth: float, delay: float) -> int:
    """Kill a child once its trace has grown, and a little later; gives its exit code."""
    child = work.start(*command)
    aim = work.trace_size() + growth
    wait_until(lambda: work.trace_size() >= aim, child)
    until = time.monotonic() + delay
    while child.poll() is None and time.monotonic() < until:
        time.sleep(POLL_S)
    child.kill()
    return ended(child)[0]


def test_killed_twenty_times_every_sample_is_judged_once(tmp_path: Path) -> None:
    whole, killed = Workplace(tmp_path / "w1"), Workplace(tmp_path / "w2")
    for work in (whole, killed):
        work.write_data(SAMPLES)
        work.write_script(latency_s=TOKEN_S)
    judge = f"scripted:{whole.path / 'script.json'}"
    code, _, err = whole.finish(*whole.run_arguments(judge, *LANES))
    assert code == 0, err
    # The same installation, so that the prompts are the same to the letter.
    (killed.path / "data").mkdir()
    shutil.copy2(whole.path / "data" / "secret", killed.path / "data" / "secret")

    draw = random.Random(20261130)
    step = 1.2 * whole.trace_size() / KILLS
    early = set(draw.sample(range(KILLS), EARLY))
    codes = []
    for number in range(KILLS):
        begun = killed.trace_size() > 0
        command = ("resume", "last") if begun else killed.run_arguments(judge, *LANES)
        growth, delay = draw.uniform(0, step), draw.uniform(0, 0.05)
        if number in early:
            growth, delay = 0.0, draw.uniform(0, 1.4)
        if SAMPLES - killed.finished() < NEARLY_DONE:
            growth, delay = 0.0, draw.uniform(0, 0.3)
        codes.append(_kill_at_random(killed, command, growth, delay))
    assert codes == [-signal.SIGKILL] * KILLS

    assert 0 < killed.finished() < SAMPLES
    code, _, err = killed.finish("resume", "last")
    assert code == 0, err
    assert "reused" in err

    directory = killed.newest()
    events = list(directory.events())
    counts = final_counts(events)
    assert counts == {f"s{n:02}": 1 for n in range(SAMPLES)}
    assert judged_again(events) == []
    assert [event.seq for event in events] == list(range(len(events)))
    assert probabilities(directory) == probabilities(whole.newest())
    assert directory.state().summary().status == "completed"
