"""Agno with Gemini."""

from agno.models.google import Gemini
from agno_modes import ask_by
from modes import ADDRESS


def open_model(name, **more):
    return Gemini(id=name, api_key="any", client_params={"http_options": {"base_url": ADDRESS}}, **more)


ask_by(open_model, thinking_budget=2048, include_thoughts=True)
