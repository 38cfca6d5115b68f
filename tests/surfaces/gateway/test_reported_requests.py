"""Requests that public reports say a gateway spoiled, of the kinds that are about the shape of a request: replayed through a gateway.

They are read from `reports/cases.json` of the folder beside the checkout, and left out where that is not there.
"""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

import pytest

from bardo.adapters.net.client import Call
from bardo.adapters.net.fake import FakeReply
from support.scripted import Scripted
from support.talk import Answer, path_for

_CASES = Path(__file__).parents[4] / "shared" / "reports" / "cases.json"
_KINDS = frozenset(
    {
        "cache-top-level",
        "image-type-gemini",
        "mistral-message-order",
        "one-system-ollama",
        "tool-name-characters",
        "tool-result-emptied",
        "user-id",
    }
)


def _cases() -> list[Any]:
    cases = json.loads(_CASES.read_text(encoding="utf-8")) if _CASES.is_file() else []
    return [case for case in cases if case["kind_of_fault"] in _KINDS]


@pytest.mark.parametrize("case", _cases(), ids=lambda case: case["name"])
def test_a_reported_request_reaches_its_provider_in_a_shape_that_is_taken(case: Any) -> None:
    asked = case["request"]
    preset, _, model = asked["model"].partition("/")
    sent: list[Any] = []

    def answer(call: Call) -> FakeReply:
        sent.append(json.loads(call.body))
        upstream = case["upstream"][min(len(sent), len(case["upstream"])) - 1]
        return FakeReply(
            status=upstream.get("status", 200),
            headers={"content-type": "application/json"},
            chunks=[json.dumps(upstream["json"]).encode()],
        )

    gateway = Scripted("", answer, preset=preset, models=(model,))
    named = asked["client"] not in ("gemini", "bedrock_converse")
    body = {**({"model": f"p/{model}"} if named else {}), **asked["body"]}
    said = gateway.post(path_for(asked["client"], f"p/{model}"), body, asked["headers"])
    for one in case["assert"]:
        assert _holds(one, said, sent), (one, said.status, said.text, sent)


def _holds(claim: Any, said: Answer, sent: list[Any]) -> bool:
    if claim[0] == "any":
        return any(all(_holds(one, said, sent) for one in way) for way in claim[1])
    scope, path, operator, *wanted = claim
    if scope == "headers":
        found: list[Any] = [said.headers.get(path, "")]
    elif scope == "status":
        found = [said.status]
    elif scope == "nup":
        found = [len(sent)]
    else:
        found = _at(sent[-1] if scope == "up" else said.json, path)
    value: Any = found[0] if len(found) == 1 else found
    match operator:
        case "eq":
            return bool(value == wanted[0])
        case "ne":
            return bool(value != wanted[0])
        case "contains":
            return wanted[0] in value
        case "not_contains":
            return wanted[0] not in json.dumps(value)
        case "json_contains":
            return wanted[0] in json.dumps(found)
        case "matches":
            return re.search(wanted[0], value) is not None
        case _:
            raise AssertionError(f"no such claim: {operator}")


def _at(value: Any, path: str) -> list[Any]:
    """Return the values at a path: names, `[2]`, `[*]`, `[key=value]` and `[?key]` for the elements that have it, joined by dots."""
    found = [value]
    for step in path.split(".") if path else ():
        inner = step.removeprefix("[").removesuffix("]")
        if inner == step:
            found = [one[step] for one in found if isinstance(one, dict) and step in one]
        elif re.fullmatch(r"-?\d+", inner):
            found = [one[int(inner)] for one in found]
        elif inner == "*":
            found = [each for one in found for each in one]
        elif inner.startswith("?"):
            found = [each for one in found for each in one if inner[1:] in each]
        else:
            key, _, wanted = inner.partition("=")
            found = [each for one in found for each in one if each.get(key) == wanted]
    return found
