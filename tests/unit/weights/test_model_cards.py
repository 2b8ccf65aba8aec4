"""Cards: the shipped ones, the user's own, and ones with mistakes."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from offline_judge.errors import MissingModelError, SettingsError
from offline_judge.settings import Settings
from offline_judge.weights import cards as cards_module
from offline_judge.weights.cards import ModelCard, find_card, load_cards, read_card
from offline_judge.weights.sources import HubSource, PackagesSource

GOOD = """
name = "mine"
family = "tiny"
role = "judge"
parameters = 7_000_000_000
quantisation = "Q4_K_M"
window = 4096
licence = "MIT"

[[files]]
name = "mine.gguf"
size = 10
sha256 = "{sha}"

[[files.sources]]
kind = "huggingface"
repository = "owner/mine"
path = "mine.gguf"
""".format(sha="0" * 64)


NAMED = {"qwen2.5-coder-1.5b-instruct", "qwen2.5-coder-0.5b-instruct", "smollm2-135m-instruct"}
LISTED = {
    "qwen2.5-7b-instruct",
    "qwen3-4b",
    "qwen3-8b",
    "mistral-7b-instruct-v0.3",
    "ministral-8b-instruct-2410",
    "mistral-small-24b-instruct-2501",
}
EMBEDDERS = {"all-minilm-l6-v2-int8", "multilingual-e5-small-q4", "qwen3-embedding-0.6b"}


def test_shipped_cards_are_text_models_with_sound_sources_and_embedders() -> None:
    cards = load_cards()
    assert set(cards) == NAMED | LISTED | EMBEDDERS
    assert {name for name, card in cards.items() if card.role == "embedder"} == EMBEDDERS
    for name in NAMED:
        (file,) = cards[name].files
        first, second = file.sources
        assert isinstance(first, HubSource)
        assert first.path == file.name
        assert isinstance(second, PackagesSource)
        assert len(set(second.packages)) == len(second.packages)
        assert cards[name].quirks.stop_tokens


@pytest.mark.parametrize("name", sorted(LISTED))
def test_cards_by_hub_id_have_no_files_until_the_hub_was_asked(name: str) -> None:
    card = find_card(name)
    assert card.hub is not None
    assert (card.files, card.size) == ((), 0)
    assert card.hub.pattern.endswith(".gguf")
    assert card.hub.pattern.lower().startswith(name)
    assert card.quirks.stop_tokens


def test_what_is_peculiar_to_the_cards_by_hub_id() -> None:
    cards = load_cards()
    assert {name for name in LISTED if cards[name].quirks.thinking_switch} == {
        "qwen3-4b",
        "qwen3-8b",
    }
    assert {name for name in LISTED if not cards[name].quirks.system_role} == {
        "mistral-7b-instruct-v0.3",
        "ministral-8b-instruct-2410",
    }
    assert [name for name in cards if cards[name].non_commercial] == ["ministral-8b-instruct-2410"]


def test_parts_of_the_shipped_packages_are_numbered_in_order() -> None:
    for name, count in {
        "qwen2.5-coder-1.5b-instruct": 22,
        "qwen2.5-coder-0.5b-instruct": 6,
    }.items():
        source = find_card(name).files[0].sources[1]
        assert isinstance(source, PackagesSource)
        numbers = [int(package.rpartition("part")[2]) for package in source.packages]
        assert numbers == list(range(1, count + 1))


def test_default_judge_has_a_card() -> None:
    assert find_card(Settings().judge).role == "judge"


def test_unknown_name_suggests_close_ones() -> None:
    with pytest.raises(MissingModelError, match=r"Did you mean .*qwen2\.5-coder-1\.5b-instruct"):
        find_card("qwen2.5-coder-1.5b")


def test_own_card_is_added_and_wins_over_a_shipped_one(tmp_path: Path) -> None:
    (tmp_path / "mine.toml").write_text(GOOD)
    own = GOOD.replace('"mine"', '"smollm2-135m-instruct"')
    (tmp_path / "smollm2-135m-instruct.toml").write_text(own)
    cards = load_cards(tmp_path)
    assert cards["mine"].parameters_b == 7.0
    assert cards["smollm2-135m-instruct"].family == "tiny"
    assert "qwen2.5-coder-1.5b-instruct" in cards


def test_an_added_card_stands_between_the_shipped_and_the_named_folder(tmp_path: Path) -> None:
    added, named = tmp_path / "added", tmp_path / "named"
    assert load_cards(None, added) == load_cards()
    for folder, family in ((added, "a"), (named, "n")):
        folder.mkdir()
        (folder / "mine.toml").write_text(GOOD.replace('"tiny"', f'"{family}"'))
    assert find_card("mine", None, added).family == "a"
    assert find_card("mine", named, added).family == "n"


def test_missing_folder_of_own_cards_is_named(tmp_path: Path) -> None:
    with pytest.raises(SettingsError, match="no-such-folder"):
        load_cards(tmp_path / "no-such-folder")


@pytest.mark.parametrize(
    ("old", "new", "message"),
    [
        ('family = "tiny"', "", "family: Field required"),
        ('family = "tiny"', 'family = "tiny"\ncolour = "red"', "colour: is no key of a card"),
        ("size = 10", "size = 10\nmd5 = 'x'", r"files\.0\.md5: is no key of a card"),
        ("0" * 64, "0" * 63, r"files\.0\.sha256: must be 64 hexadecimal digits"),
        ("0" * 64, "g" * 64, r"files\.0\.sha256: must be 64 hexadecimal digits"),
        ('name = "mine.gguf"', 'name = "../mine.gguf"', r"files\.0\.name: "),
        ('path = "mine.gguf"', 'path = "../../x"', r"files\.0\.sources\.0\.path: "),
        ('"huggingface"', '"carrier-pigeon"', r"files\.0\.sources\.0: "),
        ('role = "judge"', 'role = "jury"', "role: "),
        ('name = "mine"', 'name = "yours"', "name: is 'yours', but the file is called 'mine'"),
        ("window = 4096", "window = 0", "window: "),
        ("window = 4096", "window = 1\nformat = 'exe'", "format: "),
        ('family = "tiny"', "family = ", "is not TOML"),
    ],
)
def test_mistake_names_file_and_key(old: str, new: str, message: str) -> None:
    with pytest.raises(SettingsError, match=message) as caught:
        read_card(GOOD.replace(old, new), "/cards/mine.toml")
    assert caught.value.where == "/cards/mine.toml"


def test_package_name_that_pip_would_take_for_an_option_is_refused() -> None:
    text = GOOD.replace('kind = "huggingface"', 'kind = "packages"\npackages = ["--index-url=x"]')
    text = text.replace('repository = "owner/mine"', 'version = "1.0"')
    text = text.replace('path = "mine.gguf"', 'member = "*.bin"')
    with pytest.raises(SettingsError, match=r"files\.0\.sources\.0\.packages\.0: "):
        read_card(text, "mine.toml")


def test_cards_inside_the_package_are_preferred(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    package = tmp_path / "offline_judge"
    (package / "cards").mkdir(parents=True)
    (package / "cards" / "mine.toml").write_text(GOOD)
    monkeypatch.setattr(cards_module, "files", lambda name: package)
    assert set(load_cards()) == {"mine"}


def test_installation_without_cards_says_so(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(cards_module, "files", lambda name: tmp_path / "offline_judge")
    with pytest.raises(Exception, match="has no model cards"):
        load_cards()


EMBEDDER = (
    GOOD.replace('"judge"', '"embedder"')
    + """
