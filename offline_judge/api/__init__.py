"""What the command line, a terminal UI and library users all call; imports when called.

All functions are synchronous. A run lasts as long as the call that makes it; another process
may watch it, drain it or cancel it meanwhile.
"""

from offline_judge.api.browsing import (
    call_prompt,
    index_run,
    log_line,
    preview,
    run_holder,
    run_log,
    run_manifest,
    run_rows,
)
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
from offline_judge.api.methods import MethodView, methods_list
from offline_judge.api.models import (
    models_fit,
    models_list,
    models_pull,
    models_show,
    models_verify,
)
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
from offline_judge.api.starting import command_line, start, start_resume
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
    "MethodView",
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
    "call_prompt",
    "cancel",
    "command_line",
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
    "index_run",
    "list_runs",
    "load_run",
    "log_line",
    "methods_list",
    "models_fit",
    "models_list",
    "models_pull",
    "models_show",
    "models_verify",
    "pause",
    "preview",
    "read_gates",
    "remove_run",
    "resume",
    "run",
    "run_costs",
    "run_holder",
    "run_listings",
    "run_log",
    "run_manifest",
    "run_rows",
    "run_shortfalls",
    "score",
    "score_shortfalls",
    "show",
    "start",
    "start_resume",
    "study_report",
    "study_sage",
    "unpause",
    "watch",
]
