"""A process killed while it writes evidence: whatever it acknowledged is there, and searchable."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

from offline_judge.domain.evidence import Passage
from offline_judge.retrieval.embedding.hashing import HashingEmbedder
from offline_judge.retrieval.evidence.chroma import ChromaIndex, Events
from offline_judge.retrieval.evidence.lock import IndexLock
from offline_judge.retrieval.evidence.model import Question
from offline_judge.retrieval.evidence.record import Record
from offline_judge.retrieval.evidence.vectors import Matrix, Space, VectorTable, embed_missing

ROOT = Path(__file__).resolve().parents[2]
COUNT = 4000

WRITER = """
import sys
from pathlib import Path
from offline_judge.domain.evidence import Passage, SearchHit
from offline_judge.retrieval.embedding.hashing import HashingEmbedder
from offline_judge.retrieval.evidence.chroma import ChromaIndex, Events
from offline_judge.retrieval.evidence.model import Question
from offline_judge.retrieval.evidence.record import Record
from offline_judge.retrieval.evidence.vectors import Space, VectorTable, embed_missing

folder, stage = Path(sys.argv[1]), sys.argv[2]
record, embedder = Record(folder), HashingEmbedder(32)
table = VectorTable(record, Space(embedder.id, 32))

def say(number, of=0):
    print(number, flush=True)

if stage == "record":
    for n in range(100_000):
        passages = [Passage(id=f"{n}-{k}", document_id=f"{n}", title="", text=f"Text {n} {k}.")
                    for k in range(3)]
        hits = [SearchHit(rank=k, score=1, passage=p) for k, p in enumerate(passages, 1)]
        record.keep(Question("corpus", {}, f"query {n}"), hits, limit=3)
        say(n + 1)
elif stage == "embedding":
    done, last, total = 1, 0, 0
    while done:
        done, last = embed_missing(table, embedder, last, 16)
        total += done
        say(total)
else:
    index = ChromaIndex(table, folder / "chroma", Events(progress=say))
    assert index.open()
    say(0)
    while True:
        index.clear()
        index.fill()
"""


def killed_after(folder: Path, stage: str, wanted: int) -> int:
    """Have a child write until it said that so much is done, and kill it; what it said last."""
    with subprocess.Popen(
        [sys.executable, "-c", WRITER, str(folder), stage],
        env=os.environ | {"PYTHONPATH": str(ROOT)},
        text=True,
        stdout=subprocess.PIPE,
    ) as child:
        assert child.stdout is not None
        said = -1
        while said < wanted:
            said = int(child.stdout.readline())
        child.kill()
        rest = child.stdout.read().split()
    assert child.returncode == -signal.SIGKILL
    # An index goes on from the start again and again; the others only grow.
    return int(rest[-1]) if rest and stage != "chroma" else said


def passages(count: int) -> list[Passage]:
    return [
        Passage(id=f"p{n}", document_id=f"d{n}", title="", text=f"Of matter {n} and {n * n}.")
        for n in range(count)
    ]


def embed_rest(table: VectorTable, embedder: HashingEmbedder) -> int:
    """Embed what has no vector; how many that were."""
    done, last, total = 1, 0, 0
    while done:
        done, last = embed_missing(table, embedder, last, 500)
        total += done
    return total


@pytest.mark.parametrize("wanted", [1, 40, 300])
def test_results_that_were_kept_outlive_a_kill(tmp_path: Path, wanted: int) -> None:
    said = killed_after(tmp_path, "record", wanted)
    assert said >= wanted
    record = Record(tmp_path)
    for n in range(said):
        answer = record.look_up(Question("corpus", {}, f"query {n}"), limit=3)
        assert answer is not None
        assert [hit.passage.id for hit in answer.hits] == [f"{n}-{k}" for k in range(3)]
    stats = record.stats()
    # The one in hand may be there or not, but not by halves.
    assert stats.queries - said in (0, 1)
    assert stats.passages == 3 * stats.queries
    assert record.database.one("PRAGMA integrity_check") == "ok"
    words = record.database.rows("SELECT count(*) FROM words WHERE words MATCH '\"text\"'")
    assert words == [(stats.passages,)]
    record.close()


@pytest.mark.parametrize("wanted", [16, 800])
def test_vectors_that_were_kept_outlive_a_kill_and_embedding_goes_on(
    tmp_path: Path, wanted: int
) -> None:
    record = Record(tmp_path)
    record.add_passages(passages(COUNT))
    said = killed_after(tmp_path, "embedding", wanted)
    embedder = HashingEmbedder(32)
    table = VectorTable(record, Space(embedder.id, 32))
    kept = table.count()
    assert said <= kept < COUNT
    assert kept % 16 == 0
    assert embed_rest(table, embedder) == COUNT - kept
    numbers, vectors = table.of(range(1, COUNT + 1))
    texts = [one.text for one in passages(COUNT)]
    right = embedder.embed([texts[n - 1] for n in numbers], kind="passage")
    assert len(numbers) == COUNT
    assert np.allclose(vectors, right, atol=1e-6)
    record.close()


@pytest.mark.parametrize("wanted", [0, 1000, 3000, COUNT])
def test_an_index_killed_while_it_is_filled_is_finished_without_embedding(
    tmp_path: Path, wanted: int
) -> None:
    record = Record(tmp_path)
    record.add_passages(passages(COUNT))
    embedder = HashingEmbedder(32)
    table = VectorTable(record, Space(embedder.id, 32))
    embed_rest(table, embedder)
    assert killed_after(tmp_path, "chroma", wanted) >= wanted
    told: list[str] = []
    index = ChromaIndex(table, tmp_path / "chroma", Events(told=told.append))
    wait_for_lock(tmp_path / "chroma" / "lock")
    assert index.open()
    index.fill()
    exact = Matrix(table)
    exact.refresh()
    found = 0
    for number in range(50):
        query = embedder.embed([f"question of matter {number}"], kind="query")[0]
        near, cosines = index.nearest(query, 5, None)
        right, best = exact.nearest(query, 5)
        known = exact.cosines(query, near)
        assert np.allclose(cosines, [known[int(n)] for n in near], atol=1e-5)
        # Equal vectors may stand in for one another.
        found += int((cosines >= best[-1] - 1e-5).sum())
        assert len(near) == len(right)
    index.close()
    record.close()
    assert found / 250 >= 0.98


def wait_for_lock(path: Path) -> None:
    """A killed process's Chroma ends right after it, and with it the lock."""
    import fcntl

    assert IndexLock(path).holder()
    with path.open("rb") as file:
        fcntl.flock(file, fcntl.LOCK_EX)
