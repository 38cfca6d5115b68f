"""BlockRun, Bankr, oMLX and lucebox behind a live gateway: either of their dialects, by the official SDKs."""

from __future__ import annotations

import anthropic
import openai
import pytest

from support.any_model import Simulator
from support.gateway import house

MODELS = {
    "blockrun": ("deepseek/deepseek-chat", "anthropic/claude-haiku-4.5"),
    "bankr": ("gemini-3-flash", "claude-haiku-4.5"),
    "omlx": ("Qwen3.5-122B-A10B-4bit", "Qwen3.5-122B-A10B-4bit"),
    "lucebox": ("dflash", "dflash"),
}


@pytest.mark.parametrize("preset", MODELS)
def test_both_sdks_are_answered(preset: str) -> None:
    chat, messages = MODELS[preset]
    with house([Simulator(preset)]) as running:
        with openai.OpenAI(base_url=f"{running.address}/v1", api_key="any") as asked:
            said = asked.chat.completions.create(
                model=f"{preset}/{chat}", messages=[{"role": "user", "content": "Hello"}]
            )
            assert said.choices[0].message.content
        with anthropic.Anthropic(base_url=running.address, api_key="any") as asked_too:
            answer = asked_too.messages.create(
                model=f"{preset}/{messages}", max_tokens=100, messages=[{"role": "user", "content": "Hello"}]
            )
            assert any(block.type == "text" and block.text for block in answer.content)
        paths = [incoming.path for incoming in running.arrived(preset)]
    # A path that the simulator lacked would be asked once, and then the other.
    assert [path.removeprefix("/v1") for path in paths] == ["/chat/completions", "/messages"]
