"""Settings to running objects; the only place that picks implementations."""

from __future__ import annotations

import os
import platform
import secrets
from collections.abc import Callable, Mapping
from contextlib import ExitStack, suppress
from dataclasses import dataclass, field, fields, replace
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import Any

from offline_judge.backends.options import EngineOptions
from offline_judge.domain.base import content_hash
from offline_judge.domain.run import ModelIdentity, SettingValue
from offline_judge.errors import StorageError, UsageError
from offline_judge.judge.cache import CompletionCache
from offline_judge.judge.session import JudgeFactory
from offline_judge.prompting.fence import Fence
from offline_judge.prompting.library import Rendered, TemplateLibrary
from offline_judge.protocols import Backend, Method, RunListener, SearchProvider, Values
from offline_judge.registry import BACKENDS, METHODS, PROVIDERS
from offline_judge.retrieval.corpus.factbook import factbook_documents, factbook_hash
from offline_judge.retrieval.corpus.store import CorpusManifest
from offline_judge.runner.execution import Engine
from offline_judge.runner.loop import JudgeBinder
from offline_judge.runs.store import RunStore
from offline_judge.settings import VERSION, Settings
from offline_judge.weights.cards import ModelCard, find_card
from offline_judge.weights.store import ModelStore

DEFAULT_CORPUS = "factbook"
SCRIPTED = "scripted"
_SECRET_BYTES = 32
_PACKAGES = ("xllamacpp", "tantivy", "pydantic", "jinja2")


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
        resources: What `close` lets go of.
    """

    method: Method
    namespace: str
    engine: Engine
    identity: ModelIdentity
    library: TemplateLibrary
    search: SearchProvider | None
    judges: Callable[[Backend], JudgeBinder]
    resources: ExitStack = field(default_factory=ExitStack)

    def __enter__(self) -> Components:
        return self

    def __exit__(self, *_: object) -> None:
        self.resources.close()

    def render(self, template: str, values: Values) -> Rendered:
        """Render one of the method's templates by its bare name."""
        return self.library.render(f"{self.namespace}/{template}", values)

    def prompts(self) -> dict[str, str]:
        """Template name to source hash."""
        return self.library.hashes()


def build_method(name: str, options: Mapping[str, Any]) -> Method:
    """Build a method from its options.

    Raises:
        UsageError: no such method, or a bad option.
        MissingDependencyError: the method's package is not installed.
    """
    method: Method = METHODS.load(name).from_options(options)
    return method


def open_components(
    settings: Settings, method_name: str, options: Mapping[str, Any], listener: RunListener
) -> Components:
    """Make all parts of a run; builds the default corpus where it is needed and absent.

    Raises:
        OfflineJudgeError: a part cannot be had; what was opened before it is closed.
    """
    method = build_method(method_name, options)
    package = METHODS.package(method_name)
    override = Path(settings.prompts_dir) if settings.prompts_dir else None
    library = TemplateLibrary({method_name: package}, override, Fence(read_secret(settings)))
    slots = settings.lanes * max(1, len(method.stages))
    engine, identity = _engine(settings, slots)
    with ExitStack() as stack:
        search = None
        if method.searches:
            search = open_search(settings, listener)
            stack.callback(search.close)
        cache = CompletionCache(_cache_path(settings))
        stack.callback(cache.close)

        def judges(backend: Backend) -> JudgeBinder:
            return JudgeFactory(
                backend,
                library,
                cache,
                model_sha256=identity.sha256,
                namespace=method_name,
                seed=settings.seed,
                engine_version=identity.engine_version,
            )

        return Components(
            method=method,
            namespace=method_name,
            engine=engine,
            identity=identity,
            library=library,
            search=search,
            judges=judges,
            resources=stack.pop_all(),
        )


def settled(settings: Settings) -> Settings:
    """The settings with absolute paths, which mean the same wherever a run is resumed."""
    kind, _, script = settings.judge.partition(":")
    changes: dict[str, Any] = {
        name: str(Path(value).absolute())
        for name in ("prompts_dir", "cards_dir")
        if (value := getattr(settings, name))
    }
    if kind == SCRIPTED and script:
        changes["judge"] = f"{SCRIPTED}:{Path(script).absolute()}"
    return replace(settings, **changes)


def run_store(settings: Settings) -> RunStore:
    """Where runs are."""
    return RunStore(settings.runs_path)


def model_store(settings: Settings) -> ModelStore:
    """The local store of weights."""
    return ModelStore(settings.models_path, settings.cache_path)


def model_card(name: str, settings: Settings) -> ModelCard:
    """The card of a name.

    Raises:
        MissingModelError: no card has this name.
    """
    return find_card(name, cards_path(settings))


def cards_path(settings: Settings) -> Path | None:
    """The user's own folder of cards, where one is set."""
    return Path(settings.cards_dir) if settings.cards_dir else None


def open_search(settings: Settings, listener: RunListener) -> SearchProvider:
    """The search provider of the settings, `corpus` or `corpus:NAME`.

    Raises:
        UsageError: no such provider.
        MissingError: the named corpus does not exist.
    """
    kind, named, corpus = settings.search.partition(":")
    provider = PROVIDERS.load(kind)
    if named and not corpus:
        raise UsageError(
            f"`--search {settings.search}` names no corpus.",
            remedy="Say --search corpus:NAME, or --search corpus for the shipped one.",
        )
    if not corpus or corpus == DEFAULT_CORPUS:
        corpus = DEFAULT_CORPUS
        ensure_default_corpus(settings, listener)
    opened: SearchProvider = provider(corpus, settings.corpora_path)
    return opened


