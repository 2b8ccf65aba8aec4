"""Models on the command line, with a hub on loopback: pulled, changed, verified, removed."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

sys.path.append(str(Path(__file__).parents[1] / "unit" / "weights"))
from listing_hub import ListingHub, listing
from weights_helpers import gguf_bytes

PARTS = {f"qwen2.5-7b-instruct-q4_k_m-0000{n}-of-00002.gguf": gguf_bytes(seed=n) for n in (1, 2)}
CARD = """
name = "listed"
family = "tiny"
role = "judge"
parameters = 1000000
quantisation = "Q4_K_M"
window = 1024
licence = "Research"
non_commercial = true

[hub]
repository = "owner/model-GGUF"
pattern = "*q4_k_m*.gguf"
"""


@pytest.fixture
def hub() -> Iterator[ListingHub]:
    with listing(ListingHub(**PARTS)) as served:
        yield served


class Program:
    """The command line as a process of its own, with a hub and folders of its own."""

    def __init__(self, hub: ListingHub, cards: Path) -> None:
        hidden = ("HF_", "HTTP_PROXY", "http_proxy", "ALL_PROXY", "all_proxy")
        self._environ = {k: v for k, v in os.environ.items() if not k.startswith(hidden)}
        self._environ |= hub.environ(OFFLINE_JUDGE_CARDS_DIR=str(cards))
        self.err = ""

    def __call__(self, *args: str, code: int = 0, **environ: str) -> Any:
        done = subprocess.run(
            [sys.executable, "-m", "offline_judge", "models", *args, "--json"],
            env=self._environ | environ,
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            check=False,
        )
        self.err = done.stderr
        assert done.returncode == code, done.stderr
        return json.loads(done.stdout) if done.stdout else None


@pytest.mark.usefixtures("isolated_dirs")
def test_from_the_first_pull_to_the_last_file(hub: ListingHub, tmp_path: Path) -> None:
    cards = tmp_path / "cards"
    cards.mkdir()
    (cards / "listed.toml").write_text(CARD)
    models = Program(hub, cards)

    models("verify", "listed", code=3)
    models("pull", "listed", code=2)
    assert "--accept-licence" in models.err
    assert hub.asked == []
    first = Path(models("pull", "listed", "--accept-licence")["path"])
    assert first.name.endswith("00001-of-00002.gguf")
    assert "no commercial use" in models.err

    # Other files there change nothing here, and are told only by a pull.
    hub.commit({name: gguf_bytes(seed=7) for name in PARTS})
    asked = len(hub.asked)
    assert models("verify", "listed")["ok"] is True
    assert models("show", "listed")["state"] == "present"
    assert len(hub.asked) == asked
    models("pull", "listed", HF_HUB_OFFLINE="1")
    assert len(hub.asked) == asked
    models("pull", "listed")
    assert "models pull listed --repin" in models.err
    assert first.read_bytes() == PARTS[first.name]
    models("pull", "listed", "--repin")
    assert first.read_bytes() == gguf_bytes(seed=7)

    added = models("add", str(first), "--name", "mine", "--window", "512", "--copy")
    assert models("rm", "listed", code=2) is None
    assert models("rm", "listed", "--yes")["size"] > 0
    assert not first.exists()
    assert models("verify", "mine")["ok"] is True
    assert models("rm", "mine", "--yes")["card"] is True
    assert not Path(added["path"]).exists()
    models("show", "mine", code=3)
