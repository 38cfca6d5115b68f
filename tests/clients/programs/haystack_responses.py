"""Haystack's OpenAIResponsesChatGenerator."""

from haystack.components.generators.chat import OpenAIResponsesChatGenerator
from haystack.utils import Secret
from haystack_modes import ask_by
from modes import ADDRESS, SCHEMA


def open_model(name, **more):
    return OpenAIResponsesChatGenerator(
        api_key=Secret.from_token("any"), model=name, api_base_url=ADDRESS + "/v1", max_retries=0, **more
    )


FORMAT = {"type": "json_schema", "name": "city", "strict": True, "schema": SCHEMA}
ask_by(
    open_model,
    {"text": {"format": FORMAT}},
    reasoning={"effort": "low", "summary": "auto"},
    include=["reasoning.encrypted_content"],
    store=False,
)
