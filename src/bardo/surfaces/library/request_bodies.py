"""Bodies of clients' requests that are made or changed for somebody who asks what would become of them."""

from __future__ import annotations

from typing import Any

import msgspec

from bardo.dialects.shared.options import read_intent_header
from bardo.planning.workload_requests import ANY_MODEL
from bardo.routing.workloads import PREFIX
from bardo.values.errors import InvalidRequest

SAMPLE_TEXT = "What is 27 * 43?"


def sample_bodies(text: str) -> dict[str, dict[str, Any]]:
    """Return a small request with a text, in each dialect that clients speak most."""
    return {
        "openai_chat": {"messages": [{"role": "user", "content": text}]},
        "openai_responses": {"input": text},
        "anthropic_messages": {"max_tokens": 4096, "messages": [{"role": "user", "content": text}]},
        "gemini": {"contents": [{"role": "user", "parts": [{"text": text}]}]},
    }


SAMPLES = sample_bodies(SAMPLE_TEXT)
"""What is asked where no request is given."""
ANY = PREFIX + ANY_MODEL
"""The model of a request that only says what it needs."""


def decode_body(content: bytes | str, name: str) -> dict[str, Any]:
    """Return the JSON object of a request; `name` is what errors call it. Raises InvalidRequest."""
    try:
        body = msgspec.json.decode(content)
    except (msgspec.DecodeError, UnicodeError, RecursionError) as problem:
        raise InvalidRequest(
            f"{name} is not valid JSON: {problem}", hint="give the body of a client's request"
        ) from problem
    if not isinstance(body, dict):
        raise InvalidRequest(f"{name} is no JSON object", hint="give the body of a client's request")
    return body


def with_intent(body: dict[str, Any], workload: str, intent: str, param: str = "intent") -> dict[str, Any]:
    """Return the request with the needs that `workload` and `intent` give, which go before its own.

    `intent` is JSON, or pairs as in `quality=high; require=vision`; `param` names it in errors. Raises InvalidRequest.
    """
    said = read_intent_header(intent, param)
    if workload:
        said["subsystem"] = workload.removeprefix(PREFIX)
    if not said:
        return body
    own = body.get("bardo")
    own = own if isinstance(own, dict) else {}
    before = own.get("intent")
    needs = {**(before if isinstance(before, dict) else {}), **said}
    return {**body, "bardo": {**own, "intent": needs}}


def with_reasoning(body: dict[str, Any], policy: int | str | None) -> dict[str, Any]:
    """Return the request with a policy of thinking that goes before its own."""
    if policy is None:
        return body
    own = body.get("bardo")
    return {**body, "bardo": {**(own if isinstance(own, dict) else {}), "reasoning": policy}}
