"""Settings to running objects; the only place that picks implementations."""

from offline_judge.wiring.candidates import CandidateParts, kinship, open_candidate
from offline_judge.wiring.components import (
    Components,
    Shared,
    build_method,
    method_options,
    open_components,
)
from offline_judge.wiring.corpora import (
    DEFAULT_CORPUS,
    corpus_state,
    corpus_states,
    delete_corpus,
    embed_corpus,
    embed_if_possible,
    make_corpus,
)
from offline_judge.wiring.embedders import NO_EMBEDDER
from offline_judge.wiring.endpoints import Endpoint, endpoints, leaves_machine
from offline_judge.wiring.engines import make_engine
from offline_judge.wiring.installation import (
    SCRIPTED,
    licence_book,
    model_card,
    model_cards,
    model_shelf,
    model_store,
    read_secret,
    recorded_settings,
    run_store,
    settled,
    versions,
)
from offline_judge.wiring.probes import probe_engine, stored_probe, stored_probes
from offline_judge.wiring.record import (
    find_recorded,
    passage_history,
    prune_record,
    rebuild_index,
    record_state,
)
from offline_judge.wiring.searches import ensure_default_corpus, open_search

__all__ = [
    "DEFAULT_CORPUS",
    "NO_EMBEDDER",
    "SCRIPTED",
    "CandidateParts",
    "Components",
    "Endpoint",
    "Shared",
    "build_method",
    "corpus_state",
    "corpus_states",
    "delete_corpus",
    "embed_corpus",
    "embed_if_possible",
    "endpoints",
    "ensure_default_corpus",
    "find_recorded",
    "kinship",
    "leaves_machine",
    "licence_book",
    "make_corpus",
    "make_engine",
    "method_options",
    "model_card",
    "model_cards",
    "model_shelf",
    "model_store",
    "open_candidate",
    "open_components",
    "open_search",
    "passage_history",
    "probe_engine",
    "prune_record",
    "read_secret",
    "rebuild_index",
    "record_state",
    "recorded_settings",
    "run_store",
    "settled",
    "stored_probe",
    "stored_probes",
    "versions",
]
