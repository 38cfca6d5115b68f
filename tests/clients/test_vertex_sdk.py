"""Google's SDK told to use Vertex AI, with a key: its paths are served, and a model of any provider answers."""

from __future__ import annotations

import pytest
from google import genai

from support.any_model import Simulator
from support.gateway import house


@pytest.mark.parametrize(("provider", "model"), [("gemini", "gemini/gemini-2.5-flash"), ("deepseek", "deepseek/m1")])
def test_the_sdk_for_vertex(provider: str, model: str) -> None:
    with (
        house([Simulator(provider)]) as running,
        genai.Client(vertexai=True, api_key="any", http_options={"base_url": running.address}) as client,
    ):
        reply = client.models.generate_content(model=model, contents="What is 27 * 43?")
        assert reply.text == "1161"
        pieces = client.models.generate_content_stream(model=model, contents="What is 27 * 43?")
        assert "".join(piece.text or "" for piece in pieces) == "1161"
        assert len(running.arrived(provider)) == 2
