"""A supervised child process: spawned, watched while it starts, ended for certain."""

from __future__ import annotations

import asyncio
import contextlib
import json
import signal
import sys
from collections import deque
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from offline_judge.errors import BackendStartError
from offline_judge.protocols import StartListener

_TAIL_LINES = 200
_TERMINATE_S = 5.0
_POLL_S = 0.2

Message = dict[str, Any]


@dataclass(frozen=True)
class ChildSpec:
    """What to run.

    Attributes:
        script: A Python file that reads one line of JSON from stdin and reports its phases, one
            JSON object a line, on stdout; `ready` is the last, `failed` may come instead.
        config: That line.
        name: For messages.
        phase_timeouts_s: Longest wait from one phase to the next, by phase.
        python: Interpreter that runs the script; empty for this one.
        read_log: Finds a phase in a line of the log, for programs that report none themselves.
        poll: Asks whether it is ready, for programs that do not say so: its fields, or None.
    """

    script: Path
    config: Mapping[str, Any]
    name: str
    phase_timeouts_s: Mapping[str, float]
    python: str = ""
    read_log: Callable[[str], Message | None] | None = None
    poll: Callable[[], Awaitable[Message | None]] | None = None


class ChildProcess:
    """One child, in a session of its own so that a terminal's Ctrl-C does not reach it.

    The child ends with its stdin. Where the system can tell it that its parent died, that follows
    the thread that spawned it: call `start` from a thread that lives as long as the run.
    """

    def __init__(self, spec: ChildSpec) -> None:
        self._spec = spec
        self._process: asyncio.subprocess.Process | None = None
        self._tail: deque[str] = deque(maxlen=_TAIL_LINES)
        self._readers: list[asyncio.Task[None]] = []
        self._phases: asyncio.Queue[Message | None] = asyncio.Queue()

    @property
    def alive(self) -> bool:
        """The process was started and has not ended."""
        return self._process is not None and self._process.returncode is None

    @property
    def pid(self) -> int | None:
        """Process id, None before the start."""
        return self._process.pid if self._process else None

    @property
    def exit_text(self) -> str:
        """How it ended, in words."""
        code = self._process.returncode if self._process else None
        if code is None:
            return "it is running"
        if code < 0:
            return f"killed by {signal.Signals(-code).name}"
        return f"exit status {code}"

    @property
    def log(self) -> tuple[str, ...]:
        """The last lines of its stderr."""
        return tuple(self._tail)

    def first_errors(self, lines: int = 3) -> str:
        """The first errors in its log, which name the cause of those that follow."""
        return self._logged_errors(lines) or self.last_words()

    def last_words(self, lines: int = 4) -> str:
        """The last lines of its stderr that are more than information."""
        return "; ".join([line.strip() for line in self._tail if " I " not in line][-lines:])

    async def start(self, listener: StartListener) -> Message:
        """Spawn, and wait until it is ready; gives its phases' fields, merged.

        Raises:
            BackendStartError: it ended, or stayed in one phase for too long; it is gone then.
        """
        listener("spawn", self._spec.name)
        try:
            await self._spawn()
            return await self._await_ready(listener)
        except BaseException:
            await self.stop(graceful=False)
            raise

    async def wait(self) -> None:
        """Wait until it has ended and its output is read."""
        if self._process is not None:
            await self._process.wait()
            await asyncio.wait(self._readers, timeout=1.0)

    async def stop(self, *, graceful: bool = True) -> None:
        """End it: close stdin, then SIGTERM, then SIGKILL. Safe to call twice."""
        process = self._process
        if process is None:
            return
        if graceful:
            if process.stdin is not None:
                process.stdin.close()
            if not await self._ended_within(_TERMINATE_S):
                self._signal(signal.SIGTERM)
                await self._ended_within(_TERMINATE_S)
        self.kill()
        await self.wait()
        for reader in self._readers:
            reader.cancel()
        await asyncio.gather(*self._readers, return_exceptions=True)

    def kill(self) -> None:
        """Send SIGKILL; `wait` tells when it is gone."""
        self._signal(signal.SIGKILL)

    async def _spawn(self) -> None:
        spec = self._spec
        try:
            # -P: no file that lies beside the script or in the working directory is imported.
            process = await asyncio.create_subprocess_exec(
                spec.python or sys.executable,
                "-P",
                str(spec.script),
                stdin=asyncio.subprocess.PIPE,
                stdout=asyncio.subprocess.PIPE,
                stderr=asyncio.subprocess.PIPE,
                start_new_session=True,
            )
        except OSError as error:
            raise BackendStartError(f"Cannot start {spec.name}: {error}") from error
        self._process = process
        assert process.stdin is not None
        assert process.stdout is not None
        assert process.stderr is not None
        self._readers = [
            asyncio.create_task(self._read_phases(process.stdout)),
            asyncio.create_task(self._read_log(process.stderr)),
        ]
        # A child that is gone already is noticed by `_await_ready`, with its words.
        with contextlib.suppress(BrokenPipeError, ConnectionResetError):
            process.stdin.write(json.dumps(dict(spec.config)).encode() + b"\n")
            await process.stdin.drain()

    async def _await_ready(self, listener: StartListener) -> Message:
        poller = asyncio.create_task(self._poll())
        try:
            return await self._follow_phases(listener)
        finally:
            poller.cancel()
            await asyncio.gather(poller, return_exceptions=True)

    async def _poll(self) -> None:
        """Report `ready` for a program that only shows it when it is asked."""
        ask = self._spec.poll
        while ask is not None and self.alive:
            if (found := await ask()) is not None:
                self._phases.put_nowait({**found, "phase": "ready"})
                return
            await asyncio.sleep(_POLL_S)

    async def _follow_phases(self, listener: StartListener) -> Message:
        phase, merged = "spawn", Message()
        while phase != "ready":
            limit = self._spec.phase_timeouts_s.get(phase, 60.0)
            try:
                message = await asyncio.wait_for(self._phases.get(), limit)
            except TimeoutError:
                raise BackendStartError(
                    f"{self._spec.name} stayed in phase `{phase}` for {limit:.0f} s",
                    where=self.first_errors(),
                ) from None
            if message is None or message.get("phase") == "failed":
                await self.wait()
                raise self._not_started(message or {})
            phase = str(message.pop("phase", phase))
            detail = str(message.pop("detail", "")) or self._spec.name
            merged |= message
            if phase != "ready":
                listener(phase, detail)
        return merged

    def _logged_errors(self, lines: int = 3) -> str:
        errors = [line.split(" E ", 1)[1].strip() for line in self._tail if " E " in line]
        return "; ".join(errors[:lines])

    def _not_started(self, message: Message) -> BackendStartError:
        """Why it did not start: by its log, which names the cause, else by its own report."""
        reported, logged = str(message.get("error", "")), self._logged_errors()
        if reported and not logged:
            what = f"{self._spec.name} did not start: {reported}"
            return BackendStartError(what, remedy=str(message.get("remedy", "")))
        return BackendStartError(
            f"{self._spec.name} did not start ({self.exit_text})",
            where=logged or self.last_words(),
        )

    async def _read_phases(self, stream: asyncio.StreamReader) -> None:
        async for line in _lines(stream):
            try:
                message = json.loads(line)
            except ValueError:
                self._tail.append(line)
                continue
            if isinstance(message, dict):
                self._phases.put_nowait(message)
        self._phases.put_nowait(None)

    async def _read_log(self, stream: asyncio.StreamReader) -> None:
        read = self._spec.read_log
        async for line in _lines(stream):
            self._tail.append(line)
            if read is not None and (found := read(line)) is not None:
                self._phases.put_nowait(found)

    async def _ended_within(self, seconds: float) -> bool:
        assert self._process is not None
        try:
            await asyncio.wait_for(self._process.wait(), seconds)
        except TimeoutError:
            return False
        return True

    def _signal(self, number: signal.Signals) -> None:
        if self._process is not None and self._process.returncode is None:
            with contextlib.suppress(ProcessLookupError):
                self._process.send_signal(number)


async def _lines(stream: asyncio.StreamReader) -> AsyncIterator[str]:
    """Lines of any length; the rest at the end of the stream counts as one."""
    rest = b""
    while chunk := await stream.read(65536):
        *lines, rest = (rest + chunk).split(b"\n")
        for line in lines:
            yield line.decode("utf-8", "replace")
    if rest:
        yield rest.decode("utf-8", "replace")
