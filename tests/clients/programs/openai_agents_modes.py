"""OpenAI's Agents SDK, by the model class that its own module names. See the programs `openai_agents_…`."""

from agents import Agent, ModelSettings, Runner, function_tool, set_tracing_disabled
from modes import ADDRESS, CITY, QUESTION, WEATHER, ask, sunny
from openai import AsyncOpenAI
from pydantic import BaseModel

set_tracing_disabled(True)


class City(BaseModel):
    name: str
    population: int


@function_tool
def weather(city: str) -> str:
    """Tell the weather."""
    return sunny(city)


def ask_by(model_class, **thinking):
    """Run the modes of a model class, which `thinking` has think."""

    def agent(model, **more):
        client = AsyncOpenAI(base_url=ADDRESS + "/v1", api_key="any", max_retries=0)
        return Agent(name="one", model=model_class(model=model, openai_client=client), **more)

    async def plain(model):
        return (await Runner.run(agent(model), QUESTION)).final_output

    async def stream(model):
        events = Runner.run_streamed(agent(model), QUESTION).stream_events()
        raw = [event.data async for event in events if event.type == "raw_response_event"]
        return [one.delta for one in raw if one.type == "response.output_text.delta"]

    async def tools(model):
        asked = agent(model, model_settings=ModelSettings(**thinking), tools=[weather])
        streamed = Runner.run_streamed(asked, WEATHER)
        async for _ in streamed.stream_events():
            pass
        return streamed.final_output

    async def structured(model):
        return (await Runner.run(agent(model, output_type=City), CITY)).final_output.model_dump()

    ask(plain, stream, tools, structured)
