"""What is installed: packages, weights, engines, corpora, settings."""

from __future__ import annotations

import os
from collections.abc import Iterator
from importlib.metadata import PackageNotFoundError, requires, version
from pathlib import Path

from packaging.requirements import Requirement

from offline_judge import wiring
from offline_judge.checks.findings import Finding
from offline_judge.domain.capability import CapabilityReport
from offline_judge.environments.installing import look
from offline_judge.environments.recipes import RECIPES
from offline_judge.errors import OfflineJudgeError
from offline_judge.settings import PROJECT_FILE, Settings, unknown_variables, user_settings_file
from offline_judge.weights.disk import human
from offline_judge.weights.fit import fit

_DISTRIBUTION = "offline-llm-judge"
_EXTRAS = ("evidence", "web", "plots", "llama-cpp-python")


def check_packages(settings: Settings) -> Iterator[Finding]:
    """The extras, and whether all that each needs is here."""
    del settings
    area = "packages"
    try:
        listed = [Requirement(line) for line in requires(_DISTRIBUTION) or ()]
    except PackageNotFoundError:
        text = "the program runs from its source, so its extras are not known"
        yield Finding(area, "extras", "note", text, f"pip install {_DISTRIBUTION}")
        return
    for extra in _EXTRAS:
        wanted = [one for one in listed if one.marker and one.marker.evaluate({"extra": extra})]
        lacking = [one.name for one in wanted if not _has(one)]
        if not lacking:
            yield Finding(area, extra, "ok", "installed")
            continue
        text = f"lacks {', '.join(lacking)}"
        yield Finding(area, extra, "note", text, f"pip install '{_DISTRIBUTION}[{extra}]'")


def _has(wanted: Requirement) -> bool:
    try:
        return wanted.specifier.contains(version(wanted.name), prereleases=True)
    except PackageNotFoundError:
        return False


def check_weights(settings: Settings) -> Iterator[Finding]:
    """The weights that are here: whole, and whether they fit the memory."""
    area = "weights"
    store = wiring.model_store(settings)
    judge_here = False
    for card in wiring.model_cards(settings).values():
        state = store.state(card)
        if state == "absent" and not any(file.lies_at for file in card.files):
            continue
        if state == "absent":
            yield Finding(area, card.name, "problem", "it is not here", store.remedy(card))
            continue
        if state == "partial":
            remedy = f"offline-judge models pull {card.name}"
            yield Finding(area, card.name, "problem", "only a part of it is here", remedy)
            continue
        judge_here = judge_here or card.role != "embedder"
        yield from _weights(card.name, settings)
    if not judge_here and not wiring.endpoints(settings):
        remedy = "offline-judge models pull qwen2.5-coder-1.5b-instruct"
        yield Finding(area, "judge", "problem", "no judge's weights are here", remedy)


def _weights(name: str, settings: Settings) -> Iterator[Finding]:
    card = wiring.model_card(name, settings)
    store = wiring.model_store(settings)
    try:
        path = store.path(card)
    except OfflineJudgeError as error:
        yield Finding("weights", name, "problem", error.message, error.remedy)
        return
    need = fit(card, path, window=settings.window, slots=settings.lanes)
    text = f"verified, {human(card.size)}; needs {human(need.needed)} of memory: {need.verdict}"
    data = {"needed": need.needed, "free": need.free}
    if need.verdict == "too large":
        remedy = "Take a smaller model, window or number of lanes."
        yield Finding("weights", name, "note", text, remedy, data)
    else:
        yield Finding("weights", name, "ok", text, data=data)


def check_engines(settings: Settings) -> Iterator[Finding]:
    """Engines that were installed, the one that is set, and the last probe of the judge."""
    area = "engines"
    for name in RECIPES:
        found = look(settings.data_path / "engines", name)
        if found.state == "installed":
            yield Finding(area, name, "ok", f"{found.version} in {found.folder}")
        elif found.state != "absent":
            remedy = f"offline-judge engines install {name}"
            yield Finding(area, name, "note", f"{found.state} in {found.folder}", remedy)
    engine, identity = wiring.make_engine(settings, settings.lanes)
    text = f"{identity.name} by {identity.engine} {identity.engine_version}".rstrip()
    yield Finding(area, "judge", "ok", text)
    seen = engine.probe
    for other in wiring.stored_probes(settings):
        if other != seen:
            yield _probed(other)
    if seen is None:
        remedy = f"offline-judge doctor --probe --judge {settings.judge}"
        yield Finding(area, "probe", "note", "this judge was not probed yet", remedy)
        return
    yield from probe_findings(seen)


