"""What servers say of features beside thinking, and that routing takes their word before the catalog's rows."""

from __future__ import annotations

from typing import Any

import msgspec
import pytest

from bardo.catalog.features import features
from bardo.catalog.load import builtin
from bardo.planning.knowledge import candidate_of
from bardo.planning.route import Provider, Target
from bardo.services.facts.introspect.adapters import builtin_adapters
from bardo.services.facts.introspect.live import LiveFacts
from bardo.services.facts.model_facts import ModelFacts

SAYS: dict[str, tuple[str, dict[str, Any], dict[str, bool]]] = {
    "openrouter": (
        "openrouter",
        {
            "models": {
                "data": [
                    {
                        "id": "m",
                        "supported_parameters": ["tools", "temperature"],
                        "architecture": {"input_modalities": ["text", "image"]},
                    }
                ]
            }
        },
        {"tool_calling": True, "structured_outputs": False, "vision": True},
    ),
    "openrouter-silent": ("openrouter", {"models": {"data": [{"id": "m"}]}}, {}),
    "anthropic": (
        "anthropic",
        {
            "models": {
                "data": [
                    {
                        "id": "m",
                        "capabilities": {
                            "thinking": {"supported": False},
                            "citations": {"supported": True},
                            "image_input": {"supported": False},
                        },
                    }
                ]
            }
        },
        {"citations": True, "vision": False},
    ),
    "venice": (
        "venice",
        {
            "models": {
                "data": [
                    {"id": "m", "model_spec": {"capabilities": {"supportsVision": True, "supportsWebSearch": False}}}
                ]
            }
        },
        {"vision": True, "web_search": False},
    ),
    "mistral": (
        "mistral",
        {"models": {"data": [{"id": "m", "capabilities": {"function_calling": True, "vision": False}}]}},
        {"tool_calling": True, "vision": False},
    ),
    "lmstudio": (
        "lmstudio",
        {"models": {"models": [{"key": "m", "capabilities": {"vision": True, "trained_for_tool_use": False}}]}},
        {"tool_calling": False, "vision": True},
    ),
    "ollama": ("ollama", {"show": {"capabilities": ["completion", "tools"]}}, {"tool_calling": True, "vision": False}),
    "malformed": (
        "venice",
        {"models": {"data": [{"id": "m", "model_spec": {"capabilities": ["supportsVision"]}}]}},
        {},
    ),
}


@pytest.mark.parametrize("case", SAYS)
def test_a_server_says_what_a_model_can_do(case: str) -> None:
    preset, answers, expected = SAYS[case]
    assert dict(builtin_adapters()[preset].read(answers, "m")["m"].features) == expected


def test_rows_name_features_that_there_are() -> None:
    said = {one.name for adapter in builtin_adapters().values() for place in adapter.features for one in place.say}
    assert said
    assert said <= {*features().names}


def test_the_servers_word_goes_before_the_rows() -> None:
    row = builtin().provider("ollama")
    assert row is not None
    target = Target(provider=Provider(id="ollama", row=row, base_url=row.base_url), model="gemma3:4b")
    assert "vision" in candidate_of(target).features
    known = ModelFacts().of(target)
    live = LiveFacts(features=(("vision", False), ("tool_calling", True)))
    found = candidate_of(target, msgspec.structs.replace(known, features=dict(live.features))).features
    assert "vision" not in found
    assert "tool_calling" in found
