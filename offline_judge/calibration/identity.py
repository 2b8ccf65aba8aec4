"""Which judge a calibration holds for, and refusing it with any other."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from offline_judge.domain.calibration import Calibration, JudgeIdentity
from offline_judge.domain.run import RunManifest
from offline_judge.errors import RunChangedError

_AFTERWARDS_OPTIONS = frozenset({"rationale"})
"""Options of methods that act only once the verdict is read, so they may differ."""

_AFTERWARDS_PROMPTS = ".rationale"
"""Ending of prompts that are asked only then."""


def identity_of(manifest: RunManifest) -> JudgeIdentity:
    """What made a run's probabilities."""
    options = manifest.options.items()
    prompts = manifest.prompts.items()
    return JudgeIdentity(
        name=manifest.judge.name,
        sha256=manifest.judge.sha256,
        method=manifest.method,
        options={name: value for name, value in options if name not in _AFTERWARDS_OPTIONS},
        prompts={
            name: source for name, source in prompts if not name.endswith(_AFTERWARDS_PROMPTS)
        },
        search=manifest.search,
    )


def check_fits(calibration: Calibration, manifest: RunManifest) -> tuple[str, ...]:
    """Refuse a calibration of another judge.

    Returns:
        What a reader of the results must know, a sentence each: other evidence is not another
        judge, but may be judged better or worse.

    Raises:
        RunChangedError: weights, method, options or prompts differ; names which.
    """
    fitted, now = calibration.judge, identity_of(manifest)
    differences = _differences(fitted, now)
    if differences:
        raise RunChangedError(
            f"This calibration was fitted for another judge: {'; '.join(differences)}.",
            remedy="Fit one on a run of this judge: offline-judge calibrate RUN --labels FILE "
            "--out FILE",
        )
    if fitted.search != now.search:
        return ("The calibration was fitted on verdicts that rest on other evidence.",)
    return ()


def _differences(fitted: JudgeIdentity, now: JudgeIdentity) -> list[str]:
    found = []
    if fitted.sha256 != now.sha256:
        found.append(
            f"weights ({fitted.name} {fitted.sha256[:12]}, not {now.name} {now.sha256[:12]})"
        )
    if fitted.method != now.method:
        # Another method has other options and prompts, which says nothing more.
        return [*found, f"method (`{fitted.method}`, not `{now.method}`)"]
    found += [
        f"option `{name}` ({_shown(fitted.options, name)}, not {_shown(now.options, name)})"
        for name in _changed(fitted.options, now.options)
    ]
    prompts = _changed(fitted.prompts, now.prompts)
    if prompts:
        found.append(f"prompts ({', '.join(prompts)})")
    return found


def _changed(before: Mapping[str, Any], after: Mapping[str, Any]) -> list[str]:
    missing = object()
    names = {*before, *after}
    return sorted(n for n in names if before.get(n, missing) != after.get(n, missing))


def _shown(options: Mapping[str, Any], name: str) -> str:
    return repr(options[name]) if name in options else "none"
