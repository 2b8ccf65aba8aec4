"""How the hub is spoken to: its address, the token, offline mode, and what its refusals mean."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING

from offline_judge.weights.fetching import FetchOptions, SourceFailedError

if TYPE_CHECKING:
    import httpx

HUB = "https://huggingface.co"
_TRUE = {"1", "true", "yes", "on"}
OFFLINE = "HF_HUB_OFFLINE is set"


def endpoint(environ: Mapping[str, str]) -> str:
    """Address of the hub, or of the mirror that `HF_ENDPOINT` names, without a slash at its end."""
    return (environ.get("HF_ENDPOINT") or HUB).rstrip("/")


def is_offline(environ: Mapping[str, str]) -> bool:
    """Whether `HF_HUB_OFFLINE` forbids to ask the hub."""
    return environ.get("HF_HUB_OFFLINE", "").lower() in _TRUE


def hub_client(options: FetchOptions) -> httpx.Client:
    """A client that sends the token to the hub and nowhere else; use as a context manager.

    Raises:
        SourceFailedError: the hub must not be asked, or proxy, certificates or token are wrong.
    """
    import httpx

    if is_offline(options.environ):
        raise SourceFailedError(f"skipped, because {OFFLINE}")
    # Compression would make byte offsets meaningless.
    headers = {"Accept-Encoding": "identity"}
    if token := options.environ.get("HF_TOKEN", "").strip():
        if not (token.isascii() and token.isprintable()):
            raise SourceFailedError("HF_TOKEN holds characters that no token has")
        headers["Authorization"] = f"Bearer {token}"
    timeout = httpx.Timeout(options.read_s, connect=options.connect_s)
    try:
        # The client drops `Authorization` when it is redirected to another host.
        return httpx.Client(timeout=timeout, follow_redirects=True, headers=headers)
    except (ValueError, OSError, ImportError) as error:
        raise SourceFailedError(f"proxy or certificate settings: {error}") from error


def refusal(response: httpx.Response, repository: str) -> str:
    """What an answer means that is no file and no listing."""
    status, code = response.status_code, response.headers.get("X-Error-Code", "")
    # Terms are accepted on the hub itself, whichever mirror the files come from.
    terms = f"accept the model's terms on {HUB}/{repository}, then set HF_TOKEN"
    if code == "GatedRepo" or status == 403:
        return f"it answers HTTP {status}: it refuses access; {terms}"
    if status == 401:
        # So the hub answers for a repository that is not there, too.
        return (
            f"it answers HTTP 401: it wants a token, or has no public repository of this name; "
            f"where it is gated, {terms}"
        )
    if status == 404:
        what = {"RevisionNotFound": "revision", "RepoNotFound": "repository"}.get(code, "file")
        return f"it answers HTTP 404: it has no such {what}"
    return f"it answers HTTP {status}: that is not what was asked for"


def words(error: Exception) -> str:
    """What an error of the client says."""
    return str(error) or type(error).__name__
