"""LiteLLM's library as a client of Anthropic's Messages."""

from litellm_modes import ask_by
from modes import ADDRESS

ask_by("anthropic", ADDRESS, thinking={"type": "enabled", "budget_tokens": 2048}, max_tokens=4096)
