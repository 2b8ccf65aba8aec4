"""Asks the hub which files of a repository a card means, with their sizes and hashes."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from fnmatch import fnmatchcase
from typing import TYPE_CHECKING, Any, NoReturn
from urllib.parse import quote

from pydantic import Field, ValidationError

from offline_judge.domain.base import Frozen
from offline_judge.errors import DownloadError
from offline_judge.weights.fetching import FetchOptions, SourceFailedError
from offline_judge.weights.hub_client import endpoint, hub_client, is_offline, refusal, words
from offline_judge.weights.sources import HubListing, HubPath, SafeName, Sha256
from offline_judge.weights.splits import missing_parts, one_model, part_of

if TYPE_CHECKING:
    import httpx

_COMMIT = re.compile(r"[0-9a-f]{40,64}")
_MOST_PAGES = 200
_MOST_BYTES = 32 << 20
_SHOWN = 8


class ListedFile(Frozen):
    """A file as the hub lists it."""

    path: HubPath
    name: SafeName
    size: int = Field(gt=0)
    sha256: Sha256


class Listing(Frozen):
    """What a card's pattern matches in a repository at one commit; a split file in order."""

    commit: str
    files: tuple[ListedFile, ...] = Field(min_length=1)


def list_files(hub: HubListing, options: FetchOptions) -> Listing:
    """Ask the hub for the files that a card means.

    Raises:
        DownloadError: the hub cannot be asked or refuses, or the pattern means no file, several
            models, or a split file that lacks a part.
    """
    try:
        with hub_client(options) as client:
            asked = _Asked(client, options, hub.repository)
            commit = _commit(asked, hub)
            entries = list(_entries(asked, commit))
    except SourceFailedError as error:
        once = "Which files the card means is asked of the hub once; later pulls use what it said."
        raise DownloadError(
            f"The hub's list of files cannot be had: {error}.",
            where=hub.label,
            remedy=f"{once} Unset HF_HUB_OFFLINE for it." if is_offline(options.environ) else "",
        ) from error
    matching = [entry for entry in entries if _matches(entry, hub.pattern)]
    _check_choice(hub, matching, entries)
    return Listing(commit=commit, files=tuple(_file(hub, entry) for entry in _sorted(matching)))


class _Asked:
    """One repository of the hub, asked for JSON."""

    def __init__(self, client: httpx.Client, options: FetchOptions, repository: str) -> None:
        self._client = client
        self._options = options
        self._repository = repository
        self._base = f"{endpoint(options.environ)}/api/models/{repository}"

    def get(self, path: str, query: dict[str, str]) -> tuple[Any, str]:
        """The answer, and the address of the page behind it or ""; tries again what may pass.

        Raises:
            SourceFailedError: with the reason, for people.
        """
        failures = 0
        while True:
            try:
                return self._once(f"{self._base}/{path}", query)
            except _PassingError as error:
                failures += 1
                if failures >= self._options.attempts:
                    raise SourceFailedError(f"{error} ({failures} times in a row)") from error
                self._options.pause(failures)

    def _once(self, address: str, query: dict[str, str]) -> tuple[Any, str]:
        import httpx

        try:
            with self._client.stream("GET", address, params=query) as response:
                status = response.status_code
                if status in (408, 429) or status >= 500:
                    raise _PassingError(f"it answers HTTP {status}")
                if status != 200:
                    raise SourceFailedError(refusal(response, self._repository))
                body = _bounded(response)
                following = response.links.get("next", {}).get("url", "")
        except httpx.UnsupportedProtocol as error:
            raise SourceFailedError(f"not an address of the web: {words(error)}") from error
        except httpx.TransportError as error:
            raise _PassingError(f"the connection failed: {words(error)}") from error
        except (httpx.HTTPError, httpx.InvalidURL) as error:
            raise SourceFailedError(words(error)) from error
        try:
            return json.loads(body), following
        except ValueError as error:
            raise SourceFailedError("its answer is no JSON") from error


