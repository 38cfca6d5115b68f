"""Loops with a tool by pydantic-ai, whole and streamed, over Responses. Arguments: the gateway's address, and models."""

import asyncio
import sys

from pydantic_ai import Agent
from pydantic_ai.models.openai import OpenAIResponsesModel, OpenAIResponsesModelSettings
from pydantic_ai.profiles.openai import OpenAIModelProfile
from pydantic_ai.providers.openai import OpenAIProvider

address, *models = sys.argv[1:]


async def read(context, events):
    async for _ in events:
        pass


async def main():
    for name in models:
        provider = OpenAIProvider(base_url=address + "/v1", api_key="any")
        settings = OpenAIResponsesModelSettings(openai_reasoning_effort="low", openai_reasoning_summary="auto")
        # Without it, thinking of a model that is not known to be OpenAI's goes back as text in `<think>` tags.
        profile = OpenAIModelProfile(openai_supports_encrypted_reasoning_content=True, openai_supports_reasoning=True)
        model = OpenAIResponsesModel(name, provider=provider, profile=profile)
        agent = Agent(model, model_settings=settings)

        @agent.tool_plain
        def weather(city: str) -> str:
            """Tell the weather."""
            return "sunny in " + city

        print((await agent.run("How is the weather in Paris?")).output)
        # `run_stream` takes the first text for the answer; with a handler the run goes on to its end.
        print((await agent.run("How is the weather in Paris?", event_stream_handler=read)).output)


asyncio.run(main())
