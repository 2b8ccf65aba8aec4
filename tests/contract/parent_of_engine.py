"""A run in miniature for `test_llama_process.py`: starts the engine, generates, waits for death."""

import asyncio
import sys
from pathlib import Path

from offline_judge.backends.engine import Engine
from offline_judge.backends.llama_cpp import LlamaCppBackend
from offline_judge.backends.options import EngineOptions
from offline_judge.domain.message import Message, Sampling


async def main() -> None:
    options = EngineOptions(Path(sys.argv[1]), "small", window=2048, parameters_b=0.135)
    backend = LlamaCppBackend(options)
    await backend.start(lambda phase, detail="": None)
    prompt = await backend.prepare([Message(role="user", content="Tell a very long story.")])
    async for _ in backend.generate(prompt, Sampling(max_tokens=1500, temperature=1.0)):
        assert isinstance(backend.engine, Engine)
        child = backend.engine.child
        assert child is not None
        sys.stdout.write(f"{child.pid}\n")
        sys.stdout.flush()


if __name__ == "__main__":
    asyncio.run(main())
