"""Licences that must be accepted, once for each card and licence."""

from __future__ import annotations

from pathlib import Path

import pytest
from listing_hub import hub_card

from offline_judge.errors import LicenceError
from offline_judge.weights.licences import LicenceBook, terms

FREE = hub_card()
BOUND = hub_card(licence="Research", licence_url="https://x.invalid/l", non_commercial=True)
GATED = hub_card(gated=True)


def test_a_free_licence_asks_nothing(tmp_path: Path) -> None:
    LicenceBook(tmp_path / "book.json").require(FREE, accept=False)
    assert terms(FREE) == ""
    assert not (tmp_path / "book.json").exists()


def test_terms_are_told(tmp_path: Path) -> None:
    assert "Research, which allows no commercial use (https://x.invalid/l)" in terms(BOUND)
    assert "accepted its terms on the model's page" in terms(GATED)


@pytest.mark.parametrize("card", [BOUND, GATED], ids=["non-commercial", "gated"])
def test_a_licence_is_required_until_it_is_accepted_and_then_remembered(
    tmp_path: Path, card: object
) -> None:
    assert isinstance(card, type(FREE))
    book = LicenceBook(tmp_path / "data" / "book.json")
    with pytest.raises(LicenceError, match="--accept-licence") as caught:
        book.require(card, accept=False)
    assert caught.value.exit_code == 2
    book.require(card, accept=True)
    LicenceBook(tmp_path / "data" / "book.json").require(card, accept=False)


def test_another_licence_or_card_is_asked_for_anew(tmp_path: Path) -> None:
    book = LicenceBook(tmp_path / "book.json")
    book.require(BOUND, accept=True)
    for other in (
        BOUND.model_copy(update={"licence": "Research 2"}),
        BOUND.model_copy(update={"name": "other"}),
    ):
        with pytest.raises(LicenceError):
            book.require(other, accept=False)


def test_a_damaged_book_accepts_nothing(tmp_path: Path) -> None:
    path = tmp_path / "book.json"
    book = LicenceBook(path)
    for text in ("{", "[]", '{"listed": "Research"}'):
        path.write_text(text)
        with pytest.raises(LicenceError):
            book.require(BOUND, accept=False)
