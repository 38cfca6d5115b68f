"""Agno with OpenAIResponses."""

from agno.models.openai import OpenAIResponses
from agno_modes import ask_by
from modes import ADDRESS


def open_model(name, **more):
    return OpenAIResponses(id=name, base_url=ADDRESS + "/v1", api_key="any", max_retries=0, **more)


ask_by(open_model, reasoning_effort="low", reasoning_summary="auto")
