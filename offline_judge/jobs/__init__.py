"""Beginning, resuming and stopping runs: data, parts and a run directory brought together."""

from offline_judge.jobs.beginning import ASKED, ask, begin
from offline_judge.jobs.calibrating import FitOrder, calibrate, read_kind
from offline_judge.jobs.deriving import derive, write_passage
from offline_judge.jobs.labelling import LabelFile
from offline_judge.jobs.orders import DataFile, Limits, Order, Question
from offline_judge.jobs.others import listed, stop
from offline_judge.jobs.resuming import resume
from offline_judge.jobs.scoring import ScoreOrder, score

__all__ = [
    "ASKED",
    "DataFile",
    "FitOrder",
    "LabelFile",
    "Limits",
    "Order",
    "Question",
    "ScoreOrder",
    "ask",
    "begin",
    "calibrate",
    "derive",
    "listed",
    "read_kind",
    "resume",
    "score",
    "stop",
    "write_passage",
]
