"""Settings with their origins: flag > environment > project file > user file > default."""

from __future__ import annotations

import json
import math
import os
import tomllib
from collections.abc import Mapping
from dataclasses import dataclass, field, fields
from difflib import get_close_matches
from pathlib import Path
from typing import Any, get_type_hints

import platformdirs

from offline_judge.errors import SettingsError

APP = "offline-judge"
VERSION = "0.1.0"
ENV_PREFIX = "OFFLINE_JUDGE_"
PROJECT_FILE = "offline-judge.toml"
KEYS_SECTION = "keys"
"""The section of the settings' files that sets keys of the terminal UI anew; no setting."""


def _help(text: str, default: Any) -> Any:
    return field(default=default, metadata={"help": text})


@dataclass(frozen=True)
class Settings:
    """Everything a user can set that is not an option of one command.

    Each field is also `OFFLINE_JUDGE_<NAME>` in the environment and a key of
    `offline-judge.toml`; `origins` says for each where its value came from.
    """

    judge: str = _help(
        "Name of the judge's model card; or a server that runs: `ollama:MODEL`, `lmstudio:MODEL`, "
        "`vllm:MODEL`, `llama-server:MODEL`, `openai:MODEL`, each with `@URL` if it is elsewhere; "
        "several of one model, separated by commas, share the work.",
        "qwen2.5-coder-1.5b-instruct",
    )
    engine: str = _help(
        "What runs a model card: `auto`, `llama_cpp`, `llama_cpp_python`, `llama_server`, `vllm`, "
        "or an environment that `engines install` made.",
        "auto",
    )
    gpu: str = _help("GPU of the engine: `auto` where there is one, `off`, or `required`.", "auto")
    gpu_layers: int = _help("Layers put on the GPU; -1 for as many as fit.", -1)
    kv_cache: str = _help("How the key-value cache is stored: `f16`, `q8_0` or `q4_0`.", "f16")
    speculative: bool = _help("Draft tokens out of what was said before (n-grams).", False)
    adapter: str = _help("Folder of a LoRA adapter for the judge, for the engine `vllm`.", "")
    thinking_tokens: int = _help("Tokens the judge may think before it answers; 0 for none.", 0)
    llama_server: str = _help("Your own `llama-server` program, for that engine.", "")
    base_url: str = _help("Address of the server that runs, where it is not the usual one.", "")
    allow_remote: str = _help(
        "Hosts beyond this machine that prompts may be sent to, separated by commas.", ""
    )
    search: str = _help("Search provider: `corpus`, `corpus:NAME` or `memory`.", "corpus")
    offline: bool = _help("Search only what is on this machine, memory included.", False)
    locale: str = _help("Language or region that searches are made for, such as `pt-BR`.", "")
    max_age_days: int = _help("Do not reuse what was found longer ago; 0 for no limit.", 0)
    memory_similarity: float = _help(
        "Least similarity of a passage that another query found; 0 takes the embedder's own.", 0.0
    )
    embedder: str = _help(
        "Name of the embedder's model card, `hashing`, or `none` for lexical search only.",
        "all-minilm-l6-v2-int8",
    )
    lanes: int = _help("Samples judged at the same time; each lane has a slot per stage.", 1)
    window: int = _help("Tokens a slot holds, prompt and output together.", 4096)
    threads: int = _help("Threads of the engine; 0 takes the cores this process may use.", 0)
    batch: int = _help("Tokens the engine reads at once; 0 fits it to about a second.", 0)
    seed: int = _help("Seed of the first attempt of every generation.", 0)
    cache: bool = _help("Keep completions for later runs; off keeps them for this run only.", True)
    data_dir: str = _help("Runs, corpora and the installation's secret.", "")
    cache_dir: str = _help("Completions and partial downloads; may be deleted at any time.", "")
    models_dir: str = _help("Weights; by default `models` in the data directory.", "")
    cards_dir: str = _help("More model cards of your own, TOML.", "")
    prompts_dir: str = _help("Prompt templates that override the shipped ones.", "")
    origins: Mapping[str, str] = field(default_factory=dict, compare=False)

    @property
    def data_path(self) -> Path:
        """Where runs and corpora are."""
        return Path(self.data_dir or platformdirs.user_data_dir(APP))

    @property
    def cache_path(self) -> Path:
        """Where the completion cache and partial downloads are."""
        return Path(self.cache_dir or platformdirs.user_cache_dir(APP))

    @property
    def models_path(self) -> Path:
        """Where weights are."""
        return Path(self.models_dir) if self.models_dir else self.data_path / "models"

    @property
    def runs_path(self) -> Path:
        """Where run directories are."""
        return self.data_path / "runs"

    @property
    def corpora_path(self) -> Path:
        """Where corpora and their indexes are."""
        return self.data_path / "corpora"

    @property
    def evidence_path(self) -> Path:
        """Where the record of evidence and its vector index are."""
        return self.data_path / "evidence"

    @property
    def runtime_path(self) -> Path:
        """Where control sockets are; short, because a socket's path holds about 100 bytes."""
        base = os.environ.get("XDG_RUNTIME_DIR")
        if base and len(base) < 60 and os.access(base, os.W_OK):
            return Path(base) / APP
        return Path("/tmp") / f"{APP}-{os.getuid()}"


