"""Writing the responses: the candidate answers each question once, sampled raw."""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import Sequence
from dataclasses import asdict, dataclass, field
from typing import Any

from offline_judge.domain.events import ResponseWritten
from offline_judge.domain.judgment import UnscoredReason
from offline_judge.domain.message import FinishReason, Sampling
from offline_judge.domain.sample import Sample
from offline_judge.errors import BackendError, BackendStartError, OfflineJudgeError, UnscoredError
from offline_judge.judge.calls import Call, Recorder
from offline_judge.judge.transport import Budget, RunMemory, Transport
from offline_judge.prompting.library import TemplateLibrary
from offline_judge.prompting.thinking import split_thinking
from offline_judge.protocols import Backend, TraceSink
from offline_judge.runner.board import Board
from offline_judge.runner.engine import Engine, EngineLog
from offline_judge.runner.listeners import SafeListeners
from offline_judge.runner.loop import SampleTrace
from offline_judge.runner.stopping import Stop, StoppedError, StopSwitch
from offline_judge.runner.watch import WatchedBackend

NAMESPACE = "candidate"
STAGE = "candidate"
MAX_TOKENS = 128
_LEAST_TOKENS = 16


@dataclass(frozen=True)
class Drawing:
    """How answers are drawn; greedy, so that a run can be made again."""

    temperature: float = 0.0
    top_p: float = 1.0
    max_tokens: int = MAX_TOKENS
    seed: int = 0

    def record(self) -> dict[str, Any]:
        """All of it, for the run's manifest."""
        return asdict(self)


@dataclass(frozen=True)
class Candidate:
    """The model that writes the responses.

    Attributes:
        engine: Not started yet; on a small machine it must not run beside the judge's.
        library: Its prompts.
        drawing: How it is sampled.
    """

    engine: Engine
    library: TemplateLibrary
    drawing: Drawing = Drawing()


@dataclass(frozen=True)
class Desk:
    """What the writing works with.

    Attributes:
        trace: Takes every event.
        listeners: Told what the engine does and how many responses are written.
        switch: Stops and pauses it as it does judging.
        board: Told what each request does now.
        lanes: Questions answered at the same time.
        time_limit_s: Seconds after which no question is taken, pauses apart; None without a limit.
    """

    trace: TraceSink
    listeners: SafeListeners
    switch: StopSwitch
    board: Board = field(default_factory=Board)
    lanes: int = 1
    time_limit_s: float | None = None


async def write_missing(
    candidate: Candidate, samples: Sequence[Sample], desk: Desk
) -> dict[str, ResponseWritten]:
    """Bring the candidate's engine up, let it answer the samples' questions, and end it.

    Returns:
        Sample id to what was written; those that a limit or the switch left out are missing.

    Raises:
        OfflineJudgeError: the engine does not start, or nothing more can be recorded.
    """
    log = EngineLog(candidate.engine, desk.trace, desk.listeners, role=STAGE)
    backend = WatchedBackend(candidate.engine.backend, desk.board, desk.switch, log.answered)
    try:
        await desk.switch.guard(backend.start(log), until=Stop.DRAIN)
        log.answered()
        return await Author(candidate, backend, desk).write(samples)
    except StoppedError:
        return {}
    finally:
        await backend.close()


class Author:
    """Writes the responses of samples, a `ResponseWritten` each.

    A candidate is sampled raw: no second attempt at an answer and no cache. Only a request that
    the engine failed is sent again, as a judge's is.
    """

    def __init__(self, candidate: Candidate, backend: Backend, desk: Desk) -> None:
        self._candidate = candidate
        self._backend = backend
        self._desk = desk
        self._memory = RunMemory()
        self._waiting: deque[Sample] = deque()
        self._written: dict[str, ResponseWritten] = {}
        self._failure: OfflineJudgeError | None = None

    async def write(self, samples: Sequence[Sample]) -> dict[str, ResponseWritten]:
        """Answer the questions in order, until a limit or the switch ends it.

        Returns:
            Sample id to what was written, for those that were taken and not given up.

        Raises:
            OfflineJudgeError: nothing more can be recorded, or the engine not be brought up again.
        """
        self._waiting = deque(samples)
        limit = self._desk.time_limit_s
        deadline = None if limit is None else self._desk.switch.working_clock() + limit
        self._tell(len(samples))
        async with asyncio.TaskGroup() as lanes:
            for lane in range(min(self._desk.lanes, len(samples))):
                lanes.create_task(self._work(lane, deadline, len(samples)))
        if self._failure is not None:
            raise self._failure
        return self._written

    async def _work(self, lane: int, deadline: float | None, total: int) -> None:
        desk = self._desk
        while self._waiting and desk.switch.state is Stop.GO:
            if deadline is not None and desk.switch.working_clock() >= deadline:
                return
            sample = self._waiting.popleft()
            desk.board.assign(lane, sample.id)
            try:
                event = await desk.switch.guard(self._answer(lane, sample), until=Stop.CANCEL)
                desk.trace.emit(event)
            except StoppedError:
                return
            except OfflineJudgeError as error:
                self._failure = self._failure or error
                desk.switch.cancel()
                return
            self._written[sample.id] = event
            self._tell(total)

    def _tell(self, total: int) -> None:
        done = f"{len(self._written):,} of {total:,} responses written"
        self._desk.listeners.phase(STAGE, done)

    async def _answer(self, lane: int, sample: Sample) -> ResponseWritten:
        name = self._candidate.engine.model
        try:
            text, finish = await self._generate(lane, sample)
        except UnscoredError as error:
            reason, detail = error.reason, error.detail
        except BackendStartError:
            raise
        except BackendError as error:
            reason, detail = str(UnscoredReason.BACKEND), str(error)
        else:
            missing = "" if text else str(UnscoredReason.EMPTY)
            return ResponseWritten(
                sample_id=sample.id,
                candidate=name,
                response=text,
                finish_reason=finish,
                reason=missing,
                detail=missing and "the candidate wrote nothing",
            )
        return ResponseWritten(
            sample_id=sample.id,
            candidate=name,
            reason=reason,
            detail=f"no response could be written: {detail}",
        )

    async def _generate(self, lane: int, sample: Sample) -> tuple[str, FinishReason]:
        """The answer without its thinking, and why it ended.

        Raises:
            UnscoredError: overflow or backend.
        """
        backend, drawing = self._backend, self._candidate.drawing
        recorder = Recorder(sample.id, SampleTrace(self._desk.trace, sample.id))
        transport = Transport(backend, self._memory, lane, recorder)
        rendered = self._candidate.library.render(
            f"{NAMESPACE}/{STAGE}", {"question": sample.question}
        )
        budget = Budget()
        prompt = await transport.prepare(rendered.messages, budget)
        window = backend.capabilities.window
        room = min(drawing.max_tokens, window - prompt.tokens)
        if room < min(_LEAST_TOKENS, drawing.max_tokens):
            raise UnscoredError(
                UnscoredReason.OVERFLOW,
                f"the question's {prompt.tokens} tokens leave no room for an answer in the "
                f"candidate's window of {window}",
            )
        call = Call(STAGE, 0, rendered, prompt)
        sampling = Sampling(
            temperature=drawing.temperature,
            top_p=drawing.top_p,
            seed=drawing.seed,
            max_tokens=room,
        )
        generation = await transport.generate(call, sampling, None, budget)
        recorder.generated(call, generation, drawing.seed)
        return split_thinking(generation.text)[1].strip(), generation.finish_reason
