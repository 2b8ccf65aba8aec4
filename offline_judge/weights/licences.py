"""Which licences must be accepted before weights are fetched, and which ones were."""

from __future__ import annotations

from pathlib import Path

from offline_judge.errors import LicenceError
from offline_judge.weights.cards import ModelCard
from offline_judge.weights.disk import read_json, storing, write_json


def terms(card: ModelCard) -> str:
    """What is to be accepted before the weights are fetched; empty where nothing is."""
    if not (card.gated or card.non_commercial):
        return ""
    said = f"{card.name} is licensed under {card.licence}"
    said += ", which allows no commercial use" if card.non_commercial else ""
    said += f" ({card.licence_url})" if card.licence_url else ""
    if card.gated:
        said += "; the hub gives it only to those who accepted its terms on the model's page"
    return f"{said}."


class LicenceBook:
    """Remembers which licences were accepted, each for a card under the name it had then.

    Args:
        path: A small file in the data directory.
    """

    def __init__(self, path: Path) -> None:
        self._path = path

    def require(self, card: ModelCard, *, accept: bool) -> None:
        """Go on only where the card's licence is free, was accepted, or is accepted now.

        Raises:
            LicenceError: it is none of these; names the licence and the flag.
            StorageError: what is accepted now cannot be written down.
        """
        asked = terms(card)
        if not asked or card.licence in self._accepted().get(card.name, []):
            return
        if not accept:
            raise LicenceError(
                asked,
                where=card.name,
                remedy=f"Accept it: offline-judge models pull {card.name} --accept-licence",
            )
        self._write(card)

    def _write(self, card: ModelCard) -> None:
        accepted = self._accepted()
        accepted[card.name] = sorted({*accepted.get(card.name, []), card.licence})
        with storing(self._path):
            self._path.parent.mkdir(parents=True, exist_ok=True)
            write_json(self._path, accepted, durable=True)

    def _accepted(self) -> dict[str, list[str]]:
        return {
            name: licences
            for name, licences in read_json(self._path).items()
            if isinstance(licences, list)
        }
