"""Small files of our own in exactly the forms of the public sets."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

AMBIGQA: list[dict[str, Any]] = [
    {
        "id": "71",
        "question": "When did the lighthouse open?",
        "annotations": [
            {"type": "singleAnswer", "answer": ["1902", "in 1902"]},
            {
                "type": "multipleQAs",
                "qaPairs": [
                    {"question": "When did the first tower open?", "answer": ["1888"]},
                    {"question": "When did the second tower open?", "answer": ["1902", " "]},
                ],
            },
        ],
        "nq_doc_title": "Lighthouse",
        "viewed_doc_titles": ["Lighthouse"],
    }
]
HOTPOTQA: list[dict[str, Any]] = [
    {
        "_id": "5a",
        "question": "Which is older, the mill or the bridge?",
        "answer": "the mill",
        "type": "comparison",
        "level": "hard",
        "supporting_facts": [["Mill", 0]],
        "context": [["Mill", ["Built in 1650."]]],
    },
    {"_id": "5b", "question": "Who owns it?", "context": []},
]
TRIVIAQA: dict[str, Any] = {
    "Domain": "Web",
    "Data": [
        {
            "Answer": {
                "Aliases": ["Lake Inari", "Inarijärvi", "Inari"],
                "NormalizedAliases": ["lake inari", "inarijarvi"],
                "Type": "WikipediaEntity",
                "Value": "Inari",
            },
            "EntityPages": [],
            "Question": "Which lake lies furthest north?",
            "QuestionId": "tc_7",
            "QuestionSource": "http://quiz.example/",
            "SearchResults": [],
        },
        {"Question": "And the second?", "QuestionId": "tc_8"},
    ],
    "VerifiedEval": False,
    "Version": 1.0,
}
SIMPLIFIED = {
    "example_id": -12,
    "question_text": "when was the ferry built",
    "document_url": "https://wiki.example/Ferry",
    "document_text": "<P> The ferry was built in 1931 . </P>",
    "annotations": [
        {
            "long_answer": {"start_token": 0, "end_token": 9},
            "short_answers": [{"start_token": 6, "end_token": 7}],
            "yes_no_answer": "NONE",
        },
        {"long_answer": {}, "short_answers": [], "yes_no_answer": "YES"},
        {
            "long_answer": {},
            "short_answers": [{"start_token": -1, "end_token": -1}],
            "yes_no_answer": "NONE",
        },
    ],
}
ORIGINAL = {
    **{key: SIMPLIFIED[key] for key in ("example_id", "question_text", "document_url")},
    "document_html": "<P>The ferry was built in 1931.</P>",
    "document_tokens": [
        {"token": "<P>", "html_token": True},
        {"token": "1931", "html_token": False},
        {"token": "</P>", "html_token": True},
    ],
    "annotations": [
        {"short_answers": [{"start_token": 0, "end_token": 3}], "yes_no_answer": "NONE"}
    ],
}
FRESHQA = """\
"Warning: a note, with a comma",,,,,,,,,,,
,,,,,,,,,,,
id,split,question,effective_year,next_review,false_premise,num_hops,fact_type,source,answer_0,\
answer_1,note
0,TEST,Who is mayor of Port Example?,2026,weekly,FALSE,one-hop,fast-changing,https://e.example,\
Ana Lima,A. Lima,
1,DEV,Why did the moon melt?,before 2022,occasionally,TRUE,one-hop,never-changing,,\
It did not melt,,check
"""
EVOUNA: list[dict[str, Any]] = [
    {
        "question": "who drew the first map of the bay",
        "golden_answer": "Ida Berg/I. Berg",
        "answer_fid": "Ida Berg",
        "judge_fid": True,
        "answer_gpt4": "It was drawn by Olaf Lind.",
        "judge_gpt4": False,
        "answer_newbing": None,
        "judge_newbing": None,
        "improper": False,
    },
    {
        "question": "when is the next tide",
        "golden_answer": "soon",
        "answer_fid": "now",
        "judge_fid": None,
        "improper": True,
    },
]
OPENQA = (
    "id\tQuestion\tModel answer\tAcceptable?\tannotator1\tannotator2\tannotator3\n"
    '4\twho sang it\t"Blue Boat" is sung by Ida Berg\tYes\tYes\tNo\tYes\n'
    "4\twho sang it\tUnknown.\tNo\tNo\tNo\t\n"
    "5\twho wrote it\tIda\t\tYes\tNo\t\n"
)
NQ_OPEN = (
    '{"question": "who built the ferry", "answer": ["Ida Berg", "Berg"]}\n'
    '{"question": "who sank it", "answer": ["a storm"], "def_correct_predictions": ["storm"], '
    '"answer_and_def_correct_predictions": ["a storm", "storm"]}\n'
)

FILES: dict[str, tuple[str, Any]] = {
    "ambigqa": ("dev.json", AMBIGQA),
    "evouna": ("NQ.json", EVOUNA),
    "freshqa": ("fresh.csv", FRESHQA),
    "hotpotqa": ("hotpot.json", HOTPOTQA),
    "natural-questions": ("nq.jsonl", json.dumps(SIMPLIFIED) + "\n"),
    "nq-open": ("open.jsonl", NQ_OPEN),
    "openqa-eval": ("human.tsv", OPENQA),
    "triviaqa": ("web.json", TRIVIAQA),
}


def write_file(folder: Path, name: str, content: Any) -> Path:
    path = folder / name
    text = content if isinstance(content, str) else json.dumps(content)
    path.write_text(text, "utf-8")
    return path
