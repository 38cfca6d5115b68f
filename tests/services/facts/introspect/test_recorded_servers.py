"""Real answers of a llama-server, read: they lie beside the project, and are skipped where they do not."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from bardo.catalog.models import Control
from bardo.services.facts.introspect.live import LiveFacts
from bardo.services.facts.introspect.readers import read_llama_server

RECORDED = Path(__file__).resolve().parents[5] / "shared" / "introspection" / "llama-server"
RENDERINGS = {
    "unsaid": "default",
    "on": "enable_thinking_true",
    "off": "enable_thinking_false",
    "low": "reasoning_effort_low",
}
MODELS = sorted(folder.name for folder in RECORDED.iterdir()) if RECORDED.is_dir() else []
pytestmark = pytest.mark.skipif(not MODELS, reason="no recorded answers beside the project")

SWITCHED: tuple[Control, ...] = ("budget", "toggle")
# model: control, whether it thinks unasked, whether it can be off, whether the prompt opens the thinking
WANTED: dict[str, tuple[tuple[Control, ...] | None, str | None, bool | None, bool]] = {
    "Apertus-8B-Instruct": (SWITCHED, "off", True, False),
    "ByteDance-Seed-OSS": (None, None, None, False),
    "GLM-4.6": (SWITCHED, "on", True, False),
    "GLM-4.7-Flash": (SWITCHED, "on", True, True),
    "HuggingFaceTB-SmolLM3-3B": (SWITCHED, "on", True, False),
    "Kimi-K2-Thinking": (None, None, None, False),
    "MiniMax-M2": (("budget",), "on", False, True),
    "NVIDIA-Nemotron-Nano-v2": (("budget",), "on", None, True),
    "Qwen-Qwen3-0.6B": (SWITCHED, "on", True, False),
    "Qwen3.5-4B": (SWITCHED, "on", True, True),
    "deepseek-ai-DeepSeek-V3.1": (SWITCHED, "on", True, True),
    "deepseek-ai-DeepSeek-V4": (("effort", *SWITCHED), "on", True, True),
    "google-gemma-4-31B-it": (SWITCHED, "on", True, False),
    "ibm-granite-granite-3.3-2B-Instruct": (None, None, None, False),
    "llama-cpp-deepseek-r1": (("budget",), "on", False, True),
    "meta-llama-Llama-3.1-8B-Instruct": (None, None, None, False),
    "mistralai-Ministral-3-14B-Reasoning-2512": (None, None, None, False),
    "openai-gpt-oss-120b": (("effort",), None, None, False),
}


def recorded(model: str) -> dict[str, Any]:
    files = {"props": "props", **{name: f"apply-template.{said}" for name, said in RENDERINGS.items()}}
    return {name: json.loads((RECORDED / model / f"{file}.json").read_text())["body"] for name, file in files.items()}


def facts(model: str) -> LiveFacts:
    return read_llama_server(recorded(model), model)[model]


@pytest.mark.parametrize("model", MODELS)
def test_a_real_server_is_read(model: str) -> None:
    if model not in WANTED:
        pytest.skip("recorded after this table was written")
    said = facts(model)
    assert (said.control, said.omit, said.off, said.starts_inside) == WANTED[model]
    assert said.context == 2048


def test_the_level_a_template_sets_is_the_default() -> None:
    if "openai-gpt-oss-120b" not in MODELS:
        pytest.skip("not recorded")
    said = facts("openai-gpt-oss-120b")
    # The template takes any word, so the levels are left to the catalog.
    assert (said.default_effort, said.efforts) == ("medium", None)
