"""Fetching from the hub: whole, in pieces, and from servers that misbehave."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
from weights_helpers import (
    Hub,
    Recorder,
    gguf_bytes,
    hub_source,
    kept,
    make_card,
    make_store,
    serving,
)

from offline_judge.errors import DownloadError
from offline_judge.weights.fetching import PullProgress
from offline_judge.weights.partial import PartialFile

CONTENT = gguf_bytes()
CARD = make_card(CONTENT, hub_source())


@pytest.fixture(autouse=True)
def _no_proxy(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("http_proxy", "https_proxy", "all_proxy"):
        monkeypatch.delenv(name, raising=False)
        monkeypatch.delenv(name.upper(), raising=False)


@pytest.fixture
def hub() -> Iterator[Hub]:
    with serving(Hub(CONTENT)) as hub:
        yield hub


def test_pull_brings_the_file_and_leaves_nothing_else(hub: Hub, tmp_path: Path) -> None:
    recorder = Recorder()
    path = make_store(tmp_path, hub.environ()).pull(CARD, recorder)
    assert path.read_bytes() == CONTENT
    assert kept(tmp_path) == ["tiny.gguf"]
    assert hub.requests[0]["path"] == "/owner/model/resolve/main/tiny.gguf"
    assert recorder.seen[-1].phase == "done"
    assert [p.done for p in recorder.seen if p.phase == "download"][-1] == len(CONTENT)


def test_cut_connection_is_resumed_where_it_ended(hub: Hub, tmp_path: Path) -> None:
    hub.cuts = [30_000]
    path = make_store(tmp_path, hub.environ()).pull(CARD)
    assert path.read_bytes() == CONTENT
    assert hub.requests[1]["Range"] == "bytes=30000-"
    assert hub.requests[1]["If-Range"] == '"one"'
    assert hub.sent == [30_000, len(CONTENT) - 30_000]


def test_next_pull_goes_on_where_the_last_gave_up(hub: Hub, tmp_path: Path) -> None:
    hub.cuts, hub.statuses = [30_000], [200, 404]
    store = make_store(tmp_path, hub.environ())
    with pytest.raises(DownloadError):
        store.pull(CARD)
    assert store.state(CARD) == "partial"
    assert make_store(tmp_path, hub.environ()).pull(CARD).read_bytes() == CONTENT
    assert hub.requests[-1]["Range"] == "bytes=30000-"


def test_listener_that_raises_cancels_and_keeps_the_partial_file(hub: Hub, tmp_path: Path) -> None:
    def cancel(progress: PullProgress) -> None:
        if progress.done:
            raise KeyboardInterrupt

    store = make_store(tmp_path, hub.environ())
    with pytest.raises(KeyboardInterrupt):
        store.pull(CARD, cancel)
    assert kept(tmp_path) == ["huggingface.partial"]
    assert store.pull(CARD).read_bytes() == CONTENT


@pytest.mark.parametrize("if_range", [True, False])
def test_changed_file_starts_again(hub: Hub, tmp_path: Path, if_range: bool) -> None:
    hub.content, hub.cuts, hub.statuses = gguf_bytes(seed=1), [30_000], [200, 404]
    hub.if_range = if_range
    store = make_store(tmp_path, hub.environ())
    with pytest.raises(DownloadError):
        store.pull(CARD)
    hub.content, hub.etag = CONTENT, '"two"'
    recorder = Recorder()
    assert store.pull(CARD, recorder).read_bytes() == CONTENT
    assert hub.sent[-1] == len(CONTENT)
    # Seen from the head of the answer, not only from a hash at the end.
    assert [p.done for p in recorder.seen if p.phase == "check"][-1] == len(CONTENT)
    assert len([p for p in recorder.seen if "has changed" in p.note]) == (0 if if_range else 1)


def test_server_without_ranges_starts_again(hub: Hub, tmp_path: Path) -> None:
    hub.cuts, hub.ranges = [30_000], False
    assert make_store(tmp_path, hub.environ()).pull(CARD).read_bytes() == CONTENT
    assert hub.sent == [30_000, len(CONTENT)]


def test_server_without_validator_is_not_resumed(hub: Hub, tmp_path: Path) -> None:
    hub.cuts, hub.etag = [30_000], ""
    assert make_store(tmp_path, hub.environ()).pull(CARD).read_bytes() == CONTENT
    assert "Range" not in hub.requests[1]


def test_wrong_hash_keeps_nothing_and_names_the_source(hub: Hub, tmp_path: Path) -> None:
    hub.content = gguf_bytes(seed=1)
    with pytest.raises(DownloadError, match=r"huggingface owner/model: its SHA-256 is") as caught:
        make_store(tmp_path, hub.environ()).pull(CARD)
    assert caught.value.exit_code == 3
    assert kept(tmp_path) == []
    assert len(hub.requests) == 1


def test_wrong_hash_falls_to_the_next_source(hub: Hub, tmp_path: Path) -> None:
    hub.bodies = {"evil/model": gguf_bytes(seed=1)}
    card = make_card(CONTENT, hub_source("evil/model"), hub_source())
    recorder = Recorder()
    path = make_store(tmp_path, hub.environ()).pull(card, recorder)
    assert path.read_bytes() == CONTENT
    assert [p.source for p in recorder.seen if p.phase == "failed"] == ["huggingface evil/model"]


def test_damaged_partial_file_is_fetched_afresh_from_the_same_source(
    hub: Hub, tmp_path: Path
) -> None:
    hub.cuts, hub.statuses = [30_000], [200, 404]
    store = make_store(tmp_path, hub.environ())
    with pytest.raises(DownloadError):
        store.pull(CARD)
    partial = next(tmp_path.rglob("*.partial"))
    partial.write_bytes(b"\0" * 30_000)
    assert store.pull(CARD).read_bytes() == CONTENT
    assert hub.sent[-1] == len(CONTENT)


def test_missing_file_is_not_asked_for_again(hub: Hub, tmp_path: Path) -> None:
    hub.statuses = [404]
    with pytest.raises(DownloadError, match="HTTP 404: it has no such file"):
        make_store(tmp_path, hub.environ()).pull(CARD)
    assert len(hub.requests) == 1


def test_forbidden_file_names_the_token(hub: Hub, tmp_path: Path) -> None:
    hub.statuses = [401]
    with pytest.raises(DownloadError, match="HF_TOKEN"):
        make_store(tmp_path, hub.environ()).pull(CARD)


def test_server_error_is_tried_again(hub: Hub, tmp_path: Path) -> None:
    hub.statuses = [500, 503]
    assert make_store(tmp_path, hub.environ()).pull(CARD).read_bytes() == CONTENT
    assert len(hub.requests) == 3


def test_lasting_server_error_is_given_up(hub: Hub, tmp_path: Path) -> None:
    hub.statuses = [500] * 50
    with pytest.raises(DownloadError, match=r"HTTP 500 \(3 times in a row\)"):
        make_store(tmp_path, hub.environ()).pull(CARD)
    assert len(hub.requests) == 3


def test_silent_server_is_given_up_with_its_time(hub: Hub, tmp_path: Path) -> None:
    hub.hold.clear()
    with pytest.raises(DownloadError, match=r"no answer for 0\.05 s \(2 times in a row\)"):
        make_store(tmp_path, hub.environ(), read_s=0.05, attempts=2).pull(CARD)


def test_unreachable_server_is_given_up_after_two_tries(tmp_path: Path) -> None:
    with serving(Hub(CONTENT)) as gone:
        environ = gone.environ()
    with pytest.raises(DownloadError, match=r"cannot connect: .* \(2 times in a row\)"):
        make_store(tmp_path, environ).pull(CARD)


def test_offline_switch_asks_nobody(hub: Hub, tmp_path: Path) -> None:
    with pytest.raises(DownloadError, match="HF_HUB_OFFLINE"):
        make_store(tmp_path, hub.environ(HF_HUB_OFFLINE="1")).pull(CARD)
    assert hub.requests == []


def test_token_goes_to_the_hub_but_not_where_it_sends_us(hub: Hub, tmp_path: Path) -> None:
    with serving(Hub(CONTENT)) as elsewhere:
        hub.redirect = elsewhere.address.replace("127.0.0.1", "localhost")
        path = make_store(tmp_path, hub.environ(HF_TOKEN="hf_secret")).pull(CARD)
    assert path.read_bytes() == CONTENT
    assert hub.requests[0]["Authorization"] == "Bearer hf_secret"
    assert "Authorization" not in elsewhere.requests[0]


def test_resume_goes_through_a_redirect(hub: Hub, tmp_path: Path) -> None:
    with serving(Hub(CONTENT)) as elsewhere:
        elsewhere.cuts = [30_000]
        hub.redirect = elsewhere.address
        assert make_store(tmp_path, hub.environ()).pull(CARD).read_bytes() == CONTENT
    assert elsewhere.sent == [30_000, len(CONTENT) - 30_000]


def test_offer_of_another_size_is_refused_before_it_is_fetched(hub: Hub, tmp_path: Path) -> None:
    hub.content = b"<html>please log in</html>"
    with pytest.raises(DownloadError, match=rf"26\) where the card promises {len(CONTENT)}"):
        make_store(tmp_path, hub.environ()).pull(CARD)
    assert kept(tmp_path) == []


def test_endless_body_is_cut_off(hub: Hub, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    hub.content, hub.length = CONTENT + b"x" * 5_000_000, False
    append, sizes = PartialFile._append, [0]

    def noting(self: PartialFile, block: bytes) -> int:
        sizes.append(append(self, block))
        return sizes[-1]

    monkeypatch.setattr(PartialFile, "_append", noting)
    with pytest.raises(DownloadError, match="sends more than"):
        make_store(tmp_path, hub.environ()).pull(CARD)
    assert kept(tmp_path) == []
    assert max(sizes) < 1_000_000


@pytest.mark.parametrize("endpoint", ["ftp://127.0.0.1/x", "nowhere", "http://127.0.0.1:port"])
def test_endpoint_that_is_no_address_is_a_plain_failure(endpoint: str, tmp_path: Path) -> None:
    with pytest.raises(DownloadError, match="huggingface owner/model: "):
        make_store(tmp_path, {"HF_ENDPOINT": endpoint}).pull(CARD)


def test_token_with_a_line_break_inside_is_refused_unsent(hub: Hub, tmp_path: Path) -> None:
    with pytest.raises(DownloadError, match="HF_TOKEN holds characters"):
        make_store(tmp_path, hub.environ(HF_TOKEN="a\nb")).pull(CARD)
    assert hub.requests == []
