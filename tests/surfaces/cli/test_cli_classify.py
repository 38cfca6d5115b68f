"""`bardo classify`: a text is labelled as calls are, heads are trained on labelled lines, and mistakes are named by line."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from surfaces.cli.support import bardo

CODE, CHAT = "Write a python function that sorts {} numbers.", "Who was king of France in the year {}?"


@pytest.fixture
def rows(folder: Path) -> Path:
    lines = [
        {"text": text.format(n), "kind": kind} for n in range(20) for text, kind in ((CODE, "code"), (CHAT, "history"))
    ]
    path = folder / "rows.jsonl"
    path.write_text("\n".join(map(json.dumps, lines)) + "\n")
    return path


@pytest.mark.usefixtures("folder")
def test_a_text_is_labelled() -> None:
    found = bardo("classify", "run", "Translate good morning into Japanese.", "--json").json
    assert found["tier"] == "static"
    assert found["labels"]["intent"]["label"] == "translate"
    shown = bardo("classify", "run", "Translate good morning into Japanese.").out
    assert "tier: static" in shown
    assert "translate" in shown


def test_heads_are_trained_and_label_then(rows: Path) -> None:
    pytest.importorskip("numpy", reason="the extra vectors is not installed")
    made = bardo("classify", "train", str(rows), "--out", "own.json", "--json")
    assert made.code == 0
    assert made.json["heads"] == [
        {"question": "kind", "labels": ["code", "history"], "rows": 40, "accuracy": 1.0, "interval": [0.9124, 1.0]}
    ]
    Path("bardo.toml").write_text('[inference.pipeline.classify]\nheads = "own.json"\nblock = { "kind.code" = 0.1 }\n')
    found = bardo("classify", "run", "Write a script in python.", "--json").json
    assert found["tier"] == "static"
    assert found["labels"]["kind"]["label"] == "code"
    assert found["labels"]["intent"]["label"]
    assert "1.000" in bardo("classify", "train", str(rows), "--out", "own.json").out


@pytest.mark.usefixtures("folder")
def test_rules_alone_make_no_vectors() -> None:
    Path("bardo.toml").write_text("[inference.pipeline.classify]\nrules_only = true\n")
    assert bardo("classify", "run", "hello", "--json").json["tier"] == "rules"


LINES = {
    "no JSON": ("nonsense", "line 1"),
    "no text": ('{"domain": "x"}', "line 1: no text"),
    "a label that is no text": ('{"text": "a", "domain": 3}', "line 1"),
    "no labels": ('{"text": "a"}', "no labelled texts"),
    "too few": ('{"text": "a", "d": "x"}\n{"text": "b", "d": "y"}', "fewer than 5 rows"),
}


@pytest.mark.parametrize(("content", "says"), LINES.values(), ids=LINES)
def test_a_file_that_cannot_be_learned_from_is_refused(folder: Path, content: str, says: str) -> None:
    pytest.importorskip("numpy", reason="the extra vectors is not installed")
    (folder / "rows.jsonl").write_text(content + "\n")
    failed = bardo("classify", "train", "rows.jsonl")
    assert failed.code == 2
    assert says in failed.err
    assert not (folder / "heads.json").exists()


@pytest.mark.usefixtures("folder")
def test_a_file_that_is_not_there_is_refused() -> None:
    failed = bardo("classify", "train", "nowhere.jsonl")
    assert failed.code == 2
    assert "nowhere.jsonl cannot be read" in failed.err


SETTINGS = {
    "heads that are not there": 'heads = "nowhere.json"',
    "a block that names no label": "block = { unsafe = 0.9 }",
    "a feature that nobody knows": 'needs = [{ when = { domain = "code" }, prefer = ["nonsense"] }]',
    "a probability above 1": 'block = { "safety.unsafe" = 2.0 }',
}


@pytest.mark.parametrize("line", SETTINGS.values(), ids=SETTINGS)
def test_settings_that_cannot_be_are_refused(folder: Path, line: str) -> None:
    (folder / "bardo.toml").write_text(f"[inference.pipeline.classify]\n{line}\n")
    failed = bardo("classify", "run", "hello")
    assert failed.code == 2
    assert "Traceback" not in failed.err
