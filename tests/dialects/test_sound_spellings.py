"""Sound of a Gemini client is read in each of the spellings that Google's own servers take."""

from __future__ import annotations

import json
from typing import Any

import pytest

from bardo.dialects import dialect
from bardo.planning.planner import plan
from bardo.values.wire import Arrival
from planning.test_plan_cache import target

SPELLINGS: dict[str, Any] = {
    "camel": {"inlineData": {"mimeType": "audio/wav", "data": "-_8="}},
    "snake": {"inline_data": {"mime_type": "audio/wav", "data": "-_8"}},
    "mixed": {"inlineData": {"mime_type": "audio/wav", "data": "+/8="}},
}


@pytest.mark.parametrize("name", SPELLINGS)
def test_sound_reaches_chat_in_plain_base64_however_it_is_spelled(name: str) -> None:
    body = {"contents": [{"role": "user", "parts": [{"text": "What is said?"}, SPELLINGS[name]]}]}
    request = dialect("gemini").decode_request(json.dumps(body).encode(), Arrival(model="gpt-audio"))
    sent = json.loads(plan(request, target("openai-chat", "gpt-audio")).wire.body)
    part = {"type": "input_audio", "input_audio": {"data": "+/8=", "format": "wav"}}
    assert part in sent["messages"][-1]["content"]
