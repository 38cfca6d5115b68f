"""Microsoft's agent-framework, by the client class that its own module names. See the programs `agent_framework_…`."""

from typing import Annotated

from agent_framework import Agent
from modes import ADDRESS, CITY, QUESTION, WEATHER, ask, sunny
from openai import AsyncOpenAI
from pydantic import BaseModel


class City(BaseModel):
    name: str
    population: int


def weather(city: Annotated[str, "The city."]) -> str:
    """Tell the weather."""
    return sunny(city)


def ask_by(client_class, **thinking):
    """Run the modes of a client class, which the options `thinking` have think."""

    def agent(model, **more):
        openai = AsyncOpenAI(base_url=ADDRESS + "/v1", api_key="any", max_retries=0)
        return Agent(client_class(model, async_client=openai), **more)

    async def plain(model):
        return (await agent(model).run(QUESTION)).text

    async def stream(model):
        contents = [one async for update in agent(model).run(QUESTION, stream=True) for one in update.contents]
        # The last content is the whole text in place of its pieces.
        return [one.text for one in contents if one.type == "text" and one.text and one.merge_mode != "replace"]

    async def tools(model):
        return (await agent(model, tools=[weather], default_options=thinking).run(WEATHER)).text

    async def structured(model):
        return (await agent(model).run(CITY, options={"response_format": City})).value.model_dump()

    ask(plain, stream, tools, structured)
