"""An effort that a model has no field for reaches it as words of the system prompt, where the operator allows that."""

from __future__ import annotations

import json
import urllib.request
from typing import Any

import pytest

from bardo.adapters.config.settings import LogSettings, ProviderEntry, ReasoningSettings, Settings
from bardo.server.serving import BackgroundServer
from bardo.surfaces.gateway.main import gateway_of
from support.any_model import Simulator
from support.patience import PATIENCE

STEPS = "Think step by step before you answer."
DIRECTLY = "Answer directly, without explaining your reasoning."


def sent(model: str, effort: str, *, allowed: bool) -> tuple[dict[str, Any], str]:
    """Return the body that the provider got, and what the gateway reported."""
    messages = [{"role": "system", "content": "Be kind."}, {"role": "user", "content": "2 * 3"}]
    body = {"model": model, "messages": messages, "reasoning_effort": effort}
    simulator = Simulator("qwen")
    with simulator.running() as server:
        entry = ProviderEntry(id="it", preset="qwen", base_url=server.base_url, api_key_env="K", models=(model,))
        reasoning = ReasoningSettings(introspect=False, prompt_words=allowed)
        settings = Settings(providers=(entry,), log=LogSettings(enabled=False), reasoning=reasoning)
        with BackgroundServer(gateway_of(settings, {"K": "any"})) as gateway:
            headers = {"content-type": "application/json"}
            url = f"{gateway.address}/v1/chat/completions"
            request = urllib.request.Request(url, json.dumps(body).encode(), headers)
            with urllib.request.urlopen(request, timeout=PATIENCE) as answer:
                reported = answer.headers.get("x-bardo-degraded") or ""
        return [one.body for one in server.requests if one.method == "POST"][-1], reported  # type: ignore[return-value]


@pytest.mark.parametrize(
    ("effort", "words"),
    [("none", DIRECTLY), ("low", ""), ("medium", ""), ("high", STEPS), ("xhigh", STEPS), ("max", STEPS)],
)
def test_a_model_without_a_control_is_told_in_words(effort: str, words: str) -> None:
    body, reported = sent("qwen3-coder-plus", effort, allowed=True)
    said = json.dumps(body["messages"][0])
    assert (words in said, STEPS in said, DIRECTLY in said) == (True, words == STEPS, words == DIRECTLY)
    assert "Be kind." in said
    assert "reasoning_effort" not in body
    assert ("reasoning" in reported) is (effort != "none" or bool(words))


def test_no_words_are_added_unless_the_operator_allows_them() -> None:
    body, reported = sent("qwen3-coder-plus", "high", allowed=False)
    assert body["messages"][0] == {"role": "system", "content": "Be kind."}
    assert "reasoning" in reported


def test_a_model_with_a_control_is_told_by_its_field() -> None:
    body, _ = sent("qwen3-max", "high", allowed=True)
    assert STEPS not in json.dumps(body)
    assert body["enable_thinking"] is True
