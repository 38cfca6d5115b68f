"""LlamaIndex's OpenAILike, over Chat Completions."""

from llama_index.llms.openai_like import OpenAILike
from llamaindex_modes import ask_by
from modes import ADDRESS


def open_model(name, **more):
    fixed = {"api_base": ADDRESS + "/v1", "api_key": "any", "max_retries": 0, "context_window": 200_000}
    return OpenAILike(model=name, is_chat_model=True, is_function_calling_model=True, **fixed, **more)


ask_by(open_model, additional_kwargs={"reasoning_effort": "low"})
