"""Names of components and the one lazy import behind each; listing imports nothing."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from difflib import get_close_matches
from importlib import import_module
from importlib.metadata import EntryPoint, entry_points
from typing import Any

from offline_judge.errors import MissingDependencyError, UsageError

METHOD_GROUP = "offline_judge.methods"


class Registry:
    """Component names, each with a `module:CONSTANT` that is imported on first use.

    Args:
        kind: What the components are, for messages: "method", "backend", "search provider".
        shipped: Name to placeholder of the components that come with the program.
        group: Entry point group through which other distributions add components; "" for none.
        discover: Lists the entry points of a group.
    """

    def __init__(
        self,
        kind: str,
        shipped: Mapping[str, str],
        *,
        group: str = "",
        discover: Callable[..., Any] = entry_points,
    ) -> None:
        self.kind = kind
        self._shipped = dict(shipped)
        self._group = group
        self._discover = discover

    def names(self) -> tuple[str, ...]:
        """All names, shipped ones first; imports no component."""
        return tuple(self._placeholders())

    def __contains__(self, name: object) -> bool:
        return name in self._placeholders()

    def __iter__(self) -> Iterator[str]:
        return iter(self._placeholders())

    def placeholder(self, name: str) -> str:
        """The `module:CONSTANT` behind a name.

        Raises:
            UsageError: no component has this name.
        """
        known = self._placeholders()
        if name not in known:
            close = get_close_matches(name.lower(), known, n=1)
            hint = f"Did you mean `{close[0]}`? " if close else ""
            listing = ", ".join(known) or "none"
            raise UsageError(
                f"No {self.kind} is called `{name}`.", remedy=f"{hint}Known: {listing}."
            )
        return known[name]

    def package(self, name: str) -> str:
        """The package that holds a component, where its data files are.

        Raises:
            UsageError: no component has this name.
        """
        return self.placeholder(name).partition(":")[0].rpartition(".")[0]

    def load(self, name: str) -> Any:
        """Import a component.

        Raises:
            UsageError: no component has this name, or its module lacks the constant.
            MissingDependencyError: its module, or one that it needs, is not installed.
        """
        place = self.placeholder(name)
        module, _, constant = place.partition(":")
        try:
            return getattr(import_module(module), constant)
        except ModuleNotFoundError as error:
            raise MissingDependencyError(
                f"The {self.kind} `{name}` needs `{error.name}`, which is not installed.",
                where=place,
            ) from error
        except AttributeError as error:
            raise UsageError(
                f"The {self.kind} `{name}` cannot be loaded: {error}.", where=place
            ) from error

    def _placeholders(self) -> dict[str, str]:
        found = dict(self._shipped)
        for point in self._entry_points():
            # A shipped name cannot be taken over by a package that happens to be installed.
            found.setdefault(point.name, point.value)
        return found

    def _entry_points(self) -> tuple[EntryPoint, ...]:
        if not self._group:
            return ()
        points: tuple[EntryPoint, ...] = tuple(self._discover(group=self._group))
        return tuple(sorted(points, key=lambda point: point.name))


METHODS = Registry(
    "method",
    {
        "direct": "offline_judge.methods.direct.method:METHOD",
        "lexical": "offline_judge.methods.lexical.method:METHOD",
        "reference": "offline_judge.methods.reference.method:METHOD",
        "sage": "offline_judge.methods.sage.method:METHOD",
    },
    group=METHOD_GROUP,
)
BACKENDS = Registry(
    "backend",
    {
        "llama_cpp": "offline_judge.backends.llama_cpp:BACKEND",
        "scripted": "offline_judge.backends.scripted:BACKEND",
    },
)
PROVIDERS = Registry(
    "search provider",
    {"corpus": "offline_judge.retrieval.search.corpus:PROVIDER"},
)
FORMS = Registry(
    "data format",
    {
        "ambigqa": "offline_judge.datasets.forms.ambigqa:FORM",
        "evouna": "offline_judge.datasets.forms.evouna:FORM",
        "freshqa": "offline_judge.datasets.forms.freshqa:FORM",
        "hotpotqa": "offline_judge.datasets.forms.hotpotqa:FORM",
        "natural-questions": "offline_judge.datasets.forms.natural_questions:FORM",
        "nq-open": "offline_judge.datasets.forms.nq_open:FORM",
        "openqa-eval": "offline_judge.datasets.forms.openqa_eval:FORM",
        "triviaqa": "offline_judge.datasets.forms.triviaqa:FORM",
    },
)
