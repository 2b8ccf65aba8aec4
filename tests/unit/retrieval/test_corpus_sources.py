"""Files and folders as documents: what is read, what is left out, and that it is said."""

from __future__ import annotations

import asyncio
import json
import os
from collections.abc import Sequence
from pathlib import Path

import pytest
from corpus_files import pdf

from offline_judge.errors import DataError
from offline_judge.retrieval.corpus import sources
from offline_judge.retrieval.corpus.build import build_corpus
from offline_judge.retrieval.corpus.documents import Document, Unread
from offline_judge.retrieval.corpus.extraction import Extractor
from offline_judge.retrieval.corpus.sources import FileSource
from offline_judge.retrieval.corpus.store import CorpusManifest
from offline_judge.retrieval.search.corpus import CorpusSearch

HTML = (
    '<html><head><meta charset="iso-8859-1"><title>Caf\u00e9s</title></head><body><p>The caf\u00e9 '
    "is an old one.</p><p hidden>SECRET</p></body></html>"
).encode("latin-1")


def _read(paths: Sequence[Path], **options: bool) -> tuple[dict[str, Document], list[str]]:
    with FileSource(paths, **options) as files:
        found = {}
        for item in files:
            document = item.read() if isinstance(item, Unread) else item
            if document is not None:
                found[document.id] = document
        return found, files.source.left_out


def _build(paths: Sequence[Path], corpora: Path, **options: bool) -> CorpusManifest:
    with FileSource(paths, **options) as files:
        return build_corpus("c", files, corpora, source=files.source)


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    root = tmp_path / "docs"
    (root / "sub").mkdir(parents=True)
    (root / ".git").mkdir()
    (root / ".git" / "notes.md").write_text("hidden folder")
    (root / ".hidden.md").write_text("hidden file")
    (root / "rows.jsonl").write_text(json.dumps({"id": "r1", "title": "Row", "text": "A row."}))
    (root / "a.md").write_text("# Ants\n\nAnts dig.")
    (root / "b.txt").write_text("\ufeffBees hum.", "utf-8")
    (root / "sub" / "c.HTML").write_bytes(HTML)
    (root / "sub" / "d.pdf").write_bytes(pdf(["Ducks swim."], "On Ducks"))
    (root / "e.png").write_bytes(b"\x89PNG")
    (root / "f.docx").write_bytes(b"PK")
    (root / "g.docx").write_bytes(b"PK")
    (root / "LICENSE").write_text("free")
    return root


def test_a_folder_is_read_by_suffix_and_the_rest_is_said(folder: Path) -> None:
    found, left_out = _read([folder])
    assert {name: document.title for name, document in found.items()} == {
        "r1": "Row",
        "a.md": "Ants",
        "b.txt": "b",
        "sub/c.HTML": "Caf\u00e9s",
        "sub/d.pdf": "On Ducks",
    }
    assert found["b.txt"].text == "Bees hum."
    assert found["sub/c.HTML"].text.strip() == "The caf\u00e9 is an old one."
    assert (found["sub/d.pdf"].text, found["sub/d.pdf"].date) == ("Ducks swim.", "2024-05-01")
    assert left_out == [
        "4 files of kinds that are not read: .docx (2), without a suffix (1), .png (1)"
    ] or left_out == [
        "4 files of kinds that are not read: .docx (2), .png (1), without a suffix (1)"
    ]


def test_it_is_searched_with_the_file_as_document(folder: Path, tmp_path: Path) -> None:
    manifest = _build([folder], tmp_path / "corpora")
    assert manifest.paths == (str(folder),)
    assert len(manifest.left_out) == 1
    (hit,) = asyncio.run(CorpusSearch("c", tmp_path / "corpora").search("ducks", limit=3))
    assert (hit.passage.document_id, hit.passage.title) == ("sub/d.pdf", "On Ducks")
    assert hit.passage.date == "2024-05-01"


def test_several_paths_keep_their_files_apart(tmp_path: Path) -> None:
    for name in ("one", "two"):
        (tmp_path / name).mkdir()
        (tmp_path / name / "a.md").write_text(f"# {name}")
    found, _ = _read([tmp_path / "one", tmp_path / "two", tmp_path / "one" / "a.md"])
    assert sorted(found) == ["a.md", "one/a.md", "two/a.md"]


def test_two_files_of_one_name_are_refused(tmp_path: Path) -> None:
    for name in ("one", "two"):
        (tmp_path / name).mkdir()
        (tmp_path / name / "a.md").write_text("words")
    with pytest.raises(DataError, match="Two documents have the id"):
        _build([tmp_path / "one" / "a.md", tmp_path / "two" / "a.md"], tmp_path / "corpora")


