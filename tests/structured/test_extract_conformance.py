"""Malformed answers with the value each should give, read from `malformed_json.json` beside the project (or BARDO_MALFORMED_JSON)."""

from __future__ import annotations

import json
import os
from functools import cache
from pathlib import Path
from typing import Any

import pytest

from bardo.structured import Extraction, extract
from structured.same import same

FILE = Path(
    os.environ.get("BARDO_MALFORMED_JSON") or Path(__file__).resolve().parents[3] / "shared" / "malformed_json.json"
)
AT_LEAST_RIGHT = 98
AT_MOST_SILENT = 0

pytestmark = pytest.mark.skipif(not FILE.is_file(), reason="the malformed answers are not on this machine")


@cache
def cases() -> tuple[dict[str, Any], ...]:
    return tuple(json.loads(FILE.read_text(encoding="utf-8"))["cases"]) if FILE.is_file() else ()


def right(case: dict[str, Any], found: Extraction) -> bool:
    """Judge as the file's own rules say."""
    matches = any(same(found.value, wanted) for wanted in (case["expected"], *case["accept"]))
    if case["expect_error"]:
        return found.error is not None
    return matches and (found.truncated if case["truncated"] else found.ok)


def silent(case: dict[str, Any], found: Extraction) -> bool:
    """A wrong value that passes for a right one: no later check can catch it."""
    return found.ok and not right(case, found)


def test_nearly_all_malformed_answers_give_their_value() -> None:
    found = [(case, extract(case["text"], case["schema"])) for case in cases()]
    wrong = [case["id"] for case, result in found if not right(case, result)]
    assert len(found) - len(wrong) >= AT_LEAST_RIGHT * len(found) / 100, wrong


def test_no_malformed_answer_gives_a_wrong_value_in_silence() -> None:
    assert sum(silent(case, extract(case["text"], case["schema"])) for case in cases()) <= AT_MOST_SILENT


@pytest.mark.parametrize(
    "case", [case for case in cases() if case["category"] == "sound"], ids=lambda case: str(case["id"])
)
def test_sound_json_comes_through_unharmed(case: dict[str, Any]) -> None:
    found = extract(case["text"], case["schema"])
    assert same(found.value, case["expected"])
    assert (found.error, found.warnings) == (None, ())


@pytest.mark.parametrize("case", cases(), ids=lambda case: str(case["id"]))
def test_every_result_can_be_sent_on_and_keeps_its_text(case: dict[str, Any]) -> None:
    found = extract(case["text"], case["schema"])
    json.dumps(found.value, allow_nan=False, ensure_ascii=False).encode()
    assert found.text == case["text"]
