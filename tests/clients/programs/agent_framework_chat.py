"""Microsoft's agent-framework with OpenAIChatCompletionClient."""

from agent_framework.openai import OpenAIChatCompletionClient
from agent_framework_modes import ask_by

ask_by(OpenAIChatCompletionClient, reasoning_effort="low")
