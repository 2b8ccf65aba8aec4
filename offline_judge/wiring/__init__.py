"""Settings to running objects; the only place that picks implementations."""

from offline_judge.wiring.candidates import CandidateParts, kinship, open_candidate
from offline_judge.wiring.components import Components, Shared, build_method, open_components
from offline_judge.wiring.engines import make_engine
from offline_judge.wiring.installation import (
    cards_path,
    model_card,
    model_store,
    read_secret,
    recorded_settings,
    run_store,
    settled,
    versions,
)
from offline_judge.wiring.searches import (
    DEFAULT_CORPUS,
    ensure_default_corpus,
    make_corpus,
    open_search,
)

__all__ = [
    "DEFAULT_CORPUS",
    "CandidateParts",
    "Components",
    "Shared",
    "build_method",
    "cards_path",
    "ensure_default_corpus",
    "kinship",
    "make_corpus",
    "make_engine",
    "model_card",
    "model_store",
    "open_candidate",
    "open_components",
    "open_search",
    "read_secret",
    "recorded_settings",
    "run_store",
    "settled",
    "versions",
]