_FIELDS = {f.name: f for f in fields(Settings) if f.name != "origins"}
_TYPES = {name: kind for name, kind in get_type_hints(Settings).items() if name in _FIELDS}
_KINDS: dict[type, str] = {
    str: "a text in quotes",
    int: "a whole number",
    float: "a number",
    bool: "true or false",
}
_ENVIRONMENT, _FLAG = "environment", "flag"
API_KEY = f"{ENV_PREFIX}API_KEY"
"""The key of a server that runs: a secret, so no setting, which a run would record."""
_NO_SETTINGS = frozenset(
    {API_KEY, f"{ENV_PREFIX}DATA"}
    | {
        f"{ENV_PREFIX}TEST_{name}"
        for name in ("MODELS", "LLAMA_SERVER", "LLAMA_CPP_PYTHON", "VLLM", "VLLM_MODEL")
    }
)
"""Variables of the tests and of the measuring scripts, and the key."""
_TRUE, _FALSE = {"1", "true", "yes", "on"}, {"0", "false", "no", "off"}
_CHOICES = {
    "gpu": ("auto", "off", "required"),
    "kv_cache": ("f16", "q8_0", "q4_0"),
}
_MINIMUM = {
    "lanes": 1,
    "window": 256,
    "threads": 0,
    "batch": 0,
    "seed": 0,
    "gpu_layers": -1,
    "thinking_tokens": 0,
    "max_age_days": 0,
    "memory_similarity": 0,
}


def load_settings(
    flags: Mapping[str, Any] | None = None,
    *,
    environ: Mapping[str, str] | None = None,
    project_dir: Path | None = None,
    user_file: Path | None = None,
) -> Settings:
    """Merge all sources of settings; a flag that is None does not count.

    Raises:
        SettingsError: an unknown key, or a value of the wrong type or range, with its place.
    """
    environ = os.environ if environ is None else environ
    user_file, project_file = _files(project_dir, user_file)
    values: dict[str, Any] = {}
    origins: dict[str, str] = dict.fromkeys(_FIELDS, "default")
    layers: list[tuple[str, Mapping[str, Any]]] = [
        (str(user_file), _read_toml(user_file)),
        (str(project_file), _read_toml(project_file)),
        (_ENVIRONMENT, _from_environment(environ)),
        (_FLAG, {k: v for k, v in (flags or {}).items() if v is not None}),
    ]
    for origin, layer in layers:
        for name, raw in layer.items():
            place = variable(name) if origin == _ENVIRONMENT else origin
            _refuse_unknown(name, place)
            # Text is all that the environment has, and a caller may give a path; a file has types.
            if origin not in (_ENVIRONMENT, _FLAG):
                _refuse_other_type(name, raw, place)
            values[name] = _convert(name, raw, place)
            origins[name] = place
    return Settings(**values, origins=origins)


def load_keys(*, project_dir: Path | None = None, user_file: Path | None = None) -> dict[str, str]:
    """Keys of the terminal UI that the user has set anew: name to keys, separated by commas.

    Raises:
        SettingsError: a file cannot be read, or a key is no text.
    """
    found: dict[str, str] = {}
    for path in _files(project_dir, user_file):
        section = _read_whole(path).get(KEYS_SECTION, {})
        if not isinstance(section, dict):
            raise _no_key(KEYS_SECTION, section, path)
        for name, value in section.items():
            # A point in a bare TOML key makes a section within the section.
            inner = value.items() if isinstance(value, dict) else [("", value)]
            for rest, keys in inner:
                whole = f"{name}.{rest}" if rest else name
                if not isinstance(keys, str):
                    raise _no_key(whole, keys, path)
                found[whole] = keys
    return found


def _no_key(name: str, value: Any, path: Path) -> SettingsError:
    return SettingsError(
        f"Key `{name}` must be a text in quotes, not {value!r}",
        where=str(path),
        remedy='For example, in section [keys]: "home.resume" = "r"',
    )


