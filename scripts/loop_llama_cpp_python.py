"""SAGE by hand with llama-cpp-python: MODEL PROMPTS THREADS [json]; lines of JSON in and out."""

import json
import sys
from collections.abc import Mapping

from jinja2 import Environment, FileSystemLoader
from llama_cpp import Llama

Turns = list[dict[str, str]]
MODEL, PROMPTS, THREADS, JSON = *sys.argv[1:3], int(sys.argv[3]), "json" in sys.argv[4:]
FILES = Environment(loader=FileSystemLoader(PROMPTS), trim_blocks=True, lstrip_blocks=True)
LLM = Llama(MODEL, n_ctx=4096, n_threads=THREADS, n_threads_batch=THREADS, verbose=False)
YES, NO = (LLM.tokenize(word, add_bos=False)[0] for word in (b"Yes", b"No"))
TEXT, LABEL = {"answer": {"type": "string"}}, {"answer": {"enum": ["Yes", "No"]}}
WHY = {"rationale": {"type": "string"}, "correct": {"type": "boolean"}}


def said(text: str) -> dict[str, str]:
    return {"role": "assistant", "content": text}


def asked(name: str, values: dict[str, object], *before: dict[str, str]) -> Turns:
    files = {"user": name} if before else {role: f"{name}.{role}" for role in ("system", "user")}
    texts = [(role, FILES.get_template(f"{file}.jinja")) for role, file in files.items()]
    return [*before, *({"role": role, "content": text.render(values)} for role, text in texts)]


def chat(turns: Turns, tokens: int, shape: Mapping[str, object], **more: object) -> str:
    if JSON:
        schema = {"type": "object", "properties": shape, "required": list(shape)}
        more = {"response_format": {"type": "json_object", "schema": schema}}
        tokens += 16  # braces and names
    out = LLM.create_chat_completion(turns, temperature=0.0, max_tokens=tokens, **more)
    return str(out["choices"][0]["message"]["content"]).strip()


def line(turns: Turns, tokens: int) -> str:
    text = chat(turns, tokens, TEXT, stop=["\n"])
    return text.partition('"answer":')[2].strip(' "}\n') if JSON else text


def yes(turns: Turns) -> float:  # log-odds of Yes against No as the first token
    seen: dict[int, list[float]] = {}
    spy = [lambda _ids, scores: seen.setdefault(0, scores.copy())]
    text = chat(turns, 1, LABEL, logits_processor=spy)
    return (14.0 if "Yes" in text else -14.0) if JSON else float(seen[0][YES] - seen[0][NO])


for row in sys.stdin:
    sample, queries, notes, known = json.loads(row), list[str](), list[str](), set[str]()
    read: list[tuple[float, float, Turns]] = []
    for number in range(3):
        turns = asked("query", {**sample, "notes": notes})
        query = line(turns, 24) if number else sample["question"]
        if query in queries:
            turns = asked("query.again", {"forbidden": queries}, *turns, said(query))
            query = line(turns, 48).split(";")[0]
        queries.append(query)
        print(json.dumps({"search": query, "limit": 3 + len(known)}), flush=True)
        hits = [hit for hit in json.loads(input()) if hit["id"] not in known][:3]
        if not hits:
            continue
        known |= {hit["id"] for hit in hits}
        texts = [{**sample, "evidence": f"[{hit['id']}] {hit['text'][:1200]}"} for hit in hits]
        found = [(yes(turns := asked("relevance", text)), turns, text) for text in texts]
        best, turns, text = max(found, key=lambda one: one[0])
        top = max([best, *(odds for odds, _, _ in read)])
        near = [(best, text), *((odds, t) for odds, _, t in found if best > odds > top - 0.7)]
        read += [(odds, yes(asks := asked("reflection", t)), asks) for odds, t in near]
        if number == 2:  # nobody reads what follows
            break
        summary = line(asked("relevance.summary", {}, *turns, said("Yes")), 64) if best >= 0 else ""
        missing = line(asked("reflection.missing", {}, *read[-len(near)][2], said("Yes")), 24)
        notes.append(f"searched: {query} | found: {summary or 'nothing'} | missing: {missing}")
    if not read:
        read.append((top := 0.0, yes(turns := asked("knowledge", sample)), turns))
    _, right, turns = max((one for one in read if one[0] >= top - 0.7), key=lambda one: one[1])
    why = asked("reflection.rationale", {"cite": 1}, *turns, said("Yes" if right >= 0 else "No"))
    print(json.dumps({"verdict": right >= 0, "rationale": chat(why, 96, WHY)}), flush=True)
