"""EVOUNA (QA-Eval): answers of five systems to each question, judged by people."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from typing import ClassVar

from offline_judge.datasets.fields import label_of, needed
from offline_judge.datasets.forms.base import (
    Draft,
    Form,
    LeftOutError,
    checked,
    question_of,
    unique,
)
from offline_judge.datasets.rows import DataFile, Row
from offline_judge.domain.base import content_hash
from offline_judge.domain.strict_json import json_kind

_ANSWER = "answer_"
_JUDGE = "judge_"
_DATE = re.compile(r"\d{1,2}/\d{1,2}/\d{2,4}")
_NOTHING = ("", "None", "nan")
"""How the files write that a system gave no answer, or that nobody judged it."""


class Evouna:
    """`NQ.json` and `TQ.json`: one sample for each question and system.

    Questions that the authors flagged as improper are left out and counted, and so are systems
    that gave no answer. Accepted answers are parted by `/`; a single date and a pair such as km/h,
    where one side is a single letter, stay whole.
    """

    name: ClassVar[str] = "evouna"
    title: ClassVar[str] = "EVOUNA"
    expects: ClassVar[str] = (
        "a JSON array of objects with `question`, `golden_answer`, and `answer_X` and `judge_X` "
        "for each system X"
    )

    def rows(self, file: DataFile) -> Iterator[Row]:
        """The entries of the array."""
        return checked(self.name, file.entries())

    def drafts(self, row: Row) -> Iterable[Draft | LeftOutError]:
        """One sample a system."""
        columns = row.columns
        question = question_of(columns)
        if columns.get("improper"):
            yield LeftOutError("questions flagged as improper")
            return
        systems = [name.removeprefix(_ANSWER) for name in columns if name.startswith(_ANSWER)]
        if not systems:
            raise ValueError("no column `answer_X` of a system")
        key = content_hash([question])[:8]
        reference = accepted(needed(columns, "golden_answer"))
        for system in systems:
            response = columns[_ANSWER + system]
            if response is None or response in _NOTHING:
                yield LeftOutError(f"answers that `{system}` did not give")
                continue
            if not isinstance(response, str):
                raise ValueError(f"`{_ANSWER}{system}` must be text, not {json_kind(response)}")
            yield Draft(
                question=question,
                response=response,
                stem=f"{key}-{system}",
                reference=reference,
                label=_label(columns.get(_JUDGE + system)),
                metadata={"system": system},
            )


def accepted(golden: object) -> tuple[str, ...]:
    """The accepted answers in a `golden_answer`.

    Raises:
        ValueError: it is no text.
    """
    if golden is None:
        return ()
    if not isinstance(golden, str):
        raise ValueError(f"`golden_answer` must be text, not {json_kind(golden)}")
    parts = golden.split("/")
    unit = len(parts) == 2 and any(len(part) == 1 and part.isalpha() for part in parts)
    return unique([golden] if unit or _DATE.fullmatch(golden.strip()) else parts)


def _label(judged: object) -> bool | None:
    return None if judged in _NOTHING else label_of(judged)


FORM: type[Form] = Evouna
