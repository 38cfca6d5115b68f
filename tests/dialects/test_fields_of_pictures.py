"""What nobody knows of a picture or a document comes back in its own dialect, wherever it stands, and is reported to others."""

from __future__ import annotations

import json
from typing import Any

import pytest

from bardo.catalog.rows import DialectName, ProviderRow
from bardo.dialects import dialect
from bardo.values.wire import Arrival
from dialects.told import with_unheard_of

PDF = {"media_type": "application/pdf", "data": "JVBERg=="}
PARTS: dict[DialectName, list[Any]] = {
    "openai_chat": [{"type": "image_url", "image_url": {"url": "https://a.example/b.png", "detail": "low"}}],
    "cohere": [{"type": "image_url", "image_url": {"url": "https://a.example/b.png", "detail": "low"}}],
    "anthropic_messages": [
        {"type": "image", "source": {"type": "url", "url": "https://a.example/b.png"}},
        {"type": "image", "source": {"type": "base64", "media_type": "image/png", "data": "iVBORw0KGgo="}},
        {"type": "document", "source": {"type": "base64", **PDF}},
        {"type": "document", "source": {"type": "text", "media_type": "text/plain", "data": "a"}},
        {"type": "document", "source": {"type": "url", "url": "https://a.example/b.pdf"}},
    ],
}
CASES = [(spoken, part, odd) for spoken, parts in PARTS.items() for part in parts for _, odd in with_unheard_of(part)]


@pytest.mark.parametrize(("spoken", "part", "odd"), CASES)
def test_what_nobody_knows_of_a_picture_comes_back_and_is_reported_to_others(
    spoken: DialectName, part: Any, odd: Any
) -> None:
    body = {"model": "m", "max_tokens": 9, "messages": [{"role": "user", "content": [odd]}]}
    request = dialect(spoken).decode_request(json.dumps(body).encode(), Arrival())
    for target in PARTS:
        wire = dialect(target).encode_request(request, ProviderRow(id="lab", name="Lab", dialect=target))
        content = json.loads(wire.body)["messages"][0]["content"]
        assert (
            content == [odd]
            if target == spoken
            else {"unheard_of", "source", "image_url", "document"}
            & {name for one in wire.degraded for name in one.what.split(".")}
        )
