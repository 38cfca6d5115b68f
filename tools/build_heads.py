"""Build the heads that ship with the layer `classify`: `python tools/build_heads.py HEADS [EVAL CLINC]`.

They are trained on the examples of `bardo.context.classify`, written for bardo. With EVAL, a folder of labelled sets, and CLINC, the
training rows of CLINC150 as JSON lines, the head of domains is also trained on texts of MMLU, GSM8K, MATH, MBPP, HumanEval, TriviaQA,
CommonGen, Banking77 and CLINC150 whose own label says the domain: only weights are kept of them. numpy must be there.
"""

from __future__ import annotations

import sys
from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from random import Random
from typing import Any

import msgspec

import bardo.context.classify
from bardo.adapters.embedding.head_training import LabelledTexts, train
from bardo.context.classify.heads import Head, HeadFile
from bardo.context.classify.layer import shortened
from bardo.embedding.static_embedding import wide_embedding

EXAMPLES = Path(bardo.context.classify.__file__).parent / "data"
_QUESTIONS = ("domain", "intent", "complexity")
_MOST_OF_A_LABEL = 120
_SEED = 16
_SUBJECTS: Mapping[str, str] = {
    "mathematics": "abstract_algebra college_mathematics elementary_mathematics high_school_mathematics high_school_statistics",
    "science": "astronomy college_biology college_chemistry college_physics conceptual_physics electrical_engineering high_school_biology "
    "high_school_chemistry high_school_physics",
    "medicine": "anatomy clinical_knowledge college_medicine medical_genetics nutrition professional_medicine virology",
    "law": "international_law jurisprudence professional_law",
    "finance": "econometrics high_school_macroeconomics high_school_microeconomics professional_accounting",
    "business": "business_ethics management marketing public_relations",
    "code": "college_computer_science high_school_computer_science machine_learning computer_security",
    "knowledge": "global_facts high_school_european_history high_school_geography high_school_us_history high_school_world_history "
    "philosophy prehistory sociology us_foreign_policy world_religions high_school_government_and_politics",
}
_CLINC: Mapping[str, str] = {
    "finance": "banking credit_cards exchange_rate taxes",
    "travel": "travel auto_and_commute weather share_location",
    "food": "kitchen_and_dining",
    "home": "home alarm timer find_phone make_call text time date flip_coin roll_dice oil_change_how tire_change",
    "business": "work",
    "chat": "small_talk meta",
    "language": "translate definition spelling",
    "mathematics": "calculator measurement_conversion",
}
"""Domains and intents of CLINC150; an intent goes before its domain."""
_TASKS: Mapping[str, str] = {
    "code": "mbpp human_eval",
    "mathematics": "gsm8k math",
    "knowledge": "trivia_qa",
    "writing": "commongen",
}


def own_examples() -> dict[str, list[tuple[str, str]]]:
    """Return the written examples of each question: texts with their labels."""
    found: dict[str, list[tuple[str, str]]] = defaultdict(list)
    for line in (EXAMPLES / "examples.txt").read_text(encoding="utf-8").splitlines():
        domain, intent, complexity, text = line.split("|", 3)
        for question, label in zip(_QUESTIONS, (domain, intent, complexity), strict=True):
            found[question].append((text, label))
        found["safety"].append((text, "safe"))
    for line in (EXAMPLES / "safety.txt").read_text(encoding="utf-8").splitlines():
        label, text = line.split("|", 1)
        found["safety"].append((text, label))
    return found


def further_domains(folder: Path, clinc: Path) -> list[tuple[str, str]]:
    """Return texts of labelled sets with their domains, up to 120 of each domain."""
    subjects, tasks, clinc_names = map(_turned, (_SUBJECTS, _TASKS, _CLINC))
    found: dict[str, list[str]] = defaultdict(list)
    for row in _rows(folder / "router-routellm-mmlu" / "rows.jsonl"):
        if row["subject"] in subjects:
            found[subjects[row["subject"]]].append(row["prompt"])
    for row in _rows(folder / "router-nine-models" / "rows.jsonl"):
        if row["task"] in tasks:
            found[tasks[row["task"]]].append(row["prompt"])
    for row in _rows(folder / "intent-banking77" / "rows.jsonl"):
        found["finance"].append(row["text"])
    for row in _rows(clinc):
        domain = clinc_names.get(row["intent"]) or clinc_names.get(row["domain"])
        if domain:
            found[domain].append(row["text"])
    random = Random(_SEED)
    return [
        (text, domain)
        for domain, texts in found.items()
        for text in random.sample(texts, min(len(texts), _MOST_OF_A_LABEL))
    ]


def head_of(question: str, rows: Sequence[tuple[str, str]]) -> Head:
    """Return the head of one question, and print how good it is."""
    embedding = wide_embedding()
    head = train(
        LabelledTexts(question, [embedding.embed(shortened(text)) for text, _ in rows], [label for _, label in rows])
    )
    print(f"{question}: {len(head.labels)} labels, {head.rows} rows, accuracy {head.accuracy} {head.interval}")
    return head


def main() -> None:
    """Train the heads and write their file."""
    if len(sys.argv) not in (2, 4):
        sys.exit(__doc__)
    rows = own_examples()
    if len(sys.argv) == 4:
        rows["domain"] += further_domains(Path(sys.argv[2]), Path(sys.argv[3]))
    heads = tuple(head_of(question, one) for question, one in rows.items())
    embedding = wide_embedding()
    file = HeadFile(embedding=embedding.fingerprint, dimensions=embedding.dimensions, heads=heads)
    Path(sys.argv[1]).write_bytes(msgspec.json.encode(file) + b"\n")


def _turned(names: Mapping[str, str]) -> dict[str, str]:
    return {name: domain for domain, named in names.items() for name in named.split()}


def _rows(path: Path) -> Iterator[dict[str, Any]]:
    return (msgspec.json.decode(line) for line in path.read_bytes().splitlines())


if __name__ == "__main__":
    main()
