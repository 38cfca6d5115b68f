"""Names of tools that a target does not take go there as others, and come back as the client's own."""

from __future__ import annotations

import json
import re
from typing import Any

import pytest

from bardo.catalog.request_shapes import NameRule, builtin_shape_rules, shape_at
from bardo.dialects import dialect
from bardo.planning.planner import plan
from bardo.planning.tools import RestoreToolNames
from bardo.values.events import ToolCallStart
from bardo.values.wire import Arrival
from planning.test_plan_cache import target
from support.talk import SCHEMA

NAMES = ("files.read", "github/list issues", "файл", "a" * 80, "read:v2", "9lives", "weather", "é" * 200)
TARGETS = {
    "anthropic": ("claude-sonnet-4-5", r"[a-zA-Z0-9_-]{1,128}"),
    "openai": ("gpt-5.4", r"[a-zA-Z0-9_-]{1,64}"),
    "mistral": ("mistral-large-latest", r"[a-zA-Z0-9_-]{1,64}"),
    "openrouter": ("x/y", r"[a-zA-Z0-9_-]{1,64}"),
    "bedrock": ("us.anthropic.claude-sonnet-4-5-20250929-v1:0", r"[a-zA-Z0-9_-]{1,64}"),
    "gemini": ("gemini-3-flash-preview", r"[a-zA-Z_][a-zA-Z0-9_.:-]{0,63}"),
}


def _request(names: tuple[str, ...]) -> Any:
    call = {"id": "c1", "type": "function", "function": {"name": names[0], "arguments": "{}"}}
    body = {
        "model": "m",
        "messages": [
            {"role": "user", "content": "Go."},
            {"role": "assistant", "content": None, "tool_calls": [call]},
            {"role": "tool", "tool_call_id": "c1", "content": "done"},
        ],
        "tools": [{"type": "function", "function": {"name": name, "parameters": SCHEMA}} for name in names],
        "tool_choice": {"type": "function", "function": {"name": names[0]}},
    }
    return dialect("openai_chat").decode_request(json.dumps(body).encode(), Arrival())


@pytest.mark.parametrize("provider", TARGETS)
def test_every_name_goes_as_one_that_the_target_takes_and_comes_back_as_it_was(provider: str) -> None:
    model, pattern = TARGETS[provider]
    at = target(provider, model)
    rule = shape_at(at.provider.row, model).tool_names
    assert rule is not None
    attempt = plan(_request(NAMES), at)
    written = [rule.written(name) for name in NAMES]
    assert all(re.fullmatch(pattern, name) for name in written)
    assert len({*written}) == len(NAMES)
    sent = attempt.wire.body.decode()
    for name, other in zip(NAMES, written, strict=True):
        assert f'"{other}"' in sent
        assert other == name or attempt.tool_names[other] == name


def test_a_name_that_is_taken_stays() -> None:
    rule = NameRule("a-z_", "a-z", 5)
    assert rule.written("abcde") == "abcde"
    assert not rule.takes("abcdef")
    assert not rule.takes("_abc")
    assert not rule.takes("ab.c")
    assert rule.takes("")


def test_a_body_is_not_sent_on_whose_history_called_a_name_that_is_refused() -> None:
    row = target("openai-chat", "gpt-4.1")
    assert plan(_request(("weather",)), row).forward
    assert not plan(_request(("files.read",)), row).forward


def test_each_rule_says_how_it_is_told_and_where_that_stands() -> None:
    rules = builtin_shape_rules()
    assert rules
    assert all(rule.source and rule.dialects for rule in rules)


def test_the_event_of_a_call_has_the_clients_name() -> None:
    (event,) = RestoreToolNames({"files_read_1": "files.read"}).feed(ToolCallStart(0, "c1", "files_read_1"))
    assert isinstance(event, ToolCallStart)
    assert event.name == "files.read"
