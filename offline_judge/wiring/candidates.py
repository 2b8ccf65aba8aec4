"""The model that writes responses before they are judged."""

from __future__ import annotations

from dataclasses import dataclass, replace
from pathlib import Path

from offline_judge.domain.run import CandidateIdentity, ModelIdentity
from offline_judge.errors import UsageError
from offline_judge.prompting.fence import Fence
from offline_judge.prompting.library import TemplateLibrary
from offline_judge.runner.candidate.writing import NAMESPACE, Candidate, Drawing
from offline_judge.settings import Settings
from offline_judge.wiring.endpoints import endpoints
from offline_judge.wiring.engines import make_engine
from offline_judge.wiring.installation import SCRIPTED, model_card, read_secret, settled


@dataclass(frozen=True)
class CandidateParts:
    """The candidate, and what a run records of it."""

    candidate: Candidate
    identity: CandidateIdentity


def open_candidate(name: str, settings: Settings) -> CandidateParts:
    """The candidate of a name: a model card's, or `scripted`; its engine is not started.

    Raises:
        UsageError: the card is not one of a text model.
        MissingModelError: no such card, or its weights are not here.
    """
    # Engines are made from the judge's settings, which hold for the candidate too.
    role = settled(replace(settings, judge=name))
    named = role.judge.partition(":")[0] == SCRIPTED or endpoints(role)
    if not named and model_card(name, settings).role == "embedder":
        raise UsageError(f"`{name}` is an embedder and writes no text.", where="--candidate")
    engine, model = make_engine(role, settings.lanes)
    override = Path(settings.prompts_dir) if settings.prompts_dir else None
    packages = {NAMESPACE: "offline_judge.runner.candidate"}
    library = TemplateLibrary(packages, override, Fence(read_secret(settings)))
    drawing = Drawing(seed=settings.seed)
    prompts = library.hashes()
    identity = CandidateIdentity(
        name=role.judge,
        model=model,
        prompts={key: prompts[key] for key in prompts if key.startswith(f"{NAMESPACE}/")},
        options=drawing.record(),
    )
    return CandidateParts(Candidate(engine, library, drawing), identity)


def kinship(judge: ModelIdentity, candidate: ModelIdentity) -> tuple[str, ...]:
    """A warning where a judge reads answers of its own kind; none where it does not."""
    if not judge.sha256:
        return ()
    if judge.sha256 == candidate.sha256:
        what = f"the same weights (`{judge.name}`)"
    elif judge.family and judge.family == candidate.family:
        what = f"of one family ({judge.family})"
    else:
        return ()
    return (
        f"Candidate and judge are {what}: a judge is lenient with answers that it would give "
        "itself, so read the share judged correct with care.",
    )