def _files(project_dir: Path | None, user_file: Path | None) -> tuple[Path, Path]:
    """The files that settings are read from, the weaker one first."""
    return user_file or user_settings_file(), (project_dir or Path.cwd()) / PROJECT_FILE


def variable(name: str) -> str:
    """The environment variable of a setting."""
    return f"{ENV_PREFIX}{name.upper()}"


def user_settings_file() -> Path:
    """The user's own file of settings."""
    return Path(platformdirs.user_config_dir(APP)) / "config.toml"


@dataclass(frozen=True)
class Described:
    """One setting as it stands: value, where it came from, its variable, and what it is for."""

    name: str
    value: Any
    origin: str
    variable: str
    help: str


def describe(settings: Settings) -> tuple[Described, ...]:
    """All settings, in the order they are declared."""
    return tuple(
        Described(
            name=name,
            value=getattr(settings, name),
            origin=settings.origins.get(name, "default"),
            variable=variable(name),
            help=declared.metadata["help"],
        )
        for name, declared in _FIELDS.items()
    )


def unknown_variables(environ: Mapping[str, str] | None = None) -> dict[str, str]:
    """Variables that begin like a setting's and are none, each with the nearest or ""."""
    environ = os.environ if environ is None else environ
    found: dict[str, str] = {}
    for key in sorted(environ):
        name = key.removeprefix(ENV_PREFIX).lower()
        if key.startswith(ENV_PREFIX) and name not in _FIELDS and key not in _NO_SETTINGS:
            close = get_close_matches(name, _FIELDS, n=1)
            found[key] = variable(close[0]) if close else ""
    return found


def _read_toml(path: Path) -> Mapping[str, Any]:
    """The settings of a file."""
    return {name: raw for name, raw in _read_whole(path).items() if name != KEYS_SECTION}


def _read_whole(path: Path) -> Mapping[str, Any]:
    try:
        return tomllib.loads(path.read_text("utf-8"))
    except FileNotFoundError:
        return {}
    except (OSError, UnicodeDecodeError, tomllib.TOMLDecodeError) as error:
        raise SettingsError(f"Cannot read settings: {error}", where=str(path)) from error


def _from_environment(environ: Mapping[str, str]) -> Mapping[str, str]:
    return {
        key.removeprefix(ENV_PREFIX).lower(): value
        for key, value in environ.items()
        if key.startswith(ENV_PREFIX) and key.removeprefix(ENV_PREFIX).lower() in _FIELDS
    }


def _refuse_unknown(name: str, place: str) -> None:
    if name not in _FIELDS:
        close = get_close_matches(name, _FIELDS, n=1)
        hint = f"Did you mean `{close[0]}`?" if close else f"Known: {', '.join(_FIELDS)}."
        raise SettingsError(f"Unknown setting `{name}`", where=place, remedy=hint)


def _refuse_other_type(name: str, raw: Any, place: str) -> None:
    kind = _TYPES[name]
    # To Python a boolean is a whole number, and to people a whole number is a number.
    fits = type(raw) is kind or (kind is float and type(raw) is int)
    if not fits:
        raise SettingsError(
            f"`{name}` must be {_KINDS[kind]}, not {raw!r}",
            where=place,
            remedy=f"For example: {name} = {_example(_FIELDS[name].default)}",
        )


def _example(default: Any) -> str:
    """A default as TOML, which writes texts, numbers and booleans as JSON does."""
    return json.dumps(default)


def _convert(name: str, raw: Any, place: str) -> Any:
    kind = _TYPES[name]
    if kind is bool:
        return _convert_bool(name, raw, place)
    try:
        value = kind(raw)
    except (TypeError, ValueError):
        raise SettingsError(f"`{name}` must be {_KINDS[kind]}, not {raw!r}", where=place) from None
    if kind is float and not math.isfinite(value):
        raise SettingsError(f"`{name}` must be a finite number, not {value}", where=place)
    if name in _CHOICES and value not in _CHOICES[name]:
        known = ", ".join(_CHOICES[name])
        raise SettingsError(f"`{name}` must be one of {known}, not {value!r}", where=place)
    if name in _MINIMUM and value < _MINIMUM[name]:
        raise SettingsError(f"`{name}` must be at least {_MINIMUM[name]}, not {value}", where=place)
    return value


def _convert_bool(name: str, raw: Any, place: str) -> bool:
    if isinstance(raw, bool):
        return raw
    if str(raw).lower() in _TRUE | _FALSE:
        return str(raw).lower() in _TRUE
    raise SettingsError(f"`{name}` must be true or false, not {raw!r}", where=place)
