"""Asking the hub which files a card means: pages, refusals, and lists that cannot be used."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
from listing_hub import ListingHub, hub_card, listing
from weights_helpers import gguf_bytes, make_store

from offline_judge.errors import DownloadError
from offline_judge.weights.fetching import FetchOptions
from offline_judge.weights.listing import Listing, list_files
from offline_judge.weights.sources import HubListing

CONTENT = gguf_bytes()
API = "/api/models/owner/model-GGUF"


@pytest.fixture(autouse=True)
def _no_proxy(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("http_proxy", "https_proxy", "all_proxy"):
        monkeypatch.delenv(name, raising=False)
        monkeypatch.delenv(name.upper(), raising=False)


@pytest.fixture
def hub() -> Iterator[ListingHub]:
    with listing(ListingHub(**{"m-Q4_K_M.gguf": CONTENT, "README.md": b"words"})) as served:
        yield served


def ask(hub: ListingHub, pattern: str = "*Q4_K_M*.gguf", **environ: str) -> Listing:
    card = hub_card(pattern)
    assert card.hub is not None
    return list_files(
        card.hub, FetchOptions(environ=hub.environ(**environ), back_off_s=0.0, attempts=3)
    )


def test_every_page_is_read(hub: ListingHub) -> None:
    many = {f"other-{number:03}.gguf": CONTENT for number in range(30)}
    hub.commit({**many, "z-Q4_K_M.gguf": CONTENT})
    hub.page = 7
    (file,) = ask(hub).files
    assert file.path == "z-Q4_K_M.gguf"
    assert len([path for path in hub.asked if "/tree/" in path]) == 5


def test_links_to_another_host_are_followed_on_the_endpoint_only(hub: ListingHub) -> None:
    with listing(ListingHub()) as other:
        hub.commit({"a.gguf": CONTENT, "b-Q4_K_M.gguf": CONTENT})
        hub.page, hub.elsewhere = 1, other.address
        assert ask(hub, HF_TOKEN="hf_secret").files[0].path == "b-Q4_K_M.gguf"
        assert other.asked == []
    assert hub.tokens == {"Bearer hf_secret"}


def test_pages_without_end_are_given_up(hub: ListingHub, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("offline_judge.weights.listing._MOST_PAGES", 2)
    hub.commit({f"{number}.gguf": CONTENT for number in range(9)})
    hub.page = 1
    with pytest.raises(DownloadError, match="more than 2 pages"):
        ask(hub)


def test_a_list_without_end_is_given_up(hub: ListingHub, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("offline_judge.weights.listing._MOST_BYTES", 1000)
    hub.raw = b"[" + b" " * 2000
    with pytest.raises(DownloadError, match="longer than 1,000 bytes"):
        ask(hub)


@pytest.mark.parametrize(("status", "code"), [(401, "GatedRepo"), (403, "GatedRepo"), (403, "")])
@pytest.mark.parametrize("path", [f"{API}/", "/owner/model-GGUF/resolve/"])
def test_a_gated_repository_says_to_accept_its_terms_and_set_a_token(
    hub: ListingHub, tmp_path: Path, status: int, code: str, path: str
) -> None:
    hub.refusals[path] = (status, code)
    with pytest.raises(DownloadError) as caught:
        make_store(tmp_path, hub.environ()).pull(hub_card())
    assert f"HTTP {status}" in str(caught.value)
    assert "accept the model's terms on https://huggingface.co/owner/model-GGUF" in str(
        caught.value
    )
    assert "then set HF_TOKEN" in str(caught.value)


def test_a_repository_that_is_not_public_may_not_exist(hub: ListingHub) -> None:
    hub.refusals[API] = (401, "RepoNotFound")
    with pytest.raises(DownloadError, match="no public repository of this name"):
        ask(hub)


def test_a_revision_that_is_not_there_is_named(hub: ListingHub) -> None:
    wanted = HubListing(repository="owner/model-GGUF", revision="v9", pattern="*")
    with pytest.raises(DownloadError, match="HTTP 404: it has no such revision"):
        list_files(wanted, FetchOptions(environ=hub.environ()))


def test_a_busy_hub_is_asked_again(hub: ListingHub) -> None:
    hub.busy = 2
    assert len(ask(hub).files) == 1


def test_a_hub_that_stays_busy_is_given_up(hub: ListingHub) -> None:
    hub.busy = 100
    with pytest.raises(DownloadError, match=r"HTTP 503 \(3 times in a row\)"):
        ask(hub)
    assert len(hub.asked) == 3


def test_a_hub_that_cannot_be_reached_is_told(hub: ListingHub) -> None:
    with listing(ListingHub()) as gone:
        pass
    with pytest.raises(DownloadError, match="the connection failed"):
        ask(gone)


@pytest.mark.parametrize("endpoint", ["ftp://127.0.0.1/x", "nowhere", "http://127.0.0.1:port"])
def test_an_endpoint_that_is_no_address_is_a_plain_failure(endpoint: str) -> None:
    hub = ListingHub()
    hub.address = endpoint
    with pytest.raises(DownloadError, match="list of files cannot be had"):
        ask(hub)


@pytest.mark.parametrize("raw", [b"{}", b"<html>", b'"x"'])
def test_an_answer_that_is_no_list_is_refused(hub: ListingHub, raw: bytes) -> None:
    hub.raw = raw
    with pytest.raises(DownloadError, match=r"no list|no JSON"):
        ask(hub)


def test_no_match_names_what_there_is(hub: ListingHub) -> None:
    with pytest.raises(DownloadError, match=r"No file matches '\*Q5\*'.*m-Q4_K_M\.gguf") as caught:
        ask(hub, "*Q5*")
    assert "pattern" in caught.value.remedy


def test_several_models_are_not_chosen_among(hub: ListingHub) -> None:
    hub.commit({"a-Q4_K_M.gguf": CONTENT, "b-Q4_K_M.gguf": CONTENT})
    with pytest.raises(DownloadError, match=r"Several models match.*a-Q4_K_M.*b-Q4_K_M"):
        ask(hub)


def test_parts_beside_a_whole_file_are_several_models(hub: ListingHub) -> None:
    part = {f"m-Q4_K_M-0000{n}-of-00002.gguf": CONTENT for n in (1, 2)}
    hub.commit({**part, "m-Q4_K_M.gguf": CONTENT})
    with pytest.raises(DownloadError, match="Several models"):
        ask(hub)


def test_a_pattern_with_a_slash_is_one_for_the_path(hub: ListingHub) -> None:
    hub.commit({"a/m-Q4_K_M.gguf": CONTENT, "b/m-Q4_K_M.gguf": CONTENT})
    assert ask(hub, "b/*.gguf").files[0].path == "b/m-Q4_K_M.gguf"


def test_a_part_that_the_repository_lacks_is_named(hub: ListingHub) -> None:
    hub.commit({f"m-Q4_K_M-0000{n}-of-00003.gguf": CONTENT for n in (1, 3)})
    with pytest.raises(DownloadError, match=r"lacks parts.*m-Q4_K_M-00002-of-00003\.gguf"):
        ask(hub)


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"lfs": {"oid": "0" * 63, "size": 5}}, "sha256"),
        ({"lfs": {"oid": "0" * 64, "size": 0}}, "size"),
        ({"lfs": {"oid": "0" * 64, "size": "many"}}, "size"),
        ({"lfs": None}, "tells no SHA-256"),
        ({"path": "../../m-Q4_K_M.gguf"}, "path"),
        ({"path": "a/.m-Q4_K_M.gguf"}, "path"),
    ],
)
def test_entries_that_cannot_be_trusted_are_refused(
    hub: ListingHub, change: dict[str, object], message: str
) -> None:
    hub.entries["m-Q4_K_M.gguf"] = change
    with pytest.raises(DownloadError, match=message):
        ask(hub)


def test_a_commit_that_is_none_is_refused(hub: ListingHub) -> None:
    hub.commits["../../x"] = {}
    with pytest.raises(DownloadError, match="names no commit"):
        ask(hub)
