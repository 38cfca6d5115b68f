"""Haystack's AnthropicChatGenerator, which finds the address in a variable."""

import os

from haystack.utils import Secret
from haystack_integrations.components.generators.anthropic import AnthropicChatGenerator
from haystack_modes import ask_by
from modes import ADDRESS, SCHEMA

os.environ["ANTHROPIC_BASE_URL"] = ADDRESS


def open_model(name, **more):
    return AnthropicChatGenerator(Secret.from_token("any"), model=name, max_retries=0, **more)


ask_by(
    open_model,
    {"output_config": {"format": {"type": "json_schema", "schema": SCHEMA}}},
    thinking={"type": "enabled", "budget_tokens": 2048},
)
