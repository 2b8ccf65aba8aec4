"""What the command line, a terminal UI and library users all call; imports when called.

All functions are synchronous. A run lasts as long as the call that makes it; another process
may watch it, drain it or cancel it meanwhile.
"""

from offline_judge.api.config import ConfigView, config_show
from offline_judge.api.corpora import corpus_build, corpus_embed, corpus_list, corpus_rm
from offline_judge.api.derived import evidence_add, evidence_drop
from offline_judge.api.evidence import (
    EvidenceQuery,
    evidence_prune,
    evidence_rebuild,
    evidence_search,
    evidence_show,
    evidence_stats,
)
from offline_judge.api.models import models_list, models_pull, models_show, models_verify
from offline_judge.api.runs import (
    ask,
    cancel,
    demo,
    export_rows,
    list_runs,
    load_run,
    remove_run,
    resume,
    run,
    run_listings,
    show,
)
from offline_judge.api.scoring import (
    LabelsRequest,
    calibrate,
    read_gates,
    run_shortfalls,
    score,
    score_shortfalls,
)
from offline_judge.api.studies import (
    StudyRequest,
    StudyView,
    run_costs,
    study_report,
    study_sage,
)
from offline_judge.api.views import (
    AskOptions,
    AskView,
    ModelView,
    OwnPassage,
    RunListing,
    RunRequest,
    RunView,
    SampleView,
)
from offline_judge.api.watching import pause, unpause, watch

__all__ = [
    "AskOptions",
    "AskView",
    "ConfigView",
    "EvidenceQuery",
    "LabelsRequest",
    "ModelView",
    "OwnPassage",
    "RunListing",
    "RunRequest",
    "RunView",
    "SampleView",
    "StudyRequest",
    "StudyView",
    "ask",
    "calibrate",
    "cancel",
    "config_show",
    "corpus_build",
    "corpus_embed",
    "corpus_list",
    "corpus_rm",
    "demo",
    "evidence_add",
    "evidence_drop",
    "evidence_prune",
    "evidence_rebuild",
    "evidence_search",
    "evidence_show",
    "evidence_stats",
    "export_rows",
    "list_runs",
    "load_run",
    "models_list",
    "models_pull",
    "models_show",
    "models_verify",
    "pause",
    "read_gates",
    "remove_run",
    "resume",
    "run",
    "run_costs",
    "run_listings",
    "run_shortfalls",
    "score",
    "score_shortfalls",
    "show",
    "study_report",
    "study_sage",
    "unpause",
    "watch",
]
