"""Strands Agents with AnthropicModel."""

from modes import ADDRESS
from strands.models.anthropic import AnthropicModel
from strands_modes import ask_by


def open_model(name, **params):
    client = {"base_url": ADDRESS, "api_key": "any", "max_retries": 0}
    return AnthropicModel(client_args=client, model_id=name, max_tokens=4096, params=params)


ask_by(open_model, thinking={"type": "enabled", "budget_tokens": 2048})
