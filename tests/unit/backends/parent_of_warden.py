"""A run in miniature for `test_warden.py`: has the warden run a family, says who, waits."""

import asyncio
import os
import sys
from pathlib import Path

from offline_judge.backends.process import ChildProcess, ChildSpec, Message
from offline_judge.backends.programs import WARDEN


def read(line: str) -> Message | None:
    kind, _, pid = line.partition(" ")
    if kind in ("child", "grandchild"):
        sys.stdout.write(f"{pid}\n")
        sys.stdout.flush()
    return {"phase": "ready", "address": ""} if kind == "grandchild" else None


async def main() -> None:
    child = ChildProcess(
        ChildSpec(
            script=WARDEN,
            config={
                "parent_pid": os.getpid(),
                "argv": [sys.executable, str(Path(__file__).with_name("family.py"))],
                "env": {},
            },
            name="a family",
            phase_timeouts_s={},
            read_log=read,
        )
    )
    await child.start(lambda phase, detail="": None)
    sys.stdout.write(f"{child.pid}\n")
    sys.stdout.flush()
    if "stop" in sys.argv:
        await child.stop()
        return
    await asyncio.sleep(600)


if __name__ == "__main__":
    asyncio.run(main())
