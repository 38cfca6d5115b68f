"""LangChain's ChatOpenAI over Chat Completions."""

from langchain_modes import ask_by
from langchain_openai import ChatOpenAI
from modes import ADDRESS


def open_model(name, **more):
    return ChatOpenAI(model=name, base_url=ADDRESS + "/v1", api_key="any", max_retries=0, **more)


ask_by(open_model, reasoning_effort="low")
