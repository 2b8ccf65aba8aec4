"""Whether a template knows a system turn, told by what it makes of one."""

from __future__ import annotations

import pytest

from offline_judge.weights.chat_templates import system_turn, thinking_switch

PLAIN = "{% for m in messages %}<{{ m['role'] }}>{{ m['content'] }}{% endfor %}"
REFUSING = (
    "{% if messages[0]['role'] == 'system' %}{{ raise_exception('no system') }}{% endif %}" + PLAIN
)
DROPPING = "{% for m in messages if m.role != 'system' %}{{ m.content }}{% endfor %}"
BREAKING = "{% for m in messages[-1:] %}{{ m.content }}{% break %}{% endfor %}"
# As the templates of Mistral's V3 models do.
MOVING = """{%- if messages[0]["role"] == "system" %}
    {%- set system_message = messages[0]["content"] %}
    {%- set loop_messages = messages[1:] %}
{%- else %}
    {%- set loop_messages = messages %}
{%- endif %}
{%- for message in loop_messages %}
    {%- if message["role"] == "user" %}
        {%- if loop.last and system_message is defined %}
            {{- "[INST]" + system_message + "\\n\\n" + message["content"] + "[/INST]" }}
        {%- else %}
            {{- "[INST]" + message["content"] + "[/INST]" }}
        {%- endif %}
    {%- else %}{{- message["content"] }}{% endif %}
{%- endfor %}"""


@pytest.mark.parametrize(
    ("template", "known"),
    [
        (PLAIN, True),
        (REFUSING, False),
        (DROPPING, False),
        (MOVING, False),
        ("{% if tools %}{{ tools | tojson }}{% endif %}{{ strftime_now('%Y') }}" + PLAIN, True),
        ("", None),
        ("{% for %}", None),
        ("{{ nothing.of.this }}", None),
        ("no words of the user", None),
        ("{{ ''.__class__.__mro__ }}" + PLAIN, None),
        (BREAKING, False),
    ],
)
def test_a_template_is_tried(template: str, known: bool | None) -> None:
    assert system_turn(template) is known


def test_the_switch_for_thinking_is_found() -> None:
    assert thinking_switch("{% if enable_thinking is defined %}") == "enable_thinking"
    assert thinking_switch(PLAIN) == ""
