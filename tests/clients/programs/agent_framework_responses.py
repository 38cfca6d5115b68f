"""Microsoft's agent-framework with OpenAIChatClient, over Responses. The server keeps its conversation, as is the default."""

from agent_framework.openai import OpenAIChatClient
from agent_framework_modes import ask_by

ask_by(OpenAIChatClient, reasoning={"effort": "low", "summary": "auto"})
