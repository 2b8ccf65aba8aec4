"""Beginning, resuming and stopping runs: data, parts and a run directory brought together."""

from offline_judge.jobs.beginning import ASKED, ask, begin
from offline_judge.jobs.deriving import derive, write_passage
from offline_judge.jobs.orders import DataFile, Limits, Order, Question
from offline_judge.jobs.others import listed, stop
from offline_judge.jobs.resuming import resume

__all__ = [
    "ASKED",
    "DataFile",
    "Limits",
    "Order",
    "Question",
    "ask",
    "begin",
    "derive",
    "listed",
    "resume",
    "stop",
    "write_passage",
]
