"""A client's own body goes on as it came where its provider takes all of it."""

from __future__ import annotations

from typing import Any

import msgspec
import pytest

from bardo.catalog.load import builtin
from bardo.dialects import dialect
from bardo.values.request import facts_of
from bardo.values.wire import Arrival

CALL = {"id": "call_1", "type": "function", "function": {"name": "f", "arguments": "{}"}}
PICTURE = {"type": "image_url", "image_url": {"url": "data:image/png;base64,aGk="}}


def chat(content: Any, **said: Any) -> list[dict[str, Any]]:
    return [
        {"role": "user", "content": "go"},
        {"role": "assistant", "tool_calls": [CALL], **said},
        {"role": "tool", "tool_call_id": "call_1", "content": content},
    ]


def messages(*texts: str) -> list[dict[str, Any]]:
    return [{"role": "user", "content": [{"type": "text", "text": text} for text in texts]}]


CASES: dict[str, tuple[bool, str, str, list[dict[str, Any]]]] = {
    "a text as a result": (False, "openai_chat", "deepseek", chat("done")),
    "a picture in a result": (True, "openai_chat", "deepseek", chat([PICTURE])),
    "a picture in a result where it is taken": (False, "openai_chat", "mistral", chat([PICTURE])),
    "a picture beside a result": (
        False,
        "openai_chat",
        "deepseek",
        [*chat("done"), {"role": "user", "content": [PICTURE]}],
    ),
    "thinking where none is taken": (True, "openai_chat", "openai", chat("done", reasoning_content="Hm.")),
    "thinking where it is taken": (False, "openai_chat", "deepseek", chat("done", reasoning_content="Hm.")),
    "a text with words": (False, "anthropic_messages", "anthropic", messages("go")),
    "a text of nothing": (True, "anthropic_messages", "anthropic", messages("go", "")),
    "a text of space": (True, "anthropic_messages", "anthropic", messages("go", " \n")),
}


@pytest.mark.parametrize("name", CASES)
def test_a_body_is_mended_where_it_holds_what_the_provider_does_not_take(name: str) -> None:
    mended, spoken, provider, said = CASES[name]
    limit = {"max_tokens": 9} if spoken == "anthropic_messages" else {}
    body = msgspec.json.encode({"model": "m", **limit, "messages": said})
    request, row = dialect(spoken).decode_request(body, Arrival()), builtin().provider(provider)
    assert row is not None
    assert dialect(spoken).mends(request, row, facts_of(request.messages)) is mended
