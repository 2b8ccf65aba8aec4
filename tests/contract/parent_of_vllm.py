"""A run in miniature for `test_vllm_process.py`: starts vLLM, generates, waits for death."""

import asyncio
import sys
from pathlib import Path

from offline_judge.backends.engine import Engine
from offline_judge.backends.options import EngineOptions
from offline_judge.backends.vllm import VllmBackend
from offline_judge.domain.message import Message, Sampling


async def main() -> None:
    python, folder = sys.argv[1:3]
    options = EngineOptions(
        Path(folder), "small", window=512, python=python, cache_bytes_per_token=23_040
    )
    backend = VllmBackend(options)
    await backend.start(lambda phase, detail="": None)
    prompt = await backend.prepare([Message(role="user", content="Tell a very long story.")])
    async for _ in backend.generate(prompt, Sampling(max_tokens=400, temperature=1.0)):
        assert isinstance(backend.engine, Engine)
        assert backend.engine.child is not None
        sys.stdout.write(f"{backend.engine.child.pid}\n")
        sys.stdout.flush()


if __name__ == "__main__":
    asyncio.run(main())
