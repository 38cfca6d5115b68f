"""LiteLLM's library as a client of Google's API."""

from litellm_modes import ask_by
from modes import ADDRESS

ask_by("gemini", ADDRESS + "/v1beta", thinking={"type": "enabled", "budget_tokens": 2048})
