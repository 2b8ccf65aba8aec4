"""The parts of one run, made from settings."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from contextlib import ExitStack
from dataclasses import dataclass, field, replace
from functools import partial
from pathlib import Path
from typing import Any

from offline_judge.domain.evidence import UNCHANGED, Amendment
from offline_judge.domain.run import ModelIdentity
from offline_judge.errors import UsageError
from offline_judge.judge.cache import CompletionCache
from offline_judge.judge.session import JudgeFactory
from offline_judge.methods.options import OptionHelp, describe_options
from offline_judge.prompting.fence import Fence
from offline_judge.prompting.library import Rendered, TemplateLibrary
from offline_judge.protocols import Backend, Method, RunListener, SearchProvider, Values
from offline_judge.registry import METHODS
from offline_judge.retrieval.search.own import AmendedSearch
from offline_judge.runner.engine import Engine
from offline_judge.runner.loop import JudgeBinder
from offline_judge.settings import Settings
from offline_judge.wiring.engines import is_served, make_engine, no_engine
from offline_judge.wiring.installation import read_secret
from offline_judge.wiring.searches import open_search

_PARTS = ("from_options", "searches", "stages", "options", "largest_prompts", "judge")
"""What the class of a method has; another package's may lack some of it."""


@dataclass(frozen=True)
class Components:
    """The parts of one run, made from settings. Use as a context manager: it closes them.

    Attributes:
        method: Built from its options.
        namespace: The method's name, which its templates are found under.
        engine: Not started yet.
        identity: The weights behind the judge.
        library: The method's prompt templates.
        search: What the method may search; None where it does not search.
        judges: Makes the binder of judges from the backend it shall use.
        warnings: What a reader of the results must know of these parts.
        resources: What `close` lets go of.
    """

    method: Method
    namespace: str
    engine: Engine
    identity: ModelIdentity
    library: TemplateLibrary
    search: SearchProvider | None
    judges: Callable[[Backend], JudgeBinder]
    warnings: tuple[str, ...] = ()
    resources: ExitStack = field(default_factory=ExitStack)

    def __enter__(self) -> Components:
        return self

    def __exit__(self, *_: object) -> None:
        self.resources.close()

    def render(self, template: str, values: Values) -> Rendered:
        """Render one of the method's templates by its bare name."""
        return self.library.render(f"{self.namespace}/{template}", values)

    def demanding(self, *, probabilities: bool) -> Components:
        """The same parts, of a run that must, or must not, have probabilities."""
        demands = replace(self.engine.demands, probabilities=probabilities)
        return replace(self, engine=replace(self.engine, demands=demands))

    def prompts(self) -> dict[str, str]:
        """Template name to source hash; empty for a method that asks no judge."""
        return self.library.hashes() if self.method.stages else {}


def build_method(name: str, options: Mapping[str, Any]) -> Method:
    """Build a method from its options.

    Raises:
        UsageError: no such method, a bad option, or the method of another package is none.
        MissingDependencyError: the method's package is not installed.
    """
    made = METHODS.load(name)
    lacking = [part for part in _PARTS if not hasattr(made, part)]
    if lacking:
        raise UsageError(
            f"{METHODS.describe(name)} is no method: it has no `{'`, `'.join(lacking)}`.",
            where=METHODS.placeholder(name),
        )
    with METHODS.blamed(name):
        method: Method = made.from_options(options)
    return method


def method_options(name: str) -> tuple[OptionHelp, ...]:
    """What can be chosen of a method; nothing where it does not describe its options.

    Raises:
        UsageError: no such method.
        MissingDependencyError: the method's package is not installed.
    """
    model = getattr(METHODS.load(name), "option_model", None)
    return describe_options(model) if isinstance(model, type) else ()


@dataclass(frozen=True)
class Shared:
    """Parts that several runs use in turn and that outlive each of them."""

    engine: Engine
    identity: ModelIdentity
    search: SearchProvider | None


def open_components(
    settings: Settings,
    method_name: str,
    options: Mapping[str, Any],
    listener: RunListener,
    *,
    shared: Shared | None = None,
    amendment: Amendment = UNCHANGED,
) -> Components:
    """Make all parts of a run; builds the default corpus where it is needed and absent.

    Args:
        settings: What picks the parts.
        method_name: Name in the method registry.
        options: The method's own.
        listener: Told what is built.
        shared: Engine and search to use instead of own ones; not closed with the rest.
        amendment: What a person changed of what is found.

    Raises:
        OfflineJudgeError: a part cannot be had; what was opened before it is closed.
    """
    method = build_method(method_name, options)
    packages = {method_name: METHODS.package(method_name)} if method.stages else {}
    override = Path(settings.prompts_dir) if settings.prompts_dir else None
    library = TemplateLibrary(packages, override, Fence(read_secret(settings)))
    engine, identity = _engine_of(method, settings, shared)
    with ExitStack() as stack:
        search = shared.search if shared is not None and method.searches else None
        warnings: list[str] = []
        if method.searches and search is None:
            search = open_search(settings, listener, warn=warnings.append)
            stack.callback(search.close)
        if amendment and search is not None:
            search = AmendedSearch(search, amendment.own, amendment.without)
        cache = CompletionCache(_cache_path(settings))
        stack.callback(cache.close)
        judges = partial(
            JudgeFactory,
            library=library,
            cache=cache,
            model_sha256=identity.sha256,
            namespace=method_name,
            seed=settings.seed,
            engine_version=_engine_key(settings, identity),
            thinking_tokens=settings.thinking_tokens,
        )
        return Components(
            method=method,
            namespace=method_name,
            engine=engine,
            identity=identity,
            library=library,
            search=search,
            judges=judges,
            warnings=tuple(warnings),
            resources=stack.pop_all(),
        )


def _engine_of(
    method: Method, settings: Settings, shared: Shared | None
) -> tuple[Engine, ModelIdentity]:
    if not method.stages:
        return no_engine()
    if shared is not None:
        return shared.engine, shared.identity
    return make_engine(settings, settings.lanes * len(method.stages))


def _engine_key(settings: Settings, identity: ModelIdentity) -> str:
    """What, beside its name, an engine's answers depend on, for the completion cache."""
    changed = {
        name: value
        for name in ("engine", "kv_cache", "speculative")
        if (value := getattr(settings, name)) != getattr(Settings, name)
    }
    told = "".join(f" {name}={value}" for name, value in changed.items())
    return f"{identity.engine_version}{told}"


def _cache_path(settings: Settings) -> Path | None:
    """Where completions are kept; nowhere where a name alone stands for the weights."""
    kept = settings.cache and not is_served(settings)
    return settings.cache_path / "completions.sqlite" if kept else None
