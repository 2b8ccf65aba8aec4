"""The reliability plot: what is refused, and that the same numbers give the same file."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

from offline_judge.calibration.plot import check_plot, draw_reliability
from offline_judge.errors import MissingDependencyError, StorageError, UsageError
from offline_judge.metrics.reliability import reliability

BEFORE = reliability([True, False, True, False], [0.9, 0.8, 0.7, 0.1])
AFTER = reliability([True, False, True, False], [0.6, 0.5, 0.5, 0.2])


@pytest.fixture(autouse=True)
def _needs_matplotlib() -> None:
    pytest.importorskip("matplotlib")


@pytest.mark.parametrize(("name", "magic"), [("p.png", b"\x89PNG"), ("p.svg", b"<?xml")])
def test_a_plot_is_drawn_and_is_the_same_each_time(tmp_path: Path, name: str, magic: bytes) -> None:
    path = tmp_path / name
    draw_reliability(path, BEFORE, AFTER, "tiny, direct: 4 samples")
    first = path.read_bytes()
    assert first.startswith(magic)
    draw_reliability(path, BEFORE, AFTER, "tiny, direct: 4 samples")
    assert path.read_bytes() == first


def test_a_svg_names_both_readings_and_their_errors(tmp_path: Path) -> None:
    path = tmp_path / "p.svg"
    draw_reliability(path, BEFORE, AFTER, "title")
    draw_reliability(tmp_path / "one.svg", BEFORE, None, "title")
    # matplotlib draws text as paths and keeps it in comments.
    assert "calibrated, error" in path.read_text()
    assert "calibrated, error" not in (tmp_path / "one.svg").read_text()


def test_no_bins_draw_an_empty_plot(tmp_path: Path) -> None:
    draw_reliability(tmp_path / "p.png", reliability([], []), None, "nothing")
    assert (tmp_path / "p.png").stat().st_size > 0


def test_another_ending_is_refused(tmp_path: Path) -> None:
    with pytest.raises(UsageError) as caught:
        check_plot(tmp_path / "p.jpg")
    assert ".svg" in caught.value.remedy


def test_without_matplotlib_the_extra_is_named(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(sys.modules, "matplotlib", None)
    with pytest.raises(MissingDependencyError) as caught:
        check_plot(tmp_path / "p.png")
    assert caught.value.remedy == 'pip install "offline-llm-judge[plots]"'


def test_a_folder_that_is_not_there_is_told(tmp_path: Path) -> None:
    with pytest.raises(StorageError):
        draw_reliability(tmp_path / "none" / "p.png", BEFORE, None, "title")


def test_pyplot_is_left_alone(tmp_path: Path) -> None:
    was_there = "matplotlib.pyplot" in sys.modules
    draw_reliability(tmp_path / "p.png", BEFORE, AFTER, "title")
    assert ("matplotlib.pyplot" in sys.modules) == was_there