class _PassingError(Exception):
    """A request failed in a way that the next one may not."""


def _bounded(response: httpx.Response) -> bytes:
    body = bytearray()
    for block in response.iter_bytes():
        body += block
        if len(body) > _MOST_BYTES:
            raise SourceFailedError(f"its answer is longer than {_MOST_BYTES:,} bytes")
    return bytes(body)


def _commit(asked: _Asked, hub: HubListing) -> str:
    answer, _ = asked.get(f"revision/{quote(hub.revision, safe='')}", {})
    commit = answer.get("sha") if isinstance(answer, dict) else None
    if not isinstance(commit, str) or not _COMMIT.fullmatch(commit):
        raise SourceFailedError(f"it names no commit for the revision {hub.revision}")
    return commit


def _entries(asked: _Asked, commit: str) -> Iterator[dict[str, Any]]:
    """All files of the repository, page by page."""
    import httpx

    query = {"recursive": "true"}
    for _ in range(_MOST_PAGES):
        page, following = asked.get(f"tree/{commit}", query)
        if not isinstance(page, list):
            raise SourceFailedError("its list of files is no list")
        for entry in page:
            if isinstance(entry, dict) and entry.get("type") == "file":
                yield entry
        if not following:
            return
        # Only the place in the list is taken from there: a mirror may hand on links to the hub
        # itself, and the token goes nowhere but to the endpoint.
        query |= dict(httpx.URL(following).params)
    raise SourceFailedError(f"its list of files has more than {_MOST_PAGES} pages")


def _matches(entry: dict[str, Any], pattern: str) -> bool:
    path = str(entry.get("path", ""))
    return fnmatchcase(path if "/" in pattern else path.rpartition("/")[2], pattern)


def _check_choice(
    hub: HubListing, matching: list[dict[str, Any]], entries: list[dict[str, Any]]
) -> None:
    paths = [str(entry["path"]) for entry in matching]

    def refuse(what: str, names: list[str], remedy: str) -> NoReturn:
        more = f" and {len(names) - _SHOWN} more" if len(names) > _SHOWN else ""
        shown = f"{', '.join(names[:_SHOWN])}{more}" if names else "none"
        raise DownloadError(f"{what}: {shown}.", where=hub.label, remedy=remedy)

    of_card = "Set `pattern` in the section [hub] of the card"
    if not paths:
        models = [str(e.get("path")) for e in entries if str(e.get("path")).endswith(".gguf")]
        refuse(f"No file matches {hub.pattern!r}; GGUF files there", models, f"{of_card} to one.")
    if not one_model(paths):
        refuse(f"Several models match {hub.pattern!r}", paths, f"{of_card} so that one is left.")
    if lacking := missing_parts(paths):
        refuse("The repository lacks parts of a split file", lacking, "Ask its owner for them.")


def _sorted(matching: list[dict[str, Any]]) -> list[dict[str, Any]]:
    def number(entry: dict[str, Any]) -> int:
        part = part_of(str(entry["path"]))
        return part.number if part else 0

    return sorted(matching, key=number)


def _file(hub: HubListing, entry: dict[str, Any]) -> ListedFile:
    path = str(entry["path"])
    large = entry.get("lfs")
    if not isinstance(large, dict):
        raise DownloadError(
            f"The hub tells no SHA-256 of {path}, so it could not be checked.", where=hub.label
        )
    values = {
        "path": path,
        "name": path.rpartition("/")[2],
        "size": large.get("size", entry.get("size")),
        "sha256": large.get("oid"),
    }
    try:
        return ListedFile.model_validate(values)
    except ValidationError as error:
        first = error.errors()[0]
        raise DownloadError(
            f"What the hub lists of {path} cannot be used: {first['loc'][0]}: {first['msg']}.",
            where=hub.label,
        ) from error
