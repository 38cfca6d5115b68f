"""pydantic-ai's OpenAIResponsesModel."""

from modes import ADDRESS
from openai import AsyncOpenAI
from pydantic_ai.models.openai import OpenAIResponsesModel
from pydantic_ai.profiles.openai import OpenAIModelProfile
from pydantic_ai.providers.openai import OpenAIProvider
from pydantic_ai_modes import ask_by

# Without it, thinking of a model that is not known to be OpenAI's goes back as text in `<think>` tags.
PROFILE = OpenAIModelProfile(
    openai_supports_encrypted_reasoning_content=True,
    openai_supports_reasoning=True,
    supports_json_schema_output=True,
)


def open_model(name):
    client = AsyncOpenAI(base_url=ADDRESS + "/v1", api_key="any", max_retries=0)
    return OpenAIResponsesModel(name, provider=OpenAIProvider(openai_client=client), profile=PROFILE)


ask_by(open_model, openai_reasoning_effort="low", openai_reasoning_summary="auto")
