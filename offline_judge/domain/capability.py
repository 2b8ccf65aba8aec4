"""What an engine was seen to do with given weights: the record of a probe."""

from __future__ import annotations

from typing import Literal

from offline_judge.domain.base import Frozen
from offline_judge.domain.message import Capabilities

Needle = Literal["found", "missed", "lost", "cut", "unclear", ""]
"""A word at the start of a full prompt: found again; not found by the model though the server read
every token; not found where the server does not show that it read them; dropped by the server; or
the model cannot do the task on a short prompt either. Empty where it was not tried."""


class EngineFacts(Frozen):
    """What is known of an engine once it is up.

    Attributes:
        version: As it tells.
        offloaded: Layers on a GPU, and layers in all; None where it does not say.
        notes: What a reader of the results must know.
    """

    version: str = ""
    offloaded: tuple[int, int] | None = None
    notes: tuple[str, ...] = ()


class CapabilityReport(Frozen):
    """One probe of weights, engine and template.

    Attributes:
        engine: Name of the backend.
        engine_version: As it tells.
        model: Name of the weights.
        asked_window: Tokens of a slot that were asked for.
        capabilities: What the engine does, as it was seen.
        needle: Whether the front of a full prompt is read.
        needle_tokens: Tokens of that prompt.
        bad_constraint_refused: A schema that cannot be compiled is an error, not free text.
        cached_tokens: Tokens of a repeated prompt that were not read anew, as reported; None where
            nothing is reported.
        cancel_s: Seconds from the cancel of a long answer to the end of a short one behind it.
        mixed_up: Two requests at once got each other's answers.
        prompt_rate: Prompt tokens read a second; 0 where it was not measured.
        generate_rate: Tokens written a second.
        offloaded: Layers on a GPU and layers in all; None where the engine does not say.
        notes: What a user should know beside that.
    """

    engine: str
    engine_version: str = ""
    model: str = ""
    asked_window: int = 0
    capabilities: Capabilities
    needle: Needle = ""
    needle_tokens: int = 0
    bad_constraint_refused: bool = False
    cached_tokens: int | None = None
    cancel_s: float | None = None
    mixed_up: bool = False
    prompt_rate: float = 0.0
    generate_rate: float = 0.0
    offloaded: tuple[int, int] | None = None
    notes: tuple[str, ...] = ()

    def problems(self) -> tuple[str, ...]:
        """What makes judgments of this engine unfit to be relied on, each with what to do."""
        found = []
        if self.mixed_up:
            found.append("it mixes up the answers of two requests: use another engine or version")
        if self.needle in ("lost", "cut"):
            found.append(
                f"it does not read the front of a prompt of {self.needle_tokens} tokens: set a "
                "smaller window, or give the server a larger one"
            )
        if self.needle == "missed":
            found.append(
                "the model itself loses sight of the front of a prompt of "
                f"{self.needle_tokens} tokens: keep prompts shorter, or take a larger model"
            )
        if not self.capabilities.constraints:
            found.append("it does not obey a JSON schema: answers are only checked afterwards")
        elif not self.bad_constraint_refused:
            found.append(
                "it answers freely where it does not understand a schema: answers are checked "
                "here, so none of them is believed, but more of them go unscored"
            )
        if not self.capabilities.label_probabilities:
            found.append(
                "it gives no label probabilities: verdicts are its answers, without a probability; "
                "use llama_cpp or vllm for probabilities"
            )
        return tuple(found)
