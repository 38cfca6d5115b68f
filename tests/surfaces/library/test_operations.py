"""Vectors, token counts and the list of models, from Python."""

from __future__ import annotations

import pytest

import bardo
from bardo.adapters.config.settings import LogSettings, ProviderEntry, Settings
from bardo.simulators.embeddings import vector
from bardo.values.errors import InvalidRequest, UnknownModel
from support.any_model import Simulator

pytestmark = pytest.mark.each_python


def test_a_client_makes_vectors_counts_tokens_and_lists_models() -> None:
    with Simulator("vllm", models=["m1"]).running() as server:
        entry = ProviderEntry(id="lab", preset="vllm", base_url=server.base_url)
        with bardo.Client(Settings(providers=(entry,), log=LogSettings(enabled=False))) as client:
            made = client.embed(["a", "b"], model="lab/m1", dimensions=4)
            assert made.vectors == (vector("a", 4), vector("b", 4))
            assert (made.provider, made.dimensions, made.usage.input_tokens) == ("lab", 4, 2)
            count_tokens = client.count_tokens("What is the weather?", model="lab/m1")
            assert count_tokens.approx
            assert count_tokens.input_tokens > 5
            assert [one.what for one in count_tokens.degraded] == ["input_tokens"]
            assert [(model.id, model.provider) for model in client.models() if not model.route] == [("m1", "lab")]
            with pytest.raises(InvalidRequest, match="texts"):
                client.embed([], model="lab/m1")
            with pytest.raises(UnknownModel):
                client.embed("a", model="nobody-has-this")
