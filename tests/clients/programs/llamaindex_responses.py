"""LlamaIndex's OpenAIResponses."""

from llama_index.llms.openai import OpenAIResponses
from llamaindex_modes import ask_by
from modes import ADDRESS


def open_model(name, **more):
    fixed = {"api_base": ADDRESS + "/v1", "api_key": "any", "max_retries": 0, "context_window": 200_000}
    return OpenAIResponses(model=name, **fixed, **more)


ask_by(open_model, reasoning_options={"effort": "low", "summary": "auto"}, include=["reasoning.encrypted_content"])
