"""Loops with a tool by OpenAI's Agents SDK, whole and streamed, over Responses. Arguments: the gateway's address, and models."""

import asyncio
import sys

from agents import (
    Agent,
    ModelSettings,
    OpenAIResponsesModel,
    Runner,
    function_tool,
    set_tracing_disabled,
)
from openai import AsyncOpenAI
from openai.types.shared import Reasoning

set_tracing_disabled(True)


@function_tool
def weather(city: str) -> str:
    """Tell the weather."""
    return "sunny in " + city


async def main():
    address, *models = sys.argv[1:]
    client = AsyncOpenAI(base_url=address + "/v1", api_key="any")
    for name in models:
        agent = Agent(
            name="one",
            model=OpenAIResponsesModel(model=name, openai_client=client),
            model_settings=ModelSettings(
                reasoning=Reasoning(effort="low", summary="auto"),
                response_include=["reasoning.encrypted_content"],
                store=False,
            ),
            tools=[weather],
        )
        print((await Runner.run(agent, "How is the weather in Paris?")).final_output)
        streamed = Runner.run_streamed(agent, "How is the weather in Paris?")
        async for _ in streamed.stream_events():
            pass
        print(streamed.final_output)


asyncio.run(main())
