"""LiteLLM's library as a client of OpenAI's Chat Completions."""

from litellm_modes import ask_by
from modes import ADDRESS

ask_by("openai", ADDRESS + "/v1", reasoning_effort="low", allowed_openai_params=["reasoning_effort"])
