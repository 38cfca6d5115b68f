"""Haystack's GoogleGenAIChatGenerator, which finds the address in a variable."""

import os

from haystack.utils import Secret
from haystack_integrations.components.generators.google_genai import GoogleGenAIChatGenerator
from haystack_modes import ask_by
from modes import ADDRESS, SCHEMA

os.environ["GOOGLE_GEMINI_BASE_URL"] = ADDRESS


def open_model(name, **more):
    return GoogleGenAIChatGenerator(api_key=Secret.from_token("any"), model=name, **more)


ask_by(open_model, {"response_mime_type": "application/json", "response_json_schema": SCHEMA}, thinking_budget=2000)
