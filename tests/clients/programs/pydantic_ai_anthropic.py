"""pydantic-ai's AnthropicModel."""

from anthropic import AsyncAnthropic
from modes import ADDRESS
from pydantic_ai.models.anthropic import AnthropicModel
from pydantic_ai.profiles import ModelProfile
from pydantic_ai.providers.anthropic import AnthropicProvider
from pydantic_ai_modes import ask_by


def open_model(name):
    client = AsyncAnthropic(base_url=ADDRESS, api_key="any", max_retries=0)
    profile = ModelProfile(supports_json_schema_output=True)
    return AnthropicModel(name, provider=AnthropicProvider(anthropic_client=client), profile=profile)


ask_by(open_model, max_tokens=4096, anthropic_thinking={"type": "enabled", "budget_tokens": 2048})
