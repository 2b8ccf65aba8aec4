"""Whether a model fits: counted from headers, refused where it surely does not, with a way out."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from weights_helpers import gguf_bytes, make_card

from offline_judge.errors import DoesNotFitError
from offline_judge.weights.cards import ModelCard, load_cards
from offline_judge.weights.fit import Fit, Suggestion, check_fit, fit, suggest_fit
from offline_judge.weights.memory import free_memory

MIB = 1024**2
COMPUTE = 256 * MIB
# 32 layers, 8 heads of keys and of values, each 128 wide: 128 KiB a token at two bytes a number.
SHAPE: dict[str, str | int] = {
    "tiny.block_count": 32,
    "tiny.embedding_length": 4096,
    "tiny.attention.head_count": 32,
    "tiny.attention.head_count_kv": 8,
}
TOKEN = 131_072


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return _written(tmp_path)


def _written(folder: Path, **more: int) -> Path:
    path = folder / "x.gguf"
    keys = {f"tiny.{key.replace('__', '.')}": value for key, value in more.items()}
    path.write_bytes(gguf_bytes(more={**SHAPE, **keys}))
    return path


def _card(size: int = 1000 * MIB, window: int = 32_768) -> ModelCard:
    card = make_card(b"x")
    file = card.files[0].model_copy(update={"size": size})
    return card.model_copy(update={"files": (file,), "window": window})


@pytest.mark.engine
def test_a_cache_is_counted_from_the_header_and_grows_with_slots(small_weights: Path) -> None:
    card = load_cards()["smollm2-135m-instruct"]
    one, four = (fit(card, small_weights, window=1024, slots=slots) for slots in (1, 4))
    # 30 layers, 3 heads of keys and of values, each 64 wide, two bytes a number.
    assert four.needed - one.needed == 3 * 1024 * 30 * 3 * 64 * 2 * 2
    assert one.slot == 1024 * 30 * 3 * 64 * 2 * 2
    assert not one.at_least
    assert one.needed > card.size


def test_weights_cache_and_work_are_added_up(path: Path) -> None:
    found = fit(_card(), path, window=4096, slots=4, free=0)
    assert found.slot == 4096 * TOKEN
    assert found.needed == 1000 * MIB + COMPUTE + 4 * 4096 * TOKEN
    assert fit(_card(), path, window=4096, slots=4, kv_bytes=1.0, free=0).slot * 2 == found.slot
    # No more than the model was trained for.
    assert fit(_card(window=2048), path, window=4096, slots=4, free=0).slot == 2048 * TOKEN


@pytest.mark.parametrize(
    ("more", "numbers"),
    [
        ({"attention__key_length": 64}, 32 * 8 * 128),
        ({"attention__key_length": 64, "attention__value_length": 32}, 32 * 8 * 96),
        ({"attention__head_count_kv": 0}, 32 * 32 * 256),
        ({"attention__kv_lora_rank": 512, "rope__dimension_count": 64}, 32 * 576),
    ],
)
def test_what_a_token_keeps_is_told_by_the_header(
    tmp_path: Path, more: dict[str, int], numbers: int
) -> None:
    found = fit(_card(), _written(tmp_path, **more), window=1, slots=1, free=0)
    assert found.slot == 2 * numbers


def test_without_weights_only_the_least_is_told(tmp_path: Path) -> None:
    card = load_cards()["smollm2-135m-instruct"]
    assert fit(card, None, window=1024, slots=4).at_least
    other = tmp_path / "x.gguf"
    other.write_bytes(b"no model")
    assert fit(card, other, window=1024, slots=4).at_least


@pytest.mark.parametrize(
    ("name", "about"),
    # What the publishers' files have, in thousands of millions of bytes.
    [("qwen2.5-7b-instruct", 4.68), ("qwen3-4b", 2.50), ("mistral-7b-instruct-v0.3", 4.37)],
)
def test_weights_that_the_hub_was_not_asked_for_are_guessed_within_a_tenth(
    name: str, about: float
) -> None:
    found = fit(load_cards()[name], None, window=4096, slots=1)
    assert found.weights / 1e9 == pytest.approx(about, rel=0.1)
    assert found.at_least


@pytest.mark.parametrize(
    ("free", "verdict"), [(None, "unknown"), (99, "too large"), (110, "tight"), (125, "fits")]
)
def test_the_verdict(free: int | None, verdict: str) -> None:
    assert Fit(100, free, at_least=False).verdict == verdict


def test_what_fits_to_the_byte_is_loaded_and_one_byte_less_is_refused(path: Path) -> None:
    needed = 1000 * MIB + COMPUTE + 4 * 4096 * TOKEN
    check_fit(_card(), path, window=4096, slots=4, free=needed)
    with pytest.raises(DoesNotFitError) as caught:
        check_fit(_card(), path, window=4096, slots=4, free=needed - 1)
    assert caught.value.exit_code == 2
    assert "tiny does not fit" in caught.value.message
    assert "4 slots of 4,096 tokens" in caught.value.message


@pytest.mark.parametrize(
    ("left", "expected"),
    [
        # Bytes beside weights and work -> what would fit; 4 slots of 4,096 tokens want 2 GiB.
        (2048 * MIB - 1, Suggestion(window=3840, slots=3, kv_cache="q8_0")),
        (1100 * MIB, Suggestion(window=2048, slots=2, kv_cache="q8_0")),
        (1000 * MIB, Suggestion(window=1792, slots=1)),
        (512 * MIB, Suggestion(window=1024, slots=1)),
        (511 * MIB, Suggestion()),
        (-1, Suggestion()),
    ],
)
def test_the_way_out_is_the_largest_window_fewer_slots_or_a_smaller_cache(
    path: Path, left: int, expected: Suggestion
) -> None:
    free = 1000 * MIB + COMPUTE + left
    found = suggest_fit(_card(), path, window=4096, slots=4, free=free)
    assert found == expected
    with pytest.raises(DoesNotFitError) as caught:
        check_fit(_card(), path, window=4096, slots=4, free=free)
    if found:
        assert caught.value.remedy == f"It would fit with {found}."
        if found.window:
            check_fit(_card(), path, window=found.window, slots=4, free=free)
        if found.slots:
            check_fit(_card(), path, window=4096, slots=found.slots, free=free)
        if found.kv_cache:
            check_fit(_card(), path, window=4096, slots=4, kv_bytes=34 / 32, free=free)
    else:
        assert "smaller model" in caught.value.remedy


def test_a_small_cache_is_not_advised_twice(path: Path) -> None:
    free = 1000 * MIB + COMPUTE + 1050 * MIB
    found = suggest_fit(_card(), path, window=4096, slots=4, kv_bytes=34 / 32, free=free)
    assert found.kv_cache is None


def test_the_advice_is_said_in_words() -> None:
    told = str(Suggestion(window=2048, slots=2, kv_cache="q8_0"))
    assert told == (
        '`window = 2048`, or with 2 slots, that is fewer `lanes`, or with `kv_cache = "q8_0"`'
    )
    assert not Suggestion()


@pytest.mark.parametrize(
    "more", [{"attention__sliding_window": 1024}, {"ssm__state_size": 128}], ids=["window", "state"]
)
def test_layers_that_may_keep_less_are_not_refused_for_what_they_may_not_take(
    tmp_path: Path, more: dict[str, int]
) -> None:
    path = _written(tmp_path, **more)
    surely = 1000 * MIB + COMPUTE + 4 * 1024 * TOKEN
    found = fit(_card(), path, window=8192, slots=4, free=surely)
    assert found.slot == 8192 * TOKEN
    check_fit(_card(), path, window=8192, slots=4, free=surely)
    with pytest.raises(DoesNotFitError):
        check_fit(_card(), path, window=8192, slots=4, free=1000 * MIB)


def test_nothing_is_refused_where_nothing_is_known(
    path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("offline_judge.weights.fit.free_memory", lambda: None)
    check_fit(_card(size=1 << 60), path, window=4096, slots=4)


def test_a_folder_is_counted_from_its_configuration(tmp_path: Path) -> None:
    config = {
        "num_hidden_layers": 32,
        "num_attention_heads": 32,
        "num_key_value_heads": 8,
        "hidden_size": 4096,
    }
    (tmp_path / "config.json").write_text(json.dumps(config))
    assert fit(_card(), tmp_path, window=4096, slots=1, free=0).slot == 4096 * TOKEN
    nested = {"text_config": {**config, "head_dim": 64}}
    (tmp_path / "config.json").write_text(json.dumps(nested))
    assert fit(_card(), tmp_path, window=4096, slots=1, free=0).slot == 4096 * TOKEN // 2
    (tmp_path / "config.json").write_text("[]")
    assert fit(_card(), tmp_path, window=4096, slots=1, free=0).at_least


NOWHERE = Path("/nonexistent")


def test_free_memory_is_what_programs_may_take(tmp_path: Path) -> None:
    table = tmp_path / "meminfo"
    table.write_text("MemTotal:  900 kB\nMemFree:  1 kB\nMemAvailable:     300 kB\n")
    assert free_memory(table, NOWHERE) == 300 * 1024
    table.write_text("MemTotal:  900 kB\n")
    assert free_memory(table, NOWHERE) is None
    assert free_memory(tmp_path / "absent", NOWHERE) is None


def _group(folder: Path, **files: str) -> None:
    folder.mkdir(parents=True, exist_ok=True)
    for name, text in files.items():
        (folder / f"memory.{name}").write_text(text)


def test_the_narrowest_limit_of_the_groups_counts_and_their_cache_is_free(tmp_path: Path) -> None:
    table, groups, tree = tmp_path / "meminfo", tmp_path / "cgroup", tmp_path / "tree"
    table.write_text("MemAvailable: 1000 kB\n")
    groups.write_text("0::/user/mine\n")
    stat = "anon 5\nactive_file 10000\ninactive_file 20000\n"
    _group(tree / "user" / "mine", max="max\n", current="9\n", stat=stat)
    _group(tree / "user", max="500000\n", current="300000\n", stat=stat)
    assert free_memory(table, groups, tree) == 230_000
    _group(tree / "user", max="5000000\n")
    assert free_memory(table, groups, tree) == 1000 * 1024
    _group(tree / "user", max="100\n", current="300000\n")
    assert free_memory(table, groups, tree) == 0


def test_groups_of_the_older_kind_and_paths_seen_from_outside(tmp_path: Path) -> None:
    table, groups, tree = tmp_path / "meminfo", tmp_path / "cgroup", tmp_path / "tree"
    table.write_text("MemAvailable: 1000 kB\n")
    groups.write_text("5:cpu,cpuacct:/\n4:memory:/docker/seen-outside-only\n0::/\n")
    stat = "active_file 1\ninactive_file 1\ntotal_active_file 1000\ntotal_inactive_file 2000\n"
    _group(tree / "memory", limit_in_bytes="90000\n", usage_in_bytes="50000\n", stat=stat)
    assert free_memory(table, groups, tree) == 43_000
    _group(tree / "memory", limit_in_bytes="9223372036854771712\n")
    assert free_memory(table, groups, tree) == 1000 * 1024
