"""LangChain's ChatOpenAI over Responses."""

from langchain_modes import ask_by
from langchain_openai import ChatOpenAI
from modes import ADDRESS


def open_model(name, **more):
    fixed = {"base_url": ADDRESS + "/v1", "api_key": "any", "max_retries": 0, "use_responses_api": True}
    return ChatOpenAI(model=name, **fixed, **more)


ask_by(open_model, reasoning={"effort": "low", "summary": "auto"})
