"""Agno with Claude."""

from agno.models.anthropic import Claude
from agno_modes import ask_by
from modes import ADDRESS


def open_model(name, **more):
    return Claude(id=name, api_key="any", client_params={"base_url": ADDRESS, "max_retries": 0}, **more)


ask_by(open_model, thinking={"type": "enabled", "budget_tokens": 2048})
