"""LangChain's ChatAnthropic."""

from langchain_anthropic import ChatAnthropic
from langchain_modes import ask_by
from modes import ADDRESS


def open_model(name, **more):
    return ChatAnthropic(model=name, base_url=ADDRESS, api_key="any", max_tokens=4096, max_retries=0, **more)


ask_by(open_model, thinking={"type": "enabled", "budget_tokens": 2048})
