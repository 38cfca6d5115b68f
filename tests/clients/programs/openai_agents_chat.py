"""OpenAI's Agents SDK over Chat Completions."""

from agents import OpenAIChatCompletionsModel
from openai.types.shared import Reasoning
from openai_agents_modes import ask_by

ask_by(OpenAIChatCompletionsModel, reasoning=Reasoning(effort="low"))