def _probed(seen: CapabilityReport) -> Finding:
    """A line on an earlier probe, of this judge or another."""
    name = f"probe of {seen.engine} {seen.engine_version}".rstrip()
    can = seen.capabilities
    text = (
        f"{seen.model}: window {can.window}, {can.slots} slots, {seen.prompt_rate:g} read and "
        f"{seen.generate_rate:g} written a second"
    )
    worst = seen.problems()
    if not worst:
        return Finding("other probes", name, "ok", text)
    said, _, remedy = worst[0].partition(": ")
    return Finding("other probes", name, "note", f"{text}; {said}", remedy)


def probe_findings(seen: CapabilityReport) -> Iterator[Finding]:
    """What a probe saw, a line each, and what of it is a problem."""
    area = "probe"
    can = seen.capabilities
    rows = {
        "window": f"{can.window} tokens a slot, {can.slots} slots (asked for {seen.asked_window})",
        "front of a full prompt": f"{seen.needle or 'not tried'} ({seen.needle_tokens} tokens)",
        "constraint": ", ".join(can.constraints) or "not obeyed",
        "bad constraint": "refused" if seen.bad_constraint_refused else "answered freely",
        "seed": "honoured" if can.seed else "ignored",
        "label probabilities": "before sampling" if can.label_probabilities else "none",
        "cached tokens": "not reported" if seen.cached_tokens is None else f"{seen.cached_tokens}",
        "thinking": ", ".join(can.thinking_modes) or "off",
        "after a cancel": f"{seen.cancel_s} s to the next answer",
        "two requests at once": "MIXED UP" if seen.mixed_up else "kept apart",
        "tokens a second": f"{seen.prompt_rate} read, {seen.generate_rate} written",
        "layers on the GPU": "none told"
        if seen.offloaded is None
        else f"{seen.offloaded[0]} of {seen.offloaded[1]}",
    }
    lacking = {
        "front of a full prompt": seen.needle not in ("found", ""),
        "constraint": not can.constraints,
        "bad constraint": not seen.bad_constraint_refused,
        "seed": not can.seed,
        "label probabilities": not can.label_probabilities,
        "two requests at once": seen.mixed_up,
    }
    for name, text in rows.items():
        yield Finding(area, name, "note" if lacking.get(name) else "ok", text)
    for problem in seen.problems():
        text, _, remedy = problem.partition(": ")
        severe = seen.mixed_up or seen.needle in ("lost", "cut")
        yield Finding(area, seen.engine, "problem" if severe else "note", text, remedy)


def check_corpora(settings: Settings) -> Iterator[Finding]:
    """Each corpus: whether it can be searched, and how."""
    area = "corpora"
    states = wiring.corpus_states(settings)
    for one in states:
        if one.problem:
            remedy = f"offline-judge corpus build {one.name}"
            yield Finding(area, one.name, "problem", one.problem, remedy)
            continue
        how = "by words and vectors" if one.complete else "by words"
        yield Finding(area, one.name, "ok", f"{one.passages:,} passages, searched {how}")
    if not states:
        yield Finding(area, "none", "note", "the first search builds the shipped one")


def check_settings(settings: Settings) -> Iterator[Finding]:
    """Settings files that are there, and variables that are no settings."""
    area = "settings"
    for path in (user_settings_file(), Path.cwd() / PROJECT_FILE):
        if path.exists():
            yield Finding(area, path.name, "ok", str(path))
    for name, close in unknown_variables(os.environ).items():
        remedy = f"Did you mean {close}?" if close else "It is ignored."
        yield Finding(area, name, "note", "is no setting", remedy)
    for sentence in wiring.leaves_machine(settings):
        yield Finding(area, "leaves this machine", "note", sentence)
