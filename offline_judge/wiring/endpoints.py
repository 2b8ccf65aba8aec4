"""Servers that already run, as a judge's name tells them, and which of them may be asked."""

from __future__ import annotations

import ipaddress
import os
import re
from collections.abc import Mapping
from dataclasses import dataclass, replace
from urllib.parse import urlsplit

from offline_judge.errors import UsageError
from offline_judge.settings import API_KEY, Settings
from offline_judge.wiring.installation import SCRIPTED

KINDS: Mapping[str, tuple[str, str]] = {
    "ollama": ("ollama", "http://127.0.0.1:11434"),
    "lmstudio": ("lmstudio", "http://127.0.0.1:1234"),
    "vllm": ("vllm", "http://127.0.0.1:8000"),
    "llama-server": ("llama_server", "http://127.0.0.1:8080"),
    "openai": ("openai", ""),
}
"""Prefix of a judge's name: its backend, and where it listens by default."""

_AT = re.compile(r"@(https?://\S+)$")


@dataclass(frozen=True)
class Endpoint:
    """One server.

    Attributes:
        kind: Prefix it was named by.
        backend: Name of its backend.
        model: What the model is called there.
        url: Its address, without a slash at the end.
        api_key: Its key; "" for none.
    """

    kind: str
    backend: str
    model: str
    url: str
    api_key: str = ""

    @property
    def local(self) -> bool:
        """It is on this machine."""
        return is_loopback(urlsplit(self.url).hostname or "")


def endpoints(settings: Settings, environ: Mapping[str, str] | None = None) -> tuple[Endpoint, ...]:
    """The servers that the judge's name stands for; empty where it names a model card.

    Raises:
        UsageError: a name cannot be read, names of cards and servers or several models are mixed,
            or a server is on another machine that was not allowed.
    """
    environ = os.environ if environ is None else environ
    if _is_script(settings.judge):
        return ()
    names = [name.strip() for name in settings.judge.split(",") if name.strip()]
    served = [name for name in names if name.partition(":")[0] in KINDS]
    _check_names(names, served, settings)
    found = tuple(_endpoint(name, settings, environ) for name in served)
    if found:
        _check_flags(settings)
        _check_alike(found, settings)
    for one in found:
        _check_allowed(one, settings)
    return found


def _check_names(names: list[str], served: list[str], settings: Settings) -> None:
    """Refuse names that cannot be meant, and cards and servers that cannot go together."""
    where = f"judge = {settings.judge}"
    for name in names:
        if name not in served and "@http" in name:
            raise UsageError(
                f"`{name.partition(':')[0]}` is no kind of server.",
                where=name,
                remedy=f"Kinds: {', '.join(KINDS)}.",
            )
    if served and len(served) < len(names):
        raise UsageError("Servers and model cards cannot judge together.", where=where)
    if not served and len(names) > 1:
        raise UsageError(
            "Several judges can only be servers that run, of one model.",
            where=where,
            remedy="For example: --judge vllm:MODEL@http://127.0.0.1:8000 --judge "
            "vllm:MODEL@http://127.0.0.1:8001",
        )
    if not served and settings.base_url and settings.origins.get("base_url") == "flag":
        raise UsageError(
            "--base-url names a server, and the judge is a model card.",
            where=where,
            remedy=f"Name the server's kind: {', '.join(f'{kind}:MODEL' for kind in KINDS)}.",
        )


def _check_flags(settings: Settings) -> None:
    """Refuse what is said beside a server and cannot hold for it."""
    if settings.origins.get("engine") == "flag":
        raise UsageError(
            "--engine runs a model card, and the judge is a server that runs already.",
            where=f"judge = {settings.judge}",
            remedy="Leave --engine out.",
        )
    if "/" in settings.allow_remote:
        raise UsageError(
            "--allow-remote takes the names of hosts, not addresses.",
            where=f"allow_remote = {settings.allow_remote}",
        )


def is_loopback(host: str) -> bool:
    """Whether a host's name is this machine's own, by itself: no name is looked up."""
    if host == "localhost":
        return True
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return False


def leaves_machine(settings: Settings, *others: str) -> tuple[str, ...]:
    """What is sent to other machines by the judge and by models of other names, a sentence each."""
    named = [settings, *(replace(settings, judge=name) for name in others)]
    found = {one.url: one for each in named for one in endpoints(each)}
    return tuple(
        f"prompts, with questions, responses and evidence, to {one.url} ({one.kind})"
        for one in found.values()
        if not one.local
    )


def _is_script(name: str) -> bool:
    return name.partition(":")[0] == SCRIPTED


def _endpoint(name: str, settings: Settings, environ: Mapping[str, str]) -> Endpoint:
    kind, _, rest = name.partition(":")
    backend, usual = KINDS[kind]
    at = _AT.search(rest)
    model = rest[: at.start()] if at else rest
    _, behind, address = rest.rpartition("@")
    if behind and not at and (not address or set(address) & set(":/.")):
        raise UsageError(
            f"{address!r} behind the model is no address.",
            where=name,
            remedy=f"An address begins with http:// or https://: {kind}:MODEL@http://HOST:PORT",
        )
    if kind == "openai":
        usual = environ.get("OPENAI_BASE_URL", "")
    url = (at[1] if at else settings.base_url or usual).rstrip("/")
    if not model:
        raise UsageError("The judge's name has no model.", where=name, remedy=f"{kind}:MODEL")
    if not url:
        raise UsageError(
            "The server's address is not known.",
            where=name,
            remedy="Give it with --base-url URL, or set OPENAI_BASE_URL.",
        )
    key = environ.get(API_KEY, "")
    if kind == "openai":
        key = key or environ.get("OPENAI_API_KEY", "")
    return Endpoint(kind, backend, model, _checked(url, name), key)


def _checked(url: str, name: str) -> str:
    """The address, whole and without what does not belong into one.

    The paths that are asked begin with `/v1`, which many addresses are written with.
    """
    parts = urlsplit(url)
    try:
        _ = parts.port
    except ValueError as error:
        raise UsageError(f"{url!r} is no address of a server: {error}.", where=name) from error
    if parts.scheme not in ("http", "https") or not parts.hostname:
        raise UsageError(
            f"{url!r} is no address of a server.", where=name, remedy="http://127.0.0.1:8000"
        )
    if parts.username or parts.password or parts.query or parts.fragment:
        raise UsageError(
            "The server's address holds more than an address.",
            where=name,
            remedy=f"A key is given in the environment, as {API_KEY}.",
        )
    return url.removesuffix("/v1")


def _check_alike(found: tuple[Endpoint, ...], settings: Settings) -> None:
    if len({(one.kind, one.model) for one in found}) > 1:
        raise UsageError(
            "Several servers share the work only where all are of one kind and have one model.",
            where=f"judge = {settings.judge}",
        )
    if len({one.url for one in found}) < len(found):
        raise UsageError(
            "A server is named twice.",
            where=f"judge = {settings.judge}",
            remedy="Give each its address: --judge vllm:MODEL@http://127.0.0.1:8001",
        )


def _check_allowed(one: Endpoint, settings: Settings) -> None:
    host = urlsplit(one.url).hostname or ""
    allowed = {name.strip().lower() for name in settings.allow_remote.split(",")}
    if not one.local and host not in allowed:
        raise UsageError(
            f"`{host}` is another machine, and what is judged would be sent to it.",
            where=one.url,
            remedy=f"If that is meant: --allow-remote {host}",
        )
