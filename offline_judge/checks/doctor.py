"""Looks at everything a run may need, and says what to do about what is lacking."""

from __future__ import annotations

from dataclasses import replace

from offline_judge import wiring
from offline_judge.checks.findings import Check, Finding, findings
from offline_judge.checks.machine import check_devices, check_machine, check_storage
from offline_judge.checks.parts import (
    check_corpora,
    check_engines,
    check_packages,
    check_settings,
    check_weights,
)
from offline_judge.checks.servers import check_servers
from offline_judge.protocols import StartListener
from offline_judge.settings import Settings

CHECKS: tuple[tuple[str, Check], ...] = (
    ("machine", check_machine),
    ("devices", check_devices),
    ("packages", check_packages),
    ("weights", check_weights),
    ("engines", check_engines),
    ("servers", check_servers),
    ("corpora", check_corpora),
    ("storage", check_storage),
    ("settings", check_settings),
)


def examine(
    settings: Settings, *, probe: bool = False, listener: StartListener | None = None
) -> list[Finding]:
    """All findings, in the order of the checks.

    Args:
        settings: What is looked at.
        probe: Start the judge's engine and try out all it promises first.
        listener: Told how far the probe is.
    """
    found: list[Finding] = []
    if probe:
        found += findings([("probe", _probing(listener or _silent))], settings)
    others = findings(CHECKS, settings)
    told = {one.text for one in others}
    return others + [one for one in found if one.state == "problem" and one.text not in told]


def _probing(listener: StartListener) -> Check:
    def run(settings: Settings) -> list[Finding]:
        # Two slots at least, because what gets mixed up takes two.
        wide = replace(settings, lanes=max(2, settings.lanes))
        engine, identity = wiring.make_engine(wide, wide.lanes)
        wiring.probe_engine(engine, identity, settings, listener)
        return []

    return run


def _silent(phase: str, detail: str = "") -> None:
    """Nobody listens."""
