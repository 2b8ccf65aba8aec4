"""Names of components and the one lazy import behind each; listing imports nothing."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from difflib import get_close_matches
from importlib import import_module
from importlib.metadata import EntryPoint, entry_points
from importlib.util import find_spec
from typing import Any

from offline_judge.errors import MissingDependencyError, OfflineJudgeError, UsageError

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
            UsageError: no component has this name, or its module lies in no package.
        """
        module = self.placeholder(name).partition(":")[0]
        spec = find_spec(module)
        if spec is not None and spec.submodule_search_locations is not None:
            return module
        package = module.rpartition(".")[0]
        if not package:
            raise UsageError(
                f"{self.describe(name)} is a module of its own and can hold no prompts.",
                where=self.placeholder(name),
                remedy="Put it into a package, with its prompts in the folder `prompts` there.",
            )
        return package

    def describe(self, name: str) -> str:
        """What to call a component in a message: its kind and name, and whose it is."""
        owner = self._owner(name)
        return f"The {self.kind} `{name}`{f' of the package `{owner}`' if owner else ''}"

    def load(self, name: str) -> Any:
        """Import a component.

        Raises:
            UsageError: no component has this name, its module lacks the constant, or the module
                of another distribution fails while it is imported.
            MissingDependencyError: its module, or one that it needs, is not installed.
        """
        module, _, constant = self.placeholder(name).partition(":")
        with self.blamed(name):
            return getattr(import_module(module), constant)

    @contextmanager
    def blamed(self, name: str) -> Iterator[None]:
        """Name the component, and whose it is, in whatever its code raises inside the block.

        Raises:
            UsageError: it failed, or lacks something.
            MissingDependencyError: a module that it needs is not installed.
        """
        place = self.placeholder(name)
        try:
            yield
        except OfflineJudgeError:
            raise
        except ModuleNotFoundError as error:
            raise MissingDependencyError(
                f"{self.describe(name)} needs `{error.name}`, which is not installed.",
                where=place,
            ) from error
        except Exception as error:
            # What another package's code does while it is loaded, nobody here can know.
            if name in self._shipped:
                raise
            raise UsageError(
                f"{self.describe(name)} cannot be loaded: {type(error).__name__}: {error}.",
                where=place,
                remedy="Mend or uninstall that package.",
            ) from error

    def _placeholders(self) -> dict[str, str]:
        found = dict(self._shipped)
        for point in self._entry_points():
            # A shipped name cannot be taken over by a package that happens to be installed.
            found.setdefault(point.name, point.value)
        return found

    def _owner(self, name: str) -> str:
        """The distribution that a component comes from; empty for the shipped ones."""
        if name in self._shipped:
            return ""
        found = (point for point in self._entry_points() if point.name == name)
        point = next(found, None)
        return point.dist.name if point is not None and point.dist is not None else ""

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
        "llama_cpp_python": "offline_judge.backends.llama_cpp_python:BACKEND",
        "llama_server": "offline_judge.backends.llama_server:BACKEND",
        "lmstudio": "offline_judge.backends.lmstudio:BACKEND",
        "ollama": "offline_judge.backends.ollama:BACKEND",
        "openai": "offline_judge.backends.openai:BACKEND",
        "scripted": "offline_judge.backends.scripted:BACKEND",
        "vllm": "offline_judge.backends.vllm:BACKEND",
    },
)
PROVIDERS = Registry(
    "search provider",
    {
        "corpus": "offline_judge.retrieval.search.corpus:PROVIDER",
        "memory": "offline_judge.retrieval.search.memory:PROVIDER",
    },
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
