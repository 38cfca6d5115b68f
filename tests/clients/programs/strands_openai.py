"""Strands Agents with OpenAIModel, over Chat Completions."""

from modes import ADDRESS
from strands.models.openai import OpenAIModel
from strands_modes import ask_by


def open_model(name, **params):
    client = {"base_url": ADDRESS + "/v1", "api_key": "any", "max_retries": 0}
    return OpenAIModel(client_args=client, model_id=name, params=params)


ask_by(open_model, reasoning_effort="low")