[embedding]
format = "gguf"
dimension = 8
max_tokens = 64
"""
)


def test_vectors_are_of_another_space_when_anything_that_shapes_them_changes() -> None:
    card = read_card(EMBEDDER, "mine.toml")
    others = [
        read_card(EMBEDDER.replace("0" * 64, "1" * 64), "mine.toml"),
        read_card(EMBEDDER + 'query_prefix = "query: "', "mine.toml"),
        read_card(EMBEDDER + 'pooling = "last"', "mine.toml"),
        read_card(EMBEDDER.replace("max_tokens = 64", "max_tokens = 65"), "mine.toml"),
    ]
    ids = {card.vectors_id, *(other.vectors_id for other in others)}
    assert len(ids) == 5
    assert re.fullmatch("mine-[0-9a-f]{12}", card.vectors_id)
    # What shapes no vector does not: nothing need be embedded again for it.
    same = EMBEDDER.replace('"MIT"', '"Apache-2.0"').replace("owner/mine", "other/mine")
    assert read_card(same, "mine.toml").vectors_id == card.vectors_id


@pytest.mark.parametrize(
    ("text", "message"),
    [
        (EMBEDDER.replace('"embedder"', '"judge"'), "an embedder, and nothing else"),
        (GOOD.replace('"judge"', '"embedder"'), "an embedder, and nothing else"),
        (EMBEDDER.replace("dimension = 8", "dimension = 0"), "embedding.dimension"),
        (EMBEDDER.replace("max_tokens = 64", "max_tokens = 2"), "embedding.max_tokens"),
        (EMBEDDER + 'pooling = "max"', "embedding.pooling"),
        (EMBEDDER + 'prefix = "x"', "embedding.prefix: is no key of a card"),
    ],
)
def test_embedders_say_how_they_embed_and_others_do_not(text: str, message: str) -> None:
    with pytest.raises(SettingsError, match=message):
        read_card(text, "mine.toml")


HUB = """
[hub]
repository = "owner/mine"
pattern = "*.gguf"
"""
BARE = GOOD[: GOOD.index("[[files]]")]


@pytest.mark.parametrize(
    ("text", "message"),
    [
        (BARE, "neither .*files.* nor a section .hub"),
        (GOOD + HUB, "both .*files.* and a section .hub"),
        (BARE + HUB.replace("owner/mine", "owner"), "hub.repository"),
        (BARE + HUB.replace('"*.gguf"', '""'), "hub.pattern"),
        (BARE + HUB + "commit = 'x'", "hub.commit: is no key of a card"),
        (
            BARE.replace('"judge"', '"embedder"')
            + HUB
            + '[embedding]\nformat = "gguf"\ndimension = 8\nmax_tokens = 64',
            "an embedder names its",
        ),
    ],
)
def test_a_card_names_files_or_where_they_are_listed(text: str, message: str) -> None:
    with pytest.raises(SettingsError, match=message):
        read_card(text, "mine.toml")


def test_weights_in_parts_are_known_by_all_parts() -> None:
    def card(*digits: str) -> ModelCard:
        parts = "".join(
            f'[[files]]\nname = "m-{n}"\nsize = 1\nsha256 = "{digit * 64}"\n'
            for n, digit in enumerate(digits)
        )
        return read_card(BARE + parts, "mine.toml")

    assert card("a").weights_sha256 == "a" * 64
    assert len({card(*parts).weights_sha256 for parts in ("a", "ab", "ac", "ba")}) == 4
