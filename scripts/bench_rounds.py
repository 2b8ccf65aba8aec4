"""What later rounds find where one search missed, and what that does to the verdict.

    python scripts/bench_rounds.py --data FILE --gold FILE --search corpus:NAME
                                   [--limit N] [--minutes M] [--out DIR]

Takes the samples of those questions whose passage with the answer is in the corpus, while a search
by words with the question itself does not have it among the results of one round. On these a study
compares SAGE with three, two and one rounds, without refinement, and the single pass, all by words:
the fused search misses too seldom to tell anything. The same command goes on where it stopped.
FILE of --gold: JSONL with `question` and `gold_passage_id`.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import sys
import tempfile
from collections.abc import Sequence
from pathlib import Path

from bench_loop import Watch
from benching import machine

from offline_judge import api, wiring
from offline_judge.datasets.readers import read_samples
from offline_judge.domain.sample import Sample
from offline_judge.protocols import SearchProvider
from offline_judge.settings import load_settings
from offline_judge.studies.gold import Gold, read_gold

CONDITIONS = ("sage", "sage-n2", "sage-n1", "sage-norefine", "sage-single")
RESULTS = 3


async def missed(
    samples: Sequence[Sample], gold: Gold, search: SearchProvider
) -> tuple[list[Sample], int]:
    """Samples of the questions that one search misses, and how many questions it was tried on."""
    hit: dict[str, bool] = {}
    for question in dict.fromkeys(sample.question for sample in samples):
        if wanted := gold.of(question):
            hits = await search.search(question, limit=RESULTS)
            ids = {name for one in hits for name in (one.passage.id, one.passage.document_id)}
            hit[question] = bool(wanted & ids)
    return [sample for sample in samples if hit.get(sample.question) is False], len(hit)


def main() -> int:
    """Choose, compare and print."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else "")
    parser.add_argument("--data", type=Path, required=True, help="labelled samples")
    parser.add_argument("--gold", type=Path, required=True, help="passages with the answers")
    parser.add_argument("--search", required=True, metavar="corpus:NAME")
    parser.add_argument("--judge", help="model card; default: the settings' judge")
    parser.add_argument("--limit", type=int, help="samples at most")
    parser.add_argument("--minutes", type=float, help="no further question after this time")
    parser.add_argument("--out", type=Path, help="folder for report and scores")
    given = parser.parse_args()
    settings = load_settings({"judge": given.judge, "search": given.search, "embedder": "none"})
    search = wiring.open_search(settings, Watch())
    samples, asked = asyncio.run(
        missed(read_samples(given.data).samples, read_gold(given.gold), search)
    )
    search.close()
    questions = len({sample.question for sample in samples})
    print(f"one search misses {questions} of {asked} questions: {len(samples)} samples", flush=True)
    with tempfile.TemporaryDirectory() as folder:
        data = Path(folder) / f"missed-{given.data.name}"
        with data.open("w", encoding="utf-8") as file:
            for sample in samples:
                file.write(json.dumps(sample.model_dump(mode="json")) + "\n")
        view = api.study_sage(
            api.StudyRequest(
                data=data,
                conditions=CONDITIONS,
                limit=given.limit,
                minutes=given.minutes,
                gold=given.gold,
                out=given.out,
            ),
            settings,
        )
    print(f"{settings.judge}, {settings.search}, {given.data.name}; {machine()}")
    print(view.markdown)
    if view.failure is not None:
        raise view.failure
    return 0


if __name__ == "__main__":
    sys.exit(main())
