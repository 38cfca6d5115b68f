"""The laws of shortening, over requests that programs have sent."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from typing import Any

import msgspec
import pytest
from msgspec.structs import replace

from bardo.catalog.load import builtin
from bardo.context.layer import Layer
from bardo.dialects import dialect
from bardo.values.errors import BardoError
from bardo.values.request import Request
from bardo.values.wire import Arrival
from context.steps.histories import said, user
from context.steps.test_laws_of_shortening import LAYERS, skeleton
from context.steps.test_order_and_rules import REORDER
from recordings import Recording, each_recording, rows
from support.layer_runs import Memory, run_layer

DIALECTS = {
    "anthropic-messages": ("anthropic_messages", "anthropic"),
    "openai-chat": ("openai_chat", "openai-chat"),
    "openai-responses": ("openai_responses", "openai"),
    "gemini": ("gemini", "gemini"),
    "deepseek": ("openai_chat", "deepseek"),
    "mistral": ("openai_chat", "mistral"),
    "groq": ("openai_chat", "groq"),
}
ASKED = [one for folder in DIALECTS for one in rows(folder) if one.meta.get("request_body")]
ALL: dict[str, Callable[[], Layer]] = {**LAYERS, "reorder": lambda: REORDER}


def asked(recording: Recording) -> Request:
    """Return a recorded request with two more turns, so that what it asks is old; skips what is no generation."""
    name, _ = DIALECTS[recording.file.partition("/")[0]]
    body = msgspec.json.encode(recording.meta["request_body"])
    decode: Any = dialect(name).decode_request
    try:
        request = decode(body, Arrival(model=recording.meta["model"], stream=recording.stream))
    except BardoError:
        pytest.skip("a request that is refused")
    if request.operation != "generate" or not request.messages or request.messages[-1].role != "user":
        pytest.skip("no conversation")
    conversation: Request = replace(
        request, messages=(*request.messages, said("Yes."), user("Go on.")), body=None, body_bytes=b""
    )
    return conversation


@pytest.mark.skipif(not ASKED, reason="no recorded requests on this machine")
@pytest.mark.parametrize("name", ALL)
@each_recording(ASKED, together=200)
def test_a_recorded_request_keeps_what_must_stay_and_can_be_written(name: str, recording: Recording) -> None:
    request = asked(recording)
    passed = run_layer(ALL[name](), request, None, Memory())
    if name == "reorder":
        assert Counter(map(repr, (one for turn in request.messages for one in turn.blocks))) == Counter(
            map(repr, (one for turn in passed.request.messages for one in turn.blocks))
        )
    else:
        assert skeleton(passed.request) == skeleton(request)
    form, row = DIALECTS[recording.file.partition("/")[0]]
    provider = builtin().provider(row)
    assert provider is not None
    before = dialect(form).encode_request(request, provider)
    after = dialect(form).encode_request(passed.request, provider)
    assert after.degraded == before.degraded
    assert after.headers == before.headers
