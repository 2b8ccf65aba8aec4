"""What can be chosen for a new run, and what is wrong with a choice before anything begins."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from offline_judge.api.browsing import preview
from offline_judge.api.methods import MethodView, methods_list
from offline_judge.api.models import models_list
from offline_judge.api.views import ModelView, RunRequest

if TYPE_CHECKING:
    from offline_judge.domain.previews import Preview
    from offline_judge.errors import OfflineJudgeError
    from offline_judge.settings import Settings


@dataclass(frozen=True)
class RunChoices:
    """What a run can be made of here.

    Attributes:
        methods: How to judge.
        models: Models that can judge or write responses, here or to be had.
        searches: Values of the setting `search`.
        formats: Forms of public sets.
        fields: Fields of a sample that columns can be mapped to.
    """

    methods: tuple[MethodView, ...]
    models: tuple[ModelView, ...]
    searches: tuple[str, ...]
    formats: tuple[str, ...]
    fields: tuple[str, ...]


@dataclass(frozen=True)
class RunCheck:
    """What is known of a request before it begins.

    Attributes:
        preview: What its data file holds.
        problems: What keeps it from being begun.
    """

    preview: Preview
    problems: tuple[OfflineJudgeError, ...]


def run_choices(settings: Settings) -> RunChoices:
    """What can be chosen.

    Raises:
        SettingsError: a card of the user's own cannot be read.
    """
    from offline_judge import wiring
    from offline_judge.datasets.fields import FIELDS
    from offline_judge.registry import FORMS

    corpora = [state.name for state in wiring.corpus_states(settings)]
    named = [f"corpus:{name}" for name in corpora if name != wiring.DEFAULT_CORPUS]
    models = (view for view in models_list(settings) if view.card.role != "embedder")
    return RunChoices(
        methods=tuple(methods_list()),
        models=tuple(models),
        searches=("corpus", *named, "memory"),
        formats=tuple(FORMS),
        fields=FIELDS,
    )


def check_run(request: RunRequest, settings: Settings, known: Preview | None = None) -> RunCheck:
    """Read the data file and look at everything else that `start` would refuse.

    Nothing is begun, and nothing is raised: what is wrong stands in the answer.

    Args:
        request: What is to be judged and how.
        settings: As for `run`.
        known: What `preview` said of the request's data; spares reading it again.
    """
    from offline_judge.errors import DataError, UsageError

    found = known if known is not None else preview(request)
    problems: list[OfflineJudgeError] = [found.refusal] if found.refusal is not None else []
    if found.problems and not request.skip_bad:
        first = found.problems[0].rstrip(".")
        told = f"{len(found.problems):,} rows cannot be used; the first: {first}."
        problems.append(DataError(told, remedy="Mend them, or leave them out: --skip-bad"))
    if request.responses is not None and request.candidate:
        problems.append(UsageError("Responses are either joined or written: name one of them."))
    problems += _of_parts(request, settings)
    return RunCheck(found, tuple(problems))


def _of_parts(request: RunRequest, settings: Settings) -> Iterator[OfflineJudgeError]:
    """What is wrong with the method, the models and the calibration."""
    from offline_judge import wiring
    from offline_judge.calibration.files import read_calibration
    from offline_judge.errors import OfflineJudgeError

    def calibration() -> None:
        if request.calibration is not None:
            read_calibration(Path(request.calibration))

    def judge() -> None:
        if bool(wiring.build_method(request.method, request.options).stages):
            _check_here(settings.judge, settings)

    def candidate() -> None:
        if request.candidate:
            _check_here(request.candidate, settings)

    for check in (judge, candidate, calibration):
        try:
            check()
        except OfflineJudgeError as error:
            yield error


def _check_here(name: str, settings: Settings) -> None:
    """Raise where a model's weights are not here.

    Raises:
        MissingModelError: they are not, or no card has this name.
    """
    from offline_judge import wiring
    from offline_judge.errors import MissingModelError

    if name.partition(":")[0] == wiring.SCRIPTED:
        return
    card = wiring.model_card(name, settings)
    if wiring.model_store(settings).state(card) != "present":
        raise MissingModelError(
            f"The weights of {card.name} are not here",
            remedy=f"Fetch them: offline-judge models pull {card.name}",
        )
