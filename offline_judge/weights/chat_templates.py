"""What a chat template does with a system turn, found out by filling it."""

from __future__ import annotations

import json
from typing import Any, NoReturn

from jinja2 import TemplateError
from jinja2.sandbox import ImmutableSandboxedEnvironment

THINKING = "enable_thinking"
_SYSTEM, _FIRST, _ANSWER, _SECOND = "SYSTEM-TEXT", "FIRST-TEXT", "ANSWER-TEXT", "SECOND-TEXT"
# What a template of somebody else's can raise while it is filled.
_FAULTS = (
    TemplateError,
    TypeError,
    ValueError,
    LookupError,
    AttributeError,
    ArithmeticError,
    RecursionError,
)


def system_turn(source: str) -> bool | None:
    """Whether a template keeps a system turn where it stands; None where that cannot be told.

    One that drops it does not, nor one that refuses it, nor one that moves it into the last of the
    user's turns: then a conversation that goes on would begin anew at each turn.
    """
    user = {"role": "user", "content": _FIRST}
    if not source or _FIRST not in (_filled(source, [user]) or ""):
        return None
    system = {"role": "system", "content": _SYSTEM}
    if _SYSTEM not in (_filled(source, [system, user]) or ""):
        return False
    later = [{"role": "assistant", "content": _ANSWER}, {"role": "user", "content": _SECOND}]
    longer = _filled(source, [system, user, *later]) or ""
    return not longer or -1 < longer.find(_SYSTEM) < longer.find(_FIRST)


def thinking_switch(source: str) -> str:
    """The template's variable that turns thinking on and off; empty where it has none."""
    return THINKING if THINKING in source else ""


def _filled(source: str, messages: list[dict[str, str]]) -> str | None:
    """The prompt, as engines make it; None where the template refuses or cannot be used."""
    environment = ImmutableSandboxedEnvironment(
        trim_blocks=True, lstrip_blocks=True, extensions=["jinja2.ext.loopcontrols"]
    )
    environment.filters["tojson"] = _to_json
    try:
        return environment.from_string(source).render(
            messages=messages,
            add_generation_prompt=True,
            bos_token="",
            eos_token="",
            raise_exception=_refuse,
            strftime_now=lambda form: form,
        )
    except _FAULTS:
        return None


def _refuse(message: str) -> NoReturn:
    raise TemplateError(message)


def _to_json(value: Any, indent: int | None = None) -> str:
    return json.dumps(value, ensure_ascii=False, indent=indent)
