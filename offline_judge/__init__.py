"""The public API; each name is imported when it is first used."""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from offline_judge.api import (
        AskOptions,
        RunListing,
        RunRequest,
        RunView,
        SampleView,
        ask,
        cancel,
        export_rows,
        list_runs,
        load_run,
        resume,
        show,
    )
    from offline_judge.api import run as evaluate
    from offline_judge.errors import OfflineJudgeError
    from offline_judge.protocols import RunListener
    from offline_judge.settings import Settings, load_settings

    __version__: str

_PLACES = {
    "AskOptions": "api:AskOptions",
    "OfflineJudgeError": "errors:OfflineJudgeError",
    "RunListener": "protocols:RunListener",
    "RunListing": "api:RunListing",
    "RunRequest": "api:RunRequest",
    "RunView": "api:RunView",
    "SampleView": "api:SampleView",
    "Settings": "settings:Settings",
    "__version__": "settings:VERSION",
    "ask": "api:ask",
    "cancel": "api:cancel",
    "evaluate": "api:run",
    "export_rows": "api:export_rows",
    "list_runs": "api:list_runs",
    "load_run": "api:load_run",
    "load_settings": "settings:load_settings",
    "resume": "api:resume",
    "show": "api:show",
}

__all__ = [
    "AskOptions",
    "OfflineJudgeError",
    "RunListener",
    "RunListing",
    "RunRequest",
    "RunView",
    "SampleView",
    "Settings",
    "__version__",
    "ask",
    "cancel",
    "evaluate",
    "export_rows",
    "list_runs",
    "load_run",
    "load_settings",
    "resume",
    "show",
]


def __getattr__(name: str) -> Any:
    """Import a public name on first use.

    Raises:
        AttributeError: there is no such name.
    """
    if name not in _PLACES:
        raise AttributeError(f"module `offline_judge` has no attribute `{name}`")
    module, _, attribute = _PLACES[name].partition(":")
    return getattr(import_module(f"offline_judge.{module}"), attribute)


def __dir__() -> list[str]:
    """The public names."""
    return list(__all__)