def ensure_default_corpus(settings: Settings, listener: RunListener) -> None:
    """Build the default corpus where it is absent, damaged or made from other data."""

    def progress(documents: int, passages: int) -> None:
        listener.phase("corpus", f"{documents:,} documents, {passages:,} passages")

    listener.phase("corpus", f"looking at `{DEFAULT_CORPUS}`")
    make_corpus(DEFAULT_CORPUS, None, settings, progress)


def make_corpus(
    name: str,
    file: Path | None,
    settings: Settings,
    progress: Callable[[int, int], None] | None = None,
) -> CorpusManifest:
    """Build a corpus from a file, or the default one without; see `api.corpus_build`."""
    from offline_judge.retrieval.corpus.build import build_corpus
    from offline_judge.retrieval.corpus.documents import file_hash, read_documents

    if file is not None and name == DEFAULT_CORPUS:
        raise UsageError(
            f"`{name}` is the corpus that comes with the program.",
            remedy="Give your own another name, and search it with --search corpus:NAME.",
        )
    if file is not None:
        documents, source = read_documents(file), file_hash(file)
    elif name == DEFAULT_CORPUS:
        documents, source = factbook_documents(), factbook_hash()
    else:
        raise UsageError(
            f"The corpus `{name}` needs a file of documents.",
            remedy=f"offline-judge corpus build {name} FILE",
        )
    return build_corpus(name, documents, settings.corpora_path, progress, source=source)


def read_secret(settings: Settings) -> bytes:
    """The installation's secret, made at first use: 32 random bytes that only its user may read.

    Raises:
        StorageError: it cannot be read or made, or is damaged.
    """
    path = settings.data_path / "secret"
    try:
        if not path.exists():
            _make_secret(path)
        secret = path.read_bytes()
    except OSError as error:
        raise StorageError(
            f"Cannot read this installation's secret: {error.strerror}", where=str(path)
        ) from error
    if len(secret) != _SECRET_BYTES:
        raise StorageError(
            "This installation's secret is damaged.",
            where=str(path),
            remedy="Delete the file; a new one is made, and earlier completions are not reused.",
        )
    return secret


def recorded_settings(settings: Settings, **limits: float | None) -> dict[str, SettingValue]:
    """Every setting with its origin, and the limits of this run that were given."""
    recorded = {
        item.name: SettingValue(
            value=getattr(settings, item.name), origin=settings.origins.get(item.name, "default")
        )
        for item in fields(settings)
        if item.name != "origins"
    }
    given = {name: value for name, value in limits.items() if value is not None}
    return recorded | {name: SettingValue(value=v, origin="flag") for name, v in given.items()}


def versions() -> dict[str, str]:
    """Versions of this program and of what shapes judgments."""
    found = {"offline_judge": VERSION, "python": platform.python_version()}
    return found | {name: _version(name) for name in _PACKAGES}


def _version(package: str) -> str:
    try:
        return version(package)
    except PackageNotFoundError:
        return ""


def _make_secret(path: Path) -> None:
    """Write the secret under another name first, so that nobody ever reads half of it."""
    path.parent.mkdir(parents=True, exist_ok=True)
    part = path.with_name(f"secret.{os.getpid()}.{secrets.token_hex(4)}")
    descriptor = os.open(part, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
    try:
        with os.fdopen(descriptor, "wb") as file:
            file.write(secrets.token_bytes(_SECRET_BYTES))
            file.flush()
            os.fsync(file.fileno())
        # A link fails where another process was first, and then its secret is the one.
        with suppress(FileExistsError):
            path.hardlink_to(part)
    finally:
        part.unlink()


def _cache_path(settings: Settings) -> Path | None:
    return settings.cache_path / "completions.sqlite" if settings.cache else None


def _engine(settings: Settings, slots: int) -> tuple[Engine, ModelIdentity]:
    if settings.judge.partition(":")[0] == SCRIPTED:
        return _scripted_engine(settings, slots)
    card = model_card(settings.judge, settings)
    if card.role == "embedder":
        raise UsageError(f"`{card.name}` is an embedder and cannot judge.", where="judge")
    options = EngineOptions(
        model_path=model_store(settings).path(card),
        model_name=card.name,
        window=min(settings.window, card.window),
        slots=slots,
        threads=settings.threads,
        batch=settings.batch,
        system_role=card.quirks.system_role,
        parameters_b=card.parameters_b,
    )
    backend: Backend = BACKENDS.load("llama_cpp")(options)
    identity = ModelIdentity(
        name=card.name,
        sha256=card.files[0].sha256,
        engine=backend.name,
        engine_version=_version("xllamacpp"),
        family=card.family,
    )
    return _described(backend, identity, settings), identity


def _scripted_engine(settings: Settings, slots: int) -> tuple[Engine, ModelIdentity]:
    from offline_judge.backends.script import ScriptOptions

    _, _, file = settings.judge.partition(":")
    script = ScriptOptions.from_file(Path(file)) if file else ScriptOptions()
    window = script.window if "window" in script.model_fields_set else settings.window
    script = script.model_copy(update={"window": window, "slots": slots})
    backend: Backend = BACKENDS.load(SCRIPTED)(script)
    identity = ModelIdentity(
        name=SCRIPTED,
        # What it answers; how fast, and what goes wrong on the way, makes no other judge.
        sha256=content_hash(script.model_dump(mode="json", include={"rules", "label_rules"})),
        engine=backend.name,
        engine_version=VERSION,
    )
    return _described(backend, identity, settings), identity


def _described(backend: Backend, identity: ModelIdentity, settings: Settings) -> Engine:
    return Engine(
        backend=backend,
        name=identity.engine,
        version=identity.engine_version,
        model=identity.name,
        window=settings.window,
    )
