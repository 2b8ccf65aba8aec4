"""The GGUF embedder's real engine: it ends with `close`, and with a parent that is killed."""

from __future__ import annotations

import os
import subprocess
import sys
import time
from pathlib import Path

import pytest
from test_embedder_contract import gguf_card

from offline_judge.backends.embed import GgufEmbedder
from offline_judge.errors import WeightsError

pytestmark = [
    pytest.mark.engine,
    pytest.mark.skipif(sys.platform != "linux", reason="reads /proc"),
]
ROOT = Path(__file__).resolve().parents[2]


def _lives(pid: int) -> bool:
    try:
        state = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0]
    except (FileNotFoundError, ProcessLookupError):
        return False
    return state not in "ZX"


def _gone_within(pid: int, seconds: float) -> bool:
    deadline = time.monotonic() + seconds
    # Not our child, so there is no event to wait for.
    while _lives(pid):
        if time.monotonic() > deadline:
            return False
        time.sleep(0.02)
    return True


def test_close_leaves_no_engine(small_weights: Path) -> None:
    embedder = GgufEmbedder(gguf_card(), small_weights, 1)
    child = embedder.engine.child
    assert child is not None
    assert child.pid is not None
    assert _lives(child.pid)
    embedder.close()

    assert not _lives(child.pid)


def test_no_engine_outlives_a_killed_process(small_weights: Path) -> None:
    script = Path(__file__).with_name("parent_of_embedder.py")
    path = os.pathsep.join([str(ROOT), str(script.parent)])
    with subprocess.Popen(
        [sys.executable, str(script), str(small_weights)],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        env={**os.environ, "PYTHONPATH": path},
    ) as parent:
        assert parent.stdout is not None
        pid = int(parent.stdout.readline())
        assert _lives(pid)
        parent.kill()

    assert _gone_within(pid, 5.0)


def test_a_model_cut_short_is_refused_before_the_engine_starts(
    small_weights: Path, tmp_path: Path
) -> None:
    path = tmp_path / "cut.gguf"
    path.write_bytes(small_weights.read_bytes()[:50_000_000])
    with pytest.raises(WeightsError, match="no usable GGUF model"):
        GgufEmbedder(gguf_card(), path, 1)


def test_the_cards_pooling_reaches_the_engine(small_weights: Path) -> None:
    found = []
    for pooling in ("mean", "last"):
        how = gguf_card().embedding
        assert how is not None
        how = how.model_copy(update={"pooling": pooling})
        embedder = GgufEmbedder(gguf_card().model_copy(update={"embedding": how}), small_weights, 1)
        found.append(embedder.embed(["The river reaches the sea."], kind="passage")[0])
        embedder.close()

    assert found[0] @ found[1] < 0.99
