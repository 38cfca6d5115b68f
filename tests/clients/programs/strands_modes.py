"""Strands Agents, by the model class that its own module names. See the programs `strands_…`."""

from modes import CITY, QUESTION, WEATHER, ask, sunny
from pydantic import BaseModel
from strands import Agent, tool


class City(BaseModel):
    """A city."""

    name: str
    population: int


@tool
def weather(city: str) -> str:
    """Tell the weather."""
    return sunny(city)


def ask_by(open_model, **thinking):
    """Run the modes of a model class, which the parameters `thinking` have think."""

    def agent(model, **more):
        return Agent(model=model, callback_handler=None, retry_strategy=None, **more)

    def text_of(result):
        return "".join(block.get("text", "") for block in result.message["content"])

    def plain(model):
        return text_of(agent(open_model(model))(QUESTION))

    async def stream(model):
        events = agent(open_model(model)).stream_async(QUESTION)
        return [event["data"] async for event in events if "data" in event]

    def tools(model):
        return text_of(agent(open_model(model, **thinking), tools=[weather])(WEATHER))

    def structured(model):
        return agent(open_model(model))(CITY, structured_output_model=City).structured_output.model_dump()

    ask(plain, stream, tools, structured)
