"""Owns what every test stands on: no network beyond loopback, folders of its own, real weights."""

from __future__ import annotations

import ipaddress
import os
import shutil
import socket
import tempfile
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
from hypothesis import settings as hypothesis_settings

from offline_judge.errors import MissingModelError

SMALL = "smollm2-135m-instruct"
JUDGE = "qwen2.5-coder-0.5b-instruct"
EMBEDDER = "all-minilm-l6-v2-int8"
MULTILINGUAL = "multilingual-e5-small-q4"
TEST_MODELS = "OFFLINE_JUDGE_TEST_MODELS"

# How long a case takes says more about the machine than about the program.
hypothesis_settings.register_profile("untimed", deadline=None)
hypothesis_settings.load_profile("untimed")


class BlockedNetworkError(RuntimeError):
    """A test reached for an address beyond loopback; no OSError, so that nothing catches it."""


def _check_host(host: object) -> None:
    if isinstance(host, bytes):
        host = host.decode("ascii", "replace")
    if host in (None, "", "localhost"):
        return
    try:
        address = ipaddress.ip_address(str(host).partition("%")[0])
    except ValueError:
        raise BlockedNetworkError(f"tests do not look up names: {host!r}") from None
    if not (address.is_loopback or address.is_unspecified):
        raise BlockedNetworkError(f"tests stay on this machine: {host!r}")


def _guarded(original: Any) -> Any:
    """Wrap a method of sockets whose last argument is an address."""

    def method(self: socket.socket, *args: Any) -> Any:
        if self.family in (socket.AF_INET, socket.AF_INET6):
            _check_host(args[-1][0])
        return original(self, *args)

    return method


def pytest_configure(config: pytest.Config) -> None:
    """Close the network before the first test module is imported."""
    patch = pytest.MonkeyPatch()
    config.add_cleanup(patch.undo)
    for name in ("connect", "connect_ex", "sendto"):
        patch.setattr(socket.socket, name, _guarded(getattr(socket.socket, name)))
    look_up = socket.getaddrinfo

    def getaddrinfo(host: Any, *args: Any, **kwargs: Any) -> Any:
        _check_host(host)
        return look_up(host, *args, **kwargs)

    patch.setattr(socket, "getaddrinfo", getaddrinfo)


@dataclass(frozen=True)
class Dirs:
    """The folders of one test."""

    home: Path
    data: Path
    cache: Path
    config: Path
    runtime: Path


@pytest.fixture
def isolated_dirs(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Dirs]:
    """Point this program, and every child of the test, at folders of the test's own."""
    # A control socket's path holds about 100 bytes, and pytest's folders are long already.
    runtime = Path(tempfile.mkdtemp(prefix="oj-"))
    dirs = Dirs(
        home=tmp_path / "home",
        data=tmp_path / "data",
        cache=tmp_path / "cache",
        config=tmp_path / "config",
        runtime=runtime,
    )
    for name in [name for name in os.environ if name.startswith("OFFLINE_JUDGE_")]:
        if name != TEST_MODELS:
            monkeypatch.delenv(name)
    variables = {
        "HOME": dirs.home,
        "XDG_CONFIG_HOME": dirs.config,
        "XDG_DATA_HOME": dirs.home / "share",
        "XDG_CACHE_HOME": dirs.home / "cache",
        "XDG_RUNTIME_DIR": dirs.runtime,
        "OFFLINE_JUDGE_DATA_DIR": dirs.data,
        "OFFLINE_JUDGE_CACHE_DIR": dirs.cache,
    }
    for name, path in variables.items():
        path.mkdir(parents=True, exist_ok=True)
        monkeypatch.setenv(name, str(path))
    yield dirs
    shutil.rmtree(runtime, ignore_errors=True)


@pytest.fixture(scope="session")
def built_evidence(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """An evidence folder with vectors and a Chroma index closed in good order; tests copy it."""
    # Imported here: only tests of the index pay for Chroma.
    from evidence_parts import INDEXED, build_index

    folder = tmp_path_factory.mktemp("built") / "evidence"
    build_index(folder, INDEXED)
    return folder


@pytest.fixture(scope="session")
def small_weights(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The 135M: knows next to nothing, but is a real model in a real engine."""
    return _weights(SMALL, tmp_path_factory.mktemp("checks"))


@pytest.fixture(scope="session")
def judge_weights(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The 0.5B: the smallest model that can judge at all."""
    return _weights(JUDGE, tmp_path_factory.mktemp("checks"))


@pytest.fixture(scope="session")
def embedder_weights(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The default embedder's ONNX file; its tokenizer lies beside it."""
    return _weights(EMBEDDER, tmp_path_factory.mktemp("checks"))


@pytest.fixture(scope="session")
def multilingual_weights(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The multilingual embedder's file."""
    return _weights(MULTILINGUAL, tmp_path_factory.mktemp("checks"))


def _weights(name: str, cache: Path) -> Path:
    # Imported here: tests without weights pay nothing for the store.
    from offline_judge.settings import load_settings
    from offline_judge.weights.cards import find_card
    from offline_judge.weights.store import ModelStore

    models = Path(os.environ.get(TEST_MODELS) or load_settings().models_path)
    try:
        return ModelStore(models, cache).path(find_card(name))
    except MissingModelError as error:
        # Where everything is meant to run, a skipped test would be a hole nobody sees.
        if os.environ.get("CI"):
            pytest.fail(f"{error}")
        pytest.skip(f"{error}")
