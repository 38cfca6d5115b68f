"""What the tests of control at whole requests share: what a provider is sent for what a client says."""

from __future__ import annotations

from typing import Any, NamedTuple

import msgspec

from bardo.catalog.load import builtin
from bardo.dialects import dialect
from bardo.planning.attempt import Attempt
from bardo.planning.planner import plan
from bardo.planning.route import Provider, Target
from bardo.values.wire import Arrival

_PROMPT: dict[str, dict[str, Any]] = {
    "openai_chat": {"messages": [{"role": "user", "content": "Hello."}]},
    "openai_responses": {"input": "Hello."},
    "anthropic_messages": {"messages": [{"role": "user", "content": "Hello."}]},
    "bedrock_converse": {"messages": [{"role": "user", "content": [{"text": "Hello."}]}]},
    "bedrock_invoke": {"messages": [{"role": "user", "content": [{"type": "text", "text": "Hello."}]}]},
    "gemini": {"contents": [{"parts": [{"text": "Hello."}]}]},
    "gemini_interactions": {"input": "Hello."},
    "ollama": {"messages": [{"role": "user", "content": "Hello."}], "stream": False},
    "cohere": {"messages": [{"role": "user", "content": "Hello."}]},
    "watsonx_text": {"model_id": "m", "input": "Hello."},
}


class Sent(NamedTuple):
    """The body beside the prompt and what bardo adds for itself, the differences as (what, asked, sent), and the attempt."""

    fields: dict[str, Any]
    lost: list[tuple[str, Any, Any]]
    attempt: Attempt


def sent(spoken: str, preset: str, model: str, **fields: Any) -> Sent:
    """Return what becomes of a body with these fields on its way to a provider of the same dialect."""
    row = builtin().provider(preset)
    assert row is not None
    body = msgspec.json.encode({"model": "m", **_PROMPT[spoken], **fields})
    target = Target(provider=Provider(id=preset, row=row, base_url="http://host/v1"), model=model)
    attempt = plan(dialect(spoken).decode_request(body, Arrival(model=model)), target)
    written = msgspec.json.decode(attempt.wire.body)
    own = {"model", "model_id", "messages", "contents", "input", "stream", "store", "include"} - fields.keys()
    left = {name: value for name, value in written.items() if name not in own}
    return Sent(left, [(one.what, one.asked, one.sent) for one in attempt.degraded], attempt)
