"""pydantic-ai's OpenAIChatModel."""

from modes import ADDRESS
from openai import AsyncOpenAI
from pydantic_ai.models.openai import OpenAIChatModel
from pydantic_ai.profiles.openai import OpenAIModelProfile
from pydantic_ai.providers.openai import OpenAIProvider
from pydantic_ai_modes import ask_by

PROFILE = OpenAIModelProfile(
    openai_chat_thinking_field="reasoning_content",
    openai_chat_send_back_thinking_parts="field",
    supports_json_schema_output=True,
)


def open_model(name):
    client = AsyncOpenAI(base_url=ADDRESS + "/v1", api_key="any", max_retries=0)
    return OpenAIChatModel(name, provider=OpenAIProvider(openai_client=client), profile=PROFILE)


ask_by(open_model, openai_reasoning_effort="low")
