"""Owns letting a model think before it answers, within a budget of its own.

The thought is a call of its own: it ends by itself or with its budget, then its end is written for
the model, and the answer is asked for behind it. So a constraint never meets the thinking, and a
long thought never costs the answer its tokens. This needs an engine on the level of tokens; on
others one request does both, in the combinations that were seen to work.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

from offline_judge.domain.message import FinishReason, Sampling
from offline_judge.judge.calls import Call, Recorder
from offline_judge.judge.transport import Budget, RunMemory, Transport
from offline_judge.prompting.thinking import MARKS, closed_thought, thinks_in

_NONE = "The judge was to think and did not; its answers come without thought"
_CUT = "thinking ended at its budget of {} tokens, and was closed there"


@dataclass(frozen=True)
class Thinker:
    """Has a prompt thought about.

    Attributes:
        transport: Sends.
        recorder: Is told of the thought.
        memory: What was warned of.
        tokens: Budget of a thought.
    """

    transport: Transport
    recorder: Recorder
    memory: RunMemory
    tokens: int

    async def thought(self, call: Call, draw: Sampling, budget: Budget) -> Call:
        """The call with the thought behind its prompt, closed; the same where none came.

        Raises:
            UnscoredError: backend or overflow.
        """
        closings = tuple(marks.closing for marks in MARKS)
        sampling = draw.model_copy(update={"max_tokens": self.tokens, "stop": closings})
        found = await self.transport.generate(call, sampling, None, budget)
        said, marks = found.text, thinks_in(call.prompt.text, found.text)
        if marks is None or not said.strip():
            self._warn(_NONE)
            self.recorder.generated(call, found, draw.seed, "no thought")
            return call
        cut = found.finish_reason is FinishReason.LENGTH
        opened = said if said.lstrip().startswith(marks.opening) else f"{marks.opening}{said}"
        shown = found.model_copy(update={"text": f"{opened}{marks.closing}"})
        problem = _CUT.format(self.tokens) if cut else ""
        self.recorder.generated(call, shown, draw.seed, problem)
        prompt = await self.transport.prepare(
            call.rendered.messages, budget, thinking=True, begun=closed_thought(said, marks)
        )
        return replace(call, prompt=prompt)

    def _warn(self, message: str) -> None:
        if message not in self.memory.warned:
            self.memory.warned.add(message)
            self.recorder.warn(message)
