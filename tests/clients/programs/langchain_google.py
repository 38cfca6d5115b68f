"""LangChain's ChatGoogleGenerativeAI."""

from langchain_google_genai import ChatGoogleGenerativeAI
from langchain_modes import ask_by
from modes import ADDRESS


def open_model(name, **more):
    return ChatGoogleGenerativeAI(model=name, base_url=ADDRESS, api_key="any", max_retries=1, **more)


ask_by(open_model, thinking_budget=2048, include_thoughts=True)
