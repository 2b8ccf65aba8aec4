"""Files that the user named: whole or not at all, and whatever is in the way is told."""

from __future__ import annotations

import errno
import os
import threading
from collections.abc import Iterator
from pathlib import Path

import pytest

from offline_judge.errors import StorageError
from offline_judge.outfiles import make_output_folder, write_output


def test_a_file_is_replaced_whole_and_text_is_kept_as_it_is(tmp_path: Path) -> None:
    path = tmp_path / "f"
    path.write_text("an older and longer text")
    write_output(path, ["a\r\n", "é\ud800\n"])
    assert path.read_bytes() == "a\r\né\\ud800\n".encode()
    assert list(tmp_path.iterdir()) == [path]


@pytest.mark.parametrize("error", [OSError(errno.ENOSPC, "No space"), KeyboardInterrupt()])
def test_what_breaks_off_leaves_the_old_file_and_nothing_else(
    tmp_path: Path, error: BaseException
) -> None:
    def pieces() -> Iterator[str]:
        yield "new"
        raise error

    path = tmp_path / "f"
    path.write_text("old")
    with pytest.raises((StorageError, KeyboardInterrupt)):
        write_output(path, pieces())
    assert path.read_text() == "old"
    assert list(tmp_path.iterdir()) == [path]


def test_the_longest_name_a_file_can_have_is_no_hindrance(tmp_path: Path) -> None:
    path = tmp_path / ("n" * 255)
    write_output(path, ["text"])
    assert path.read_text() == "text"


def test_a_pipe_is_written_to_in_place(tmp_path: Path) -> None:
    path, read = tmp_path / "pipe", list[str]()
    os.mkfifo(path)
    reader = threading.Thread(target=lambda: read.append(path.read_text()))
    reader.start()
    write_output(path, ["text"])
    reader.join(30)
    assert read == ["text"]
    assert path.is_fifo()


def test_a_name_that_is_too_long_is_an_error_of_ours(tmp_path: Path) -> None:
    with pytest.raises(StorageError, match="too long"):
        write_output(tmp_path / ("n" * 256), ["text"])


def test_a_folder_is_made_with_those_above_it_and_left_empty(tmp_path: Path) -> None:
    make_output_folder(tmp_path / "a" / "b")
    make_output_folder(tmp_path / "a" / "b")
    assert list((tmp_path / "a" / "b").iterdir()) == []


def test_a_file_where_the_folder_should_be_is_told(tmp_path: Path) -> None:
    (tmp_path / "f").touch()
    for place in ("f", "f/below"):
        with pytest.raises(StorageError, match="Cannot write"):
            make_output_folder(tmp_path / place)
