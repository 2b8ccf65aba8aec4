"""HTML: what can be seen becomes text, what is hidden does not, in any encoding."""

from __future__ import annotations

import time
from contextlib import suppress
from pathlib import Path

import pytest

from offline_judge.errors import DataError, MissingDependencyError
from offline_judge.retrieval.corpus.extraction import Extractor
from offline_judge.retrieval.corpus.html_text import decode_page, read_html

SEEN = "Le Caf\u00e9 de Flore is a coffeehouse in Paris that was opened in the eighteen eighties."
PAGE = """<!DOCTYPE html><html><head>{head}</head><body><nav><a href="/">Home</a></nav>
<article><h1>Caf\u00e9s</h1><p>{seen}</p>{more}<p>A second one tells of chairs and of prices.</p>
</article></body></html>"""


def _page(more: str = "", head: str = "<title>Caf\u00e9s - A Site</title>") -> bytes:
    return PAGE.format(head=head, seen=SEEN, more=more).encode()


def test_a_page_gives_title_text_address_and_date() -> None:
    head = (
        "<title> Caf\u00e9s \n of Paris</title><link rel=canonical href='https://a.example/c'>"
        "<meta property='article:published_time' content='2024-05-01T10:00:00Z'>"
    )
    found = read_html(_page(head=head))
    assert found["title"] == "Caf\u00e9s of Paris"
    assert found["url"] == "https://a.example/c"
    assert found["date"] == "2024-05-01"
    assert SEEN in found["text"]
    assert "# Caf\u00e9s" in found["text"]
    assert "Home" not in found["text"]


@pytest.mark.parametrize(
    "more",
    [
        "<p hidden>SECRET words</p>",
        "<p hidden=until-found>SECRET words</p>",
        "<p style='display:none'>SECRET words</p>",
        "<p style='color:red; DISPLAY : none !important'>SECRET words</p>",
        "<div style='display:none'><div><p>SECRET words</p></div></div>",
        "<p style='visibility:hidden'>SECRET words</p>",
        "<p style='opacity:0'>SECRET words</p>",
        "<p style='font-size:0px;color:red'>SECRET words</p>",
        "<p style='position:absolute;left:-9999px'>SECRET words</p>",
        "<style>.gone{color:red;display:none}</style><p class='a gone'>SECRET words</p>",
        "<style>/* x */ #x, p.y { visibility : hidden }</style><p class=y>SECRET words</p>",
        "<style>aside{display:none}</style><aside><p>SECRET words</p></aside>",
        "<template><p>SECRET words</p></template>",
        "<script>var x = 'SECRET words'</script>",
        "<noscript><p>SECRET words</p></noscript>",
        "<!-- SECRET words -->",
        "<svg><text>SECRET words</text></svg>",
    ],
)
def test_hidden_text_is_no_evidence(more: str) -> None:
    text = read_html(_page(more))["text"]
    assert "SECRET" not in text
    assert SEEN in text
    assert "chairs and of prices" in text


@pytest.mark.parametrize(
    "more",
    [
        "<p style='opacity:0.9'>SHOWN words of some length here</p>",
        "<p style='font-size:0.8em'>SHOWN words of some length here</p>",
        "<p style='display:block'>SHOWN words of some length here</p>",
        "<style>@media print { .a { display:none } }</style><p class=a>SHOWN words of length</p>",
        "<style>.menu .a { display:none }</style><p class=a>SHOWN words of some length here</p>",
        "<style>.a{opacity:0}</style><p class=a>SHOWN words of some length that fade in</p>",
        "<div hidden>x</div>SHOWN words behind a hidden element, of some length",
    ],
)
def test_what_can_be_seen_stays(more: str) -> None:
    assert "SHOWN words" in read_html(_page(more))["text"]


def test_a_page_that_hides_all_of_itself_until_a_script_runs_is_read() -> None:
    page = _page().replace(b"<body>", b"<body style='visibility:hidden'>")
    assert SEEN in read_html(page)["text"]


LATIN = "caf\u00e9".encode("latin-1")