@pytest.mark.parametrize("name", ["a.png", "a", "a.docx"])
def test_a_named_file_of_another_kind_is_refused(tmp_path: Path, name: str) -> None:
    (tmp_path / name).write_bytes(b"x")
    with pytest.raises(DataError) as caught:
        FileSource([tmp_path / name])
    assert ".jsonl, .ndjson, .md" in caught.value.remedy


def test_a_path_that_is_not_there_or_no_file_is_refused(tmp_path: Path) -> None:
    with pytest.raises(DataError, match="does not exist"):
        FileSource([tmp_path / "no.md"])
    os.mkfifo(tmp_path / "pipe.md")
    with pytest.raises(DataError, match="is no ordinary file"):
        FileSource([tmp_path / "pipe.md"])


def test_a_pipe_in_a_folder_is_not_waited_for(tmp_path: Path) -> None:
    root = tmp_path / "docs"
    root.mkdir()
    os.mkfifo(root / "pipe.md")
    (root / "a.md").write_text("words")
    found, left_out = _read([root])
    assert list(found) == ["a.md"]
    assert "1 file of kinds" in left_out[0]


def test_a_pdf_without_text_is_left_out_with_a_remedy(tmp_path: Path) -> None:
    root = tmp_path / "docs"
    root.mkdir()
    (root / "scan.pdf").write_bytes(pdf(["", ""]))
    (root / "good.pdf").write_bytes(pdf(["Ducks swim."]))
    manifest = _build([root], tmp_path / "corpora")
    assert manifest.documents == 1
    (line,) = manifest.left_out
    assert line.startswith("scan.pdf: it holds no text")
    assert "ocrmypdf" in line


def test_nothing_but_a_pdf_without_text_is_an_error_with_the_remedy(tmp_path: Path) -> None:
    (tmp_path / "scan.pdf").write_bytes(pdf([""]))
    with pytest.raises(DataError, match="would be empty") as caught:
        _build([tmp_path / "scan.pdf"], tmp_path / "corpora")
    assert "ocrmypdf" in str(caught.value)
    assert not (tmp_path / "corpora" / "c").exists()


def test_pages_lines_and_parted_words_become_flowing_text(tmp_path: Path) -> None:
    pages = ["Ducks are swim-\nming birds\nof ponds.\nThey quack.", "The second page."]
    (tmp_path / "a.pdf").write_bytes(pdf(pages))
    found, _ = _read([tmp_path / "a.pdf"])
    assert found["a.pdf"].title == "a"
    assert found["a.pdf"].text == (
        "Ducks are swimming birds of ponds.\nThey quack.\n\nThe second page."
    )


BROKEN = {
    "no.pdf": b"no PDF at all",
    "cut.pdf": pdf(["Ducks swim."])[:300],
    "wild.pdf": pdf(["Ducks swim."]).replace(b"/Kids [4 0 R]", b"/Kids [2 0 R]"),
    "latin.txt": "caf\u00e9".encode("latin-1"),
    "latin.md": "caf\u00e9".encode("latin-1"),
}


@pytest.mark.parametrize("name", BROKEN)
def test_a_broken_file_of_a_folder_is_named_and_left_out(tmp_path: Path, name: str) -> None:
    root = tmp_path / "docs"
    root.mkdir()
    (root / name).write_bytes(BROKEN[name])
    (root / "z.md").write_text("words")
    found, left_out = _read([root])
    assert list(found) == ["z.md"]
    assert len(left_out) == 1
    assert left_out[0].startswith(f"{name}: ")


@pytest.mark.parametrize("name", ["no.pdf", "latin.txt"])
def test_a_broken_file_that_was_named_is_an_error_unless_it_may_be_skipped(
    tmp_path: Path, name: str
) -> None:
    (tmp_path / name).write_bytes(BROKEN[name])
    (tmp_path / "z.md").write_text("words")
    paths = [tmp_path / name, tmp_path / "z.md"]
    with pytest.raises(DataError) as caught:
        _read(paths)
    assert caught.value.where == str(tmp_path / name)
    assert "--skip-bad" in caught.value.remedy
    found, left_out = _read(paths, skip_bad=True)
    assert list(found) == ["z.md"]
    assert left_out[0].startswith(f"{name}: ")


