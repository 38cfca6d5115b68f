"""OpenAI's Agents SDK over Responses."""

from agents import OpenAIResponsesModel
from openai.types.shared import Reasoning
from openai_agents_modes import ask_by

ask_by(
    OpenAIResponsesModel,
    reasoning=Reasoning(effort="low", summary="auto"),
    response_include=["reasoning.encrypted_content"],
    store=False,
)
