"""Strands Agents with OpenAIResponsesModel."""

from modes import ADDRESS
from strands.models.openai_responses import OpenAIResponsesModel
from strands_modes import ask_by


def open_model(name, **params):
    client = {"base_url": ADDRESS + "/v1", "api_key": "any", "max_retries": 0}
    return OpenAIResponsesModel(client_args=client, model_id=name, params=params)


ask_by(open_model, reasoning={"effort": "low", "summary": "auto"})
