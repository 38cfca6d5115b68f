"""pydantic-ai, by the model class that its own module names. See the programs `pydantic_ai_…`."""

from modes import CITY, QUESTION, WEATHER, ask, sunny
from pydantic import BaseModel
from pydantic_ai import Agent, NativeOutput


class City(BaseModel):
    name: str
    population: int


async def _read(context, events):
    async for _ in events:
        pass


def ask_by(open_model, **thinking):
    """Run the modes of a model class, which `thinking` has think."""

    async def plain(model):
        return (await Agent(open_model(model)).run(QUESTION)).output

    async def stream(model):
        async with Agent(open_model(model)).run_stream(QUESTION) as reply:
            return [piece async for piece in reply.stream_text(delta=True, debounce_by=None)]

    async def tools(model):
        agent = Agent(open_model(model), model_settings=thinking)

        @agent.tool_plain
        def weather(city: str) -> str:
            """Tell the weather."""
            return sunny(city)

        # `run_stream` takes the first text for the answer; with a handler the run goes on to its end.
        return (await agent.run(WEATHER, event_stream_handler=_read)).output

    async def structured(model):
        return (await Agent(open_model(model), output_type=NativeOutput(City)).run(CITY)).output.model_dump()

    ask(plain, stream, tools, structured)
