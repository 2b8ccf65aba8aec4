"""The whole error tree, with the exit code and the remedy each error carries.

OfflineJudgeError                    1
├── UsageError                       2  bad flags, settings, data or run state
│   ├── SettingsError
│   ├── DataError                       a data file, row or field that cannot be used
│   ├── TemplateError                   a prompt template is missing, unsafe or incomplete
│   ├── SchemaError                     an answer schema outside the supported subset
│   ├── RunNotFoundError
│   ├── LicenceError                    a licence was not accepted yet
│   ├── DoesNotFitError                 weights and cache are larger than the free memory
│   ├── RunLockedError                  another process owns the run directory
│   └── RunChangedError                 data or settings differ from what the run recorded
├── MissingError                     3
│   ├── MissingDependencyError
│   └── MissingModelError
├── WeightsError                     3
│   ├── DownloadError
│   ├── HashMismatchError
│   └── GgufError
├── BackendError                     4
│   ├── BackendStartError
│   ├── BackendCrashedError
│   ├── BackendResponseError            an answer that breaks the server's own protocol
│   └── ContextOverflowError
├── SearchError                      5
├── StorageError                     1  disk full, unreadable or damaged files
│   └── TraceError
├── StartError                          the process of a run ended before it began; its exit code
└── InterruptedRunError            130

`UnscoredError` stands apart: it is not a fault of the program but the way a stage
says "this sample could not be judged, for this reason".
"""

from __future__ import annotations


class OfflineJudgeError(Exception):
    """Base of every error this program raises on purpose.

    Args:
        message: What is wrong, naming the thing.
        where: The file, line, field or address it happened at.
        remedy: What the user can do about it, usually a command.
    """

    exit_code = 1

    def __init__(self, message: str, *, where: str = "", remedy: str = "") -> None:
        super().__init__(message)
        self.message = message
        self.where = where
        self.remedy = remedy

    def __str__(self) -> str:
        place = f" [{self.where}]" if self.where else ""
        remedy = f" {self.remedy}" if self.remedy else ""
        return f"{self.message}{place}{remedy}"


class UsageError(OfflineJudgeError):
    """The command, settings or data cannot be used as given."""

    exit_code = 2


class SettingsError(UsageError):
    """A setting is unknown, of the wrong type or out of range."""


class DataError(UsageError):
    """A data file, row or field cannot be used."""


class TemplateError(UsageError):
    """A prompt template is missing, unsafe or lacks a value."""


class SchemaError(UsageError):
    """An answer schema lies outside the supported subset."""


class RunNotFoundError(UsageError):
    """No run has this id."""


class LicenceError(UsageError):
    """A model's licence or the hub's terms must be accepted before its weights are fetched."""


class DoesNotFitError(UsageError):
    """A model with these settings needs more memory than is free."""


class RunLockedError(UsageError):
    """Another process owns the run directory."""


class RunChangedError(UsageError):
    """Data or settings differ from what the run recorded."""


class MissingError(OfflineJudgeError):
    """Something that must be installed or downloaded first is absent."""

    exit_code = 3


class MissingDependencyError(MissingError):
    """An optional package is not installed."""


class MissingModelError(MissingError):
    """A model's weights are not in the local store, or no card names it."""


class WeightsError(OfflineJudgeError):
    """Weights could not be fetched, checked or read."""

    exit_code = 3


class DownloadError(WeightsError):
    """Every source of a file failed."""


class HashMismatchError(WeightsError):
    """A file's content is not what its card promises."""


class GgufError(WeightsError):
    """A file is no GGUF, or is cut short."""


class BackendError(OfflineJudgeError):
    """The inference engine failed."""

    exit_code = 4


class BackendStartError(BackendError):
    """The engine did not become ready."""


class BackendCrashedError(BackendError):
    """The engine died or stopped answering while a request was in flight."""


class BackendResponseError(BackendError):
    """The engine's answer breaks its own protocol, or refuses the request.

    Args:
        message: As of `OfflineJudgeError`.
        where: Likewise.
        remedy: Likewise.
        status: The HTTP status it refused with; 0 for none.
    """

    def __init__(self, message: str, *, where: str = "", remedy: str = "", status: int = 0) -> None:
        super().__init__(message, where=where, remedy=remedy)
        self.status = status


class ContextOverflowError(BackendError):
    """A prompt is longer than the engine's window for one slot."""


class SearchError(OfflineJudgeError):
    """A search failed; this never means "nothing was found"."""

    exit_code = 5


class StorageError(OfflineJudgeError):
    """A file could not be written or read."""


class TraceError(StorageError):
    """A trace is damaged in a place that no interrupted write explains."""


class StartError(OfflineJudgeError):
    """The process that should work on a run ended before it took it up.

    Args:
        message: What it said.
        where: As of `OfflineJudgeError`.
        remedy: Likewise.
        exit_code: What it ended with.
    """

    def __init__(
        self, message: str, *, where: str = "", remedy: str = "", exit_code: int = 1
    ) -> None:
        super().__init__(message, where=where, remedy=remedy)
        self.exit_code = exit_code


class InterruptedRunError(OfflineJudgeError):
    """The user stopped the run before its end."""

    exit_code = 130


class UnscoredError(Exception):
    """A sample cannot be judged; carries the typed reason.

    Args:
        reason: One of the values of `offline_judge.domain.judgment.UnscoredReason`.
        detail: What was seen, for the trace and the screen.
    """

    def __init__(self, reason: str, detail: str) -> None:
        super().__init__(f"{reason}: {detail}")
        self.reason = reason
        self.detail = detail
