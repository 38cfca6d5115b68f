"""pydantic-ai's GoogleModel."""

from google import genai
from modes import ADDRESS
from pydantic_ai.models.google import GoogleModel
from pydantic_ai.providers.google import GoogleProvider
from pydantic_ai_modes import ask_by


def open_model(name):
    client = genai.Client(api_key="any", http_options={"base_url": ADDRESS})
    return GoogleModel(name, provider=GoogleProvider(client=client))


ask_by(open_model, google_thinking_config={"thinking_budget": 2048, "include_thoughts": True})
