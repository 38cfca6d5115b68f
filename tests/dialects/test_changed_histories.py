"""Conversations that are continued, cut, changed and taken up again: what is read and sent of each is as if it were the first."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import msgspec
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from bardo.dialects.shared import losses as written_histories
from bardo.dialects.shared import repeated_items
from bardo.dialects.shared.repeated_items import REPEATED_ITEMS
from bardo.values import histories
from dialects.test_repeated_items import _outcome

IMAGE = "iVBORw0KGgo="
IDS = ("call_1", "call_2", "call_8f2KzPq001Ab", "spaced id")
NAMES = ("look", "mend")


def _chat_messages() -> Iterator[dict[str, Any]]:
    yield {"role": "system", "content": "Be brief."}
    yield {"role": "developer", "content": "Be kind."}
    yield {"role": "user", "content": "Look."}
    yield {"role": "user", "content": [{"type": "text", "text": "And this?"}], "name": "somebody"}
    yield {
        "role": "user",
        "content": [{"type": "image_url", "image_url": {"url": f"data:image/png;base64,{IMAGE}"}}],
    }
    yield {"role": "user", "content": [{"type": "input_audio", "input_audio": {"data": "AAAA", "format": "wav"}}]}
    yield {"role": "assistant", "content": "It is done."}
    yield {"role": "assistant", "content": "It is done.", "reasoning_content": "Is it?"}
    for place, call_id in enumerate(IDS):
        for name in NAMES:
            function = {"name": name, "arguments": '{"path": "a"}'}
            call = {"id": call_id, "type": "function", "function": function}
            yield {"role": "assistant", "content": None, "tool_calls": [call]}
            if place % 2:
                yield {"role": "assistant", "content": "So.", "reasoning_content": "Hm.", "tool_calls": [call]}
        yield {"role": "tool", "tool_call_id": call_id, "content": f"found {place}"}
    parallel = [{"id": one, "type": "function", "function": {"name": "look", "arguments": "{}"}} for one in IDS]
    yield {"role": "assistant", "content": None, "tool_calls": parallel}


def _messages_messages() -> Iterator[dict[str, Any]]:
    yield {"role": "user", "content": "Look."}
    yield {"role": "user", "content": [{"type": "text", "text": "Look.", "cache_control": {"type": "ephemeral"}}]}
    source = {"type": "base64", "media_type": "image/png", "data": IMAGE}
    yield {"role": "user", "content": [{"type": "image", "source": source}]}
    yield {"role": "assistant", "content": "It is done."}
    yield {"role": "assistant", "content": [{"type": "thinking", "thinking": "Is it?", "signature": "c2lnbmVk" * 8}]}
    yield {"role": "assistant", "content": [{"type": "server_tool_use", "id": "s", "name": "web_search", "input": {}}]}
    found = {"type": "search_result", "source": "s", "title": "t", "content": [{"type": "text", "text": "found"}]}
    for call_id in IDS[:3]:
        for name in NAMES:
            call = {"type": "tool_use", "id": call_id, "name": name, "input": {"path": "a"}}
            yield {"role": "assistant", "content": [{"type": "text", "text": "So."}, call]}
        result = {"type": "tool_result", "tool_use_id": call_id, "content": "found"}
        yield {"role": "user", "content": [result]}
        yield {"role": "user", "content": [{**result, "content": [found], "is_error": True}]}


POOLS = {"openai_chat": [*_chat_messages()], "anthropic_messages": [*_messages_messages()]}
SYSTEMS = (None, "Be brief.", [{"type": "text", "text": "Be kind.", "cache_control": {"type": "ephemeral"}}])


@contextmanager
def _least(size: int) -> Iterator[None]:
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(repeated_items, "LEAST_BYTES", size)
        patch.setattr(repeated_items, "LEAST_ITEMS", size)
        for module in (histories, written_histories):
            patch.setattr(module, "LEAST_MESSAGES", size)
        yield


@pytest.mark.parametrize("name", POOLS)
@settings(max_examples=150, deadline=None)
@given(data=st.data())
def test_each_is_read_and_sent_as_if_it_were_the_first(name: str, data: st.DataObject) -> None:
    # What is kept of other examples would make a failure hard to find again.
    REPEATED_ITEMS._newer.clear()
    REPEATED_ITEMS._older.clear()
    pool = POOLS[name]
    drawn = st.integers(0, len(pool) - 1)
    places = data.draw(st.lists(drawn, min_size=1, max_size=12))
    for _ in range(data.draw(st.integers(2, 6))):
        step = data.draw(st.sampled_from(["continue", "cut", "change", "again"]))
        if step == "continue":
            places = [*places, *data.draw(st.lists(drawn, min_size=1, max_size=3))]
        elif step == "cut" and len(places) > 1:
            places = places[: data.draw(st.integers(1, len(places) - 1))]
        elif step == "change":
            at = data.draw(st.integers(0, len(places) - 1))
            places = [*places[:at], data.draw(drawn), *places[at + 1 :]]
        body: dict[str, Any] = {"model": "m", "max_tokens": 99, "messages": [pool[place] for place in places]}
        system = data.draw(st.sampled_from(SYSTEMS)) if name == "anthropic_messages" else None
        if system is not None:
            body["system"] = system
        raw = msgspec.json.encode(body)
        with _least(1 << 40):
            expected = _outcome(name, "m", raw)
        with _least(1):
            assert _outcome(name, "m", raw) == expected
