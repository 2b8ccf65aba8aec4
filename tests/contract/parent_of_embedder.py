"""A process that embeds, for `test_embedder_process.py`: tells the engine's pid and waits."""

import sys
from pathlib import Path

from test_embedder_contract import make

from offline_judge.backends.embed import GgufEmbedder

if __name__ == "__main__":
    embedder = make("gguf", Path(sys.argv[1]))
    assert isinstance(embedder, GgufEmbedder)
    assert embedder.engine.child is not None
    sys.stdout.write(f"{embedder.engine.child.pid}\n")
    sys.stdout.flush()
    sys.stdin.read()
