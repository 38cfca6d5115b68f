"""Requests made from the structs of each dialect are refused in words or sent, and with the same bytes whether anything is kept or not."""

from __future__ import annotations

import random
import re
from collections.abc import Iterator
from importlib import import_module
from typing import Any

import msgspec
import pytest

from bardo import reuse
from bardo.dialects import dialect
from bardo.planning.knowledge import Knowledge
from bardo.planning.planner import plan
from bardo.planning.route import Target
from bardo.values.errors import BardoError, CallerError
from bardo.values.request import Request
from bardo.values.wire import Arrival
from planning.test_plan_cache import target
from support.generated_wire import GeneratedValues
from support.sampling import NIGHTLY

pytestmark = pytest.mark.usefixtures("reused")

REQUESTS = 2_500 if NIGHTLY else 60
"""Of each of the eight dialects: 20,000 at night."""
ODDITIES = (0.0, 0.01, 0.05, 0.2)
TEXT = {"role": "user", "content": "Hello."}
FIRST: dict[str, tuple[str, dict[str, Any]]] = {
    "openai_chat": ("messages", TEXT),
    "openai_responses": ("input", TEXT),
    "anthropic_messages": ("messages", TEXT),
    "gemini": ("contents", {"role": "user", "parts": [{"text": "Hello."}]}),
    "gemini_interactions": ("input", {"type": "user_input", "content": [{"type": "text", "text": "Hello."}]}),
    "cohere": ("messages", TEXT),
    "ollama": ("messages", TEXT),
    "bedrock_converse": ("messages", {"role": "user", "content": [{"text": "Hello."}]}),
}
"""Where the turns of a dialect stand, and one that every request begins with."""
TARGETS = [
    target(*place)
    for place in (
        ("deepseek", "deepseek-reasoner"),
        ("vllm", "qwen3"),
        ("openai", "gpt-5"),
        ("anthropic", "claude-sonnet-4-5"),
        ("gemini", "gemini-3-pro"),
        ("gemini-interactions", "gemini-3-pro"),
        ("cohere", "command-a-reasoning"),
        ("ollama", "qwen3"),
        ("bedrock", "anthropic.claude-sonnet-4-5"),
        ("bedrock-invoke", "anthropic.claude-sonnet-4-5"),
        ("watsonx", "m"),
    )
]
_PLACE = re.compile(r"\w+\[(\d+)\]")
_MOST_REFUSALS = 12


def bodies(name: str, number: int) -> Iterator[Any]:
    """Yield bodies of a dialect, any fields there or not; some hold what may not stand there."""
    wire, (turns, first) = import_module(f"bardo.dialects.{name}.wire"), FIRST[name]
    for seed in range(number):
        values, chance = GeneratedValues((name, seed), ODDITIES[seed % len(ODDITIES)]), random.Random(seed)
        body = values.of(wire.CreateResponse if name == "openai_responses" else wire.Request)
        if not isinstance(body, dict):
            continue
        if name == "openai_responses":
            body[turns] = [values.of(chance.choice([*wire.ITEMS.values()])) for _ in range(seed % 6)]
        body[turns] = [first, *(held if isinstance(held := body.get(turns), list) else [])]
        for turn in body[turns]:
            if isinstance(turn, dict) and "role" in turn:
                turn["role"] = (
                    "model" if name == "gemini" and seed % 2 else chance.choice(("user", "user", "assistant"))
                )
        yield {**body, "max_tokens": 3000, "bardo": {"allow_loss": ["*"]}}


def decoded(name: str, body: dict[str, Any]) -> Request | None:
    """Return the request of a body, without what it was refused for; None where that is all of it."""
    turns, _ = FIRST[name]
    for _ in range(_MOST_REFUSALS):
        try:
            return dialect(name).decode_request(msgspec.json.encode(body), Arrival(model="m", stream=False))
        except CallerError as refusal:
            param = getattr(refusal, "param", None) or ""
            top, place = re.split(r"[.\[]", param)[0], _PLACE.match(param)
            if top == turns and place is not None:
                body = {**body, turns: [one for at, one in enumerate(body[turns]) if at != int(place[1])]}
            else:
                body = {field: value for field, value in body.items() if field != top}
    return None


def sent(request: Request, at: Target, knowledge: Knowledge) -> tuple[Any, ...]:
    """Return what is sent and reported, or the words of the refusal."""
    try:
        attempt = plan(request, at, knowledge=knowledge)
    except BardoError as problem:
        return type(problem), problem.message
    return attempt.wire, attempt.degraded, attempt.forward, attempt.control, attempt.formats, attempt.tool_names


@pytest.mark.parametrize("name", FIRST)
def test_a_generated_request_is_sent_as_if_nothing_were_kept(name: str) -> None:
    kept, planned = Knowledge(), 0
    for body in bodies(name, REQUESTS):
        request = decoded(name, body)
        if request is None:
            continue
        for at in TARGETS:
            asked = msgspec.structs.replace(request, model=at.model)
            found = [sent(asked, at, kept) for _ in range(2)]
            planned += len(found[0]) > 2
            reuse.turn(False)
            anew = sent(asked, at, Knowledge())
            reuse.turn(True)
            assert found == [anew, anew], (at.provider.id, body)
    assert len(kept.plans) > 10
    assert planned > REQUESTS * len(TARGETS) // 3
