"""What the hub listed at the first pull of a card: written down, and used from then on."""

from __future__ import annotations

from pathlib import Path

from pydantic import ValidationError

from offline_judge.domain.base import Frozen
from offline_judge.errors import WeightsError
from offline_judge.weights.cards import ModelCard, ModelFile
from offline_judge.weights.disk import read_json, storing, write_json
from offline_judge.weights.listing import Listing
from offline_judge.weights.sources import HubListing, HubSource

PIN = "pinned.json"


class Pin(Frozen):
    """The files of a card that names a repository of the hub, at one commit.

    Attributes:
        hub: What the card said when the hub was asked; a card that says something else has no pin.
        listing: What the hub listed.
    """

    hub: HubListing
    listing: Listing

    def resolve(self, card: ModelCard) -> ModelCard:
        """The card with its files, each fetched from the commit and no later one."""
        files = tuple(
            ModelFile(
                name=file.name,
                size=file.size,
                sha256=file.sha256,
                sources=(
                    HubSource(
                        kind="huggingface",
                        repository=self.hub.repository,
                        revision=self.listing.commit,
                        path=file.path,
                    ),
                ),
            )
            for file in self.listing.files
        )
        return card.model_copy(update={"files": files})


def read_pin(card: ModelCard, folder: Path) -> Pin | None:
    """The pin of a card whose weights belong into `folder`; None where it has none.

    Raises:
        WeightsError: the file is damaged.
    """
    path = folder / PIN
    if card.hub is None or not path.is_file():
        return None
    try:
        pin = Pin.model_validate(read_json(path))
    except ValidationError as error:
        raise WeightsError(
            f"What was written down of the files of {card.name} is damaged.",
            where=str(path),
            remedy=f"Ask the hub anew: offline-judge models pull {card.name} --repin",
        ) from error
    return pin if pin.hub == card.hub else None


def write_pin(pin: Pin, folder: Path) -> None:
    """Write a pin down, atomically.

    Raises:
        StorageError: the folder cannot be written.
    """
    with storing(folder):
        folder.mkdir(parents=True, exist_ok=True)
        write_json(folder / PIN, pin.model_dump(mode="json"), durable=True)