def test_bad_rows_are_an_error_or_left_out_and_counted(tmp_path: Path) -> None:
    path = tmp_path / "rows.jsonl"
    path.write_text('{"id": 1}\n{"id": 2, "title": "T", "text": "good"}\nno\n[]\n"x"\n{}\n{}\n')
    with pytest.raises(DataError, match="line 1") as caught:
        _read([path])
    assert "--skip-bad" in caught.value.remedy
    found, left_out = _read([path], skip_bad=True)
    assert list(found) == ["2"]
    assert len(left_out) == 1
    assert left_out[0].startswith("rows.jsonl: 6 bad rows: line 1: ")


def test_a_file_that_is_too_large_is_left_out(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(sources.LARGEST, "text", 1 << 20)
    (tmp_path / "a.txt").write_text("word " * 300_000)
    (tmp_path / "b.txt").write_text("word")
    found, left_out = _read([tmp_path])
    assert list(found) == ["b.txt"]
    assert left_out == ["a.txt: It is larger than 1 MiB"]


@pytest.mark.parametrize("encoding", ["utf-8-sig", "utf-16", "utf-8"])
def test_text_is_read_by_its_byte_order_mark(tmp_path: Path, encoding: str) -> None:
    (tmp_path / "a.txt").write_bytes("caf\u00e9\r\nbar".encode(encoding))
    found, _ = _read([tmp_path / "a.txt"])
    assert found["a.txt"].text == "caf\u00e9\nbar"


def test_a_name_that_is_no_unicode_is_read_all_the_same(tmp_path: Path) -> None:
    root = tmp_path / "docs"
    root.mkdir()
    Path(os.fsdecode(os.fsencode(root) + b"/caf\xe9.md")).write_text("# Caf\u00e9\n\nwords")
    manifest = _build([root], tmp_path / "corpora")
    assert manifest.documents == 1


def test_links_to_folders_are_not_followed(tmp_path: Path) -> None:
    root = tmp_path / "docs"
    (root / "sub").mkdir(parents=True)
    (root / "sub" / "a.md").write_text("words")
    (root / "sub" / "up").symlink_to(root)
    found, _ = _read([root])
    assert list(found) == ["sub/a.md"]


def test_only_files_that_changed_are_read_again(
    folder: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    read: list[str] = []
    original = Extractor.read

    def noted(self: Extractor, path: Path, kind: str) -> dict[str, str]:
        read.append(path.name)
        return original(self, path, kind)

    monkeypatch.setattr(Extractor, "read", noted)
    _build([folder], tmp_path / "corpora")
    assert sorted(read) == ["c.HTML", "d.pdf"]
    read.clear()
    (folder / "sub" / "d.pdf").write_bytes(pdf(["Ducks fly."]))
    (folder / "a.md").unlink()
    manifest = _build([folder], tmp_path / "corpora")
    assert read == ["d.pdf"]
    assert manifest.documents == 4
    read.clear()
    assert _build([folder], tmp_path / "corpora") == manifest
    assert read == []


def test_the_hash_is_that_of_names_and_content(folder: Path) -> None:
    first = FileSource([folder]).source.hash
    assert FileSource([folder]).source.hash == first
    (folder / "a.md").rename(folder / "z.md")
    moved = FileSource([folder]).source.hash
    (folder / "z.md").write_text("other")
    assert len({first, moved, FileSource([folder]).source.hash}) == 3


def test_portuguese_and_japanese_files_are_found_by_questions_in_their_language(
    tmp_path: Path,
) -> None:
    root = tmp_path / "docs"
    root.mkdir()
    (root / "pt.md").write_text(
        "# Brasília\n\nBrasília é a capital do Brasil e foi inaugurada em 1960.\n",
        "utf-8",
    )
    (root / "pt2.md").write_text(
        "# São Paulo\n\nSão Paulo é a maior cidade do país, com onze milhões de pessoas.\n",
        "utf-8",
    )
    (root / "ja.md").write_text(
        "# 富士山\n\n富士山は日本で最も高い山である。",
        "utf-8",
    )
    (root / "ja2.md").write_text(
        "# 琵琶湖\n\n琵琶湖は日本で最も大きい湖である。",
        "utf-8",
    )
    _build([root], tmp_path / "corpora")
    for question, first in (
        ("Qual é a capital do Brasil?", "pt.md"),
        ("quando foi inaugurada brasilia", "pt.md"),
        ("Qual é a maior cidade do pais?", "pt2.md"),
        (
            "日本で一番高い山は何ですか\uff1f",
            "ja.md",
        ),
        ("日本で最も大きい湖は\uff1f", "ja2.md"),
    ):
        hits = asyncio.run(CorpusSearch("c", tmp_path / "corpora").search(question, limit=1))
        assert [hit.passage.document_id for hit in hits] == [first], question
