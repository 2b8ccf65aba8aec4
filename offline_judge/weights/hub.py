"""Source `huggingface`: one file over HTTP, resumable, from the hub or a mirror of it."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from offline_judge.weights.disk import human
from offline_judge.weights.fetching import FetchRequest, SourceFailedError
from offline_judge.weights.hub_client import endpoint, hub_client, refusal, words
from offline_judge.weights.sources import HubSource

if TYPE_CHECKING:
    import httpx

_CONNECT_ATTEMPTS = 2
# A server that gives a few bytes and cuts makes "progress" each time; this ends that.
_MOST_REQUESTS = 100


class _AgainError(Exception):
    """This request failed in a way that the next one may not; `limit` bounds such failures."""

    def __init__(self, reason: str, limit: int | None = None) -> None:
        super().__init__(reason)
        self.limit = limit


def fetch_from_hub(source: HubSource, request: FetchRequest) -> None:
    """Complete the partial file, going on where it ends if the hub's file is still the same.

    Raises:
        SourceFailedError: with the reason, for people.
        StorageError: the disk is full or cannot be written.
    """
    environ = request.options.environ
    address = f"{endpoint(environ)}/{source.repository}/resolve/{source.revision}/{source.path}"
    with hub_client(request.options) as client:
        _complete(client, address, source, request)


def _complete(client: httpx.Client, address: str, source: HubSource, request: FetchRequest) -> None:
    partial, failures = request.partial, 0
    for _ in range(_MOST_REQUESTS):
        before = partial.size
        if before >= request.file.size:
            return
        try:
            _request_rest(client, address, source, request)
            reason, limit = "the connection ended early", request.options.attempts
        except _AgainError as error:
            reason, limit = str(error), error.limit or request.options.attempts
        if partial.size >= request.file.size:
            return
        failures = 1 if partial.size > before else failures + 1
        if failures >= limit:
            raise SourceFailedError(f"{reason} ({failures} times in a row)")
        request.meter.at("download", source.label, partial.size, f"{reason}, trying again")
        request.options.pause(failures)
    raise SourceFailedError(f"gave up after {_MOST_REQUESTS} requests")


def _request_rest(
    client: httpx.Client, address: str, source: HubSource, request: FetchRequest
) -> None:
    """Make one request and append what it brings."""
    import httpx

    partial = request.partial
    validator = str(partial.state.get("validator", ""))
    if partial.size and not validator:
        partial.discard()
    headers = {}
    if partial.size:
        headers = {"Range": f"bytes={partial.size}-", "If-Range": validator}
    try:
        with client.stream("GET", address, headers=headers) as response:
            _prepare(response, validator, source, request)
            _append_body(response, source.label, request)
    except (httpx.ConnectError, httpx.ConnectTimeout) as error:
        raise _AgainError(f"cannot connect: {words(error)}", _CONNECT_ATTEMPTS) from error
    except httpx.TimeoutException as error:
        raise _AgainError(f"no answer for {request.options.read_s:g} s") from error
    except httpx.TransportError as error:
        if isinstance(error, httpx.UnsupportedProtocol):
            raise SourceFailedError(f"not an address of the web: {words(error)}") from error
        raise _AgainError(f"the connection broke: {words(error)}") from error
    except (httpx.HTTPError, httpx.InvalidURL) as error:
        raise SourceFailedError(words(error)) from error


def _prepare(
    response: httpx.Response, validator: str, source: HubSource, request: FetchRequest
) -> None:
    """Check the answer's head and make the partial file end where its body begins."""
    partial, status = request.partial, response.status_code
    if status == 416:
        partial.discard()
        raise _AgainError("it does not have the rest that was asked for")
    if status in (408, 429) or status >= 500:
        raise _AgainError(f"it answers HTTP {status}")
    if status not in (200, 206):
        raise SourceFailedError(refusal(response, source.repository))
    if response.headers.get("Content-Encoding", "identity") != "identity":
        raise SourceFailedError("it sends the file compressed, though asked not to")
    current = _validator(response)
    start, total = _extent(response)
    if total is not None and total != request.file.size:
        partial.discard()
        raise SourceFailedError(
            f"it offers {human(total)} ({total}) where the card promises {request.file.size}"
        )
    if status == 200:
        partial.discard()
        partial.remember({"validator": current})
    elif start != partial.size or (current and current != validator):
        partial.discard()
        raise _AgainError("the file there has changed")


def _append_body(response: httpx.Response, label: str, request: FetchRequest) -> None:
    with request.partial.appending() as append:
        request.meter.at("download", label, request.partial.size)
        for block in response.iter_raw():
            size = append(block)
            if size > request.file.size:
                break
            request.meter.at("download", label, size)
    if request.partial.size > request.file.size:
        request.partial.discard()
        raise SourceFailedError(f"it sends more than the {request.file.size} bytes promised")


def _validator(response: httpx.Response) -> str:
    """What tells this content from a later one: a strong ETag, or the time it was changed."""
    etag: str = response.headers.get("ETag", "")
    if etag.startswith('"'):
        return etag
    changed: str = response.headers.get("Last-Modified", "")
    return changed


def _extent(response: httpx.Response) -> tuple[int, int | None]:
    """Offset of the body's first byte, and bytes of the whole file where the answer says."""
    if response.status_code == 200:
        length = response.headers.get("Content-Length", "")
        return 0, int(length) if length.isdigit() else None
    match = re.fullmatch(r"bytes (\d+)-\d+/(\d+|\*)", response.headers.get("Content-Range", ""))
    if match is None:
        return -1, None
    return int(match[1]), None if match[2] == "*" else int(match[2])
