"""`evidence add` and `evidence drop`: a sample judged again with its evidence changed."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import TYPE_CHECKING

import click

from offline_judge.cli import output
from offline_judge.cli.session import Session, output_options
from offline_judge.errors import DataError, UsageError

if TYPE_CHECKING:
    from offline_judge.api import RunView


run_id_option = click.option("--run-id", "new_id", default="", hidden=True)


@click.command("add")
@click.argument("run_id", metavar="RUN")
@click.argument("sample_id", metavar="SAMPLE")
@click.option("--text", metavar="TEXT", help="The passage itself.")
@click.option("--file", metavar="FILE", help="A text file that holds it; - is stdin.")
@click.option("--title", default="", metavar="TITLE", help="What it is from.")
@click.option("--url", default="", metavar="URL", help="Where it is from.")
@click.option("--date", default="", metavar="DATE", help="When it was written, YYYY-MM-DD.")
@run_id_option
@output_options
@click.pass_obj
def add(
    session: Session,
    /,
    run_id: str,
    sample_id: str,
    text: str | None,
    file: str | None,
    new_id: str,
    **more: str,
) -> None:
    """Judge SAMPLE of RUN again with a passage of your own beside what is searched.

    It becomes a run of its own, derived from RUN, which is not changed.
    """
    from offline_judge import api
    from offline_judge.cli.display import Display

    passage = api.OwnPassage(_read(text, file), **more)
    with Display(session.diagnostics) as display:
        view = api.evidence_add(
            run_id, sample_id, passage, session.settings(), display, new_id=new_id
        )
    _report(session, view, sample_id)


@click.command("drop")
@click.argument("run_id", metavar="RUN")
@click.argument("sample_id", metavar="SAMPLE")
@click.argument("passage_id", metavar="PASSAGE")
@run_id_option
@output_options
@click.pass_obj
def drop(session: Session, run_id: str, sample_id: str, passage_id: str, new_id: str) -> None:
    """Judge SAMPLE of RUN again without PASSAGE, one that its searches found.

    It becomes a run of its own, derived from RUN, which is not changed.
    """
    from offline_judge import api
    from offline_judge.cli.display import Display

    with Display(session.diagnostics) as display:
        view = api.evidence_drop(
            run_id, sample_id, passage_id, session.settings(), display, new_id=new_id
        )
    _report(session, view, sample_id)


def _report(session: Session, view: RunView, sample_id: str) -> None:
    from offline_judge.cli.derived import comparison, origin
    from offline_judge.cli.run import end_by_status

    row = view.rows[0] if view.rows else None
    parent, run = view.manifest.parent, view.manifest.run_id
    if session.json:
        output.document({"run": run, "parent": parent, "before": view.before, "row": row})
    else:
        derived = [("derived from", origin(parent))] if parent is not None else []
        output.pairs([("run", run), *derived, *comparison(view.before, row)])
    session.diagnostics.hint(f"How it was judged: offline-judge show {run} {sample_id}")
    end_by_status(view.summary.status)


def _read(text: str | None, file: str | None) -> str:
    """The passage from wherever it is given.

    Raises:
        UsageError: it is given twice or not at all.
        DataError: the file cannot be read.
    """
    if (text is None) == (file is None):
        raise UsageError("A passage comes from --text or from --file, one of them.")
    if text is not None:
        return text
    try:
        raw = sys.stdin.buffer.read() if file == "-" else Path(str(file)).read_bytes()
        return raw.decode("utf-8-sig")
    except OSError as error:
        raise DataError(f"Cannot read the passage: {error.strerror}", where=str(file)) from error
    except UnicodeDecodeError:
        raise DataError(
            "The passage is not UTF-8 text.", where=str(file), remedy="Save it as UTF-8."
        ) from None
