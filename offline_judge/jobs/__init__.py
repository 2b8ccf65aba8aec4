"""Beginning, resuming, watching and stopping runs."""

from offline_judge.jobs.beginning import ASKED, ask, begin
from offline_judge.jobs.calibrating import FitOrder, calibrate, read_kind
from offline_judge.jobs.deriving import Change, derive, write_passage
from offline_judge.jobs.labelling import LabelFile
from offline_judge.jobs.orders import DataFile, Limits, Order, Question
from offline_judge.jobs.others import go_on, listed, listed_run, pause, stop
from offline_judge.jobs.resuming import resume
from offline_judge.jobs.scoring import ScoreOrder, score
from offline_judge.jobs.watching import Watch, watch

__all__ = [
    "ASKED",
    "Change",
    "DataFile",
    "FitOrder",
    "LabelFile",
    "Limits",
    "Order",
    "Question",
    "ScoreOrder",
    "Watch",
    "ask",
    "begin",
    "calibrate",
    "derive",
    "go_on",
    "listed",
    "listed_run",
    "pause",
    "read_kind",
    "resume",
    "score",
    "stop",
    "watch",
    "write_passage",
]