@pytest.mark.parametrize(
    "raw",
    [
        b"<meta charset=iso-8859-1>" + LATIN,
        b"<meta charset='latin1'>" + LATIN,
        b'<meta http-equiv="Content-Type" content="text/html; charset=windows-1252">' + LATIN,
        b'<?xml version="1.0" encoding="ISO-8859-1"?><html>' + LATIN,
        b"no declaration " + LATIN,
        b"<meta charset=no-such-one>" + LATIN,
        b"<meta charset=utf-16>caf\xc3\xa9",
        "caf\u00e9".encode(),
        b"\xef\xbb\xbfcaf\xc3\xa9",
        "caf\u00e9".encode("utf-16"),
        b"\xfe\xff" + "caf\u00e9".encode("utf-16-be"),
    ],
)
def test_the_encoding_is_that_of_the_page(raw: bytes) -> None:
    assert decode_page(raw).endswith("caf\u00e9")


def test_declared_shift_jis_and_latin_1_pages_are_read() -> None:
    text = "\u6771\u4eac\u306f\u65e5\u672c\u306e\u9996\u90fd\u3067\u3042\u308b\u3002" * 5
    page = f"<html><head><meta charset=shift_jis></head><body><p>{text}</p></body></html>"
    assert text in read_html(page.encode("shift_jis"))["text"]
    page = f"<html><head><meta charset=iso-8859-1></head><body><p>{SEEN}</p></body></html>"
    assert SEEN in read_html(page.encode("latin-1"))["text"]


@pytest.mark.parametrize(
    ("raw", "text"),
    [
        (b"<p>Just a fragment of a page, with some words in it.</p>", "Just a fragment"),
        (b"plain words without any markup at all", "plain words"),
        (b"<html><body>" + b"<table><tr><td>A cell</td><td>Another</td></tr></table>", "A cell"),
    ],
)
def test_fragments_and_odd_pages_are_read(raw: bytes, text: str) -> None:
    assert text in read_html(raw)["text"]


@pytest.mark.parametrize("raw", [b"", b"   ", b"<html></html>", b"<html><body><img></body></html>"])
def test_a_page_that_shows_nothing_has_no_text(raw: bytes) -> None:
    assert read_html(raw)["text"].strip() == ""


def test_a_page_whose_main_text_is_not_recognised_is_taken_whole() -> None:
    items = "".join(f"<a href=x>Entry number {n} of the list</a><br>" for n in range(300))
    text = read_html(f"<html><body><div>{items}</div></body></html>".encode())["text"]
    assert "Entry number 0 " in text
    assert "Entry number 299 " in text


def test_a_page_that_takes_forever_is_given_up_and_the_next_one_read(tmp_path: Path) -> None:
    slow, good = tmp_path / "slow.html", tmp_path / "good.html"
    attributes = " ".join(f"a{n}=x" for n in range(200_000))
    slow.write_bytes(f"<html><body><p {attributes}>words</p></body></html>".encode() * 3)
    good.write_bytes(_page())
    extractor = Extractor(time_limit=3)
    started = time.monotonic()
    with pytest.raises(DataError, match="takes longer than 3 s"):
        extractor.read(slow, "html")
    assert time.monotonic() - started < 6
    assert SEEN in extractor.read(good, "html")["text"]
    extractor.close()
    extractor.close()


def test_a_page_nested_too_deeply_does_not_end_the_program(tmp_path: Path) -> None:
    path = tmp_path / "deep.html"
    path.write_bytes(b"<div>" * 100_000 + b"words")
    extractor = Extractor(time_limit=20)
    with suppress(DataError):
        extractor.read(path, "html")
    path.write_bytes(_page())
    assert SEEN in extractor.read(path, "html")["text"]
    extractor.close()


def test_a_reader_that_dies_is_named_and_replaced(tmp_path: Path) -> None:
    path = tmp_path / "a.html"
    path.write_bytes(_page())
    extractor = Extractor()
    extractor.read(path, "html")
    assert extractor._child is not None
    first = extractor._child.pid
    extractor._child.kill()
    extractor._child.wait()
    assert SEEN in extractor.read(path, "html")["text"]
    assert extractor._child.pid != first
    extractor.close()


def test_a_missing_package_names_what_installs_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("offline_judge.retrieval.corpus.extraction.find_spec", lambda _name: None)
    with pytest.raises(MissingDependencyError, match="trafilatura") as caught:
        Extractor().read(tmp_path / "a.html", "html")
    assert caught.value.remedy == 'pip install "offline-llm-judge[web]"'
