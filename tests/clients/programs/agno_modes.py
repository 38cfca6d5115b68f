"""Agno, by the model class that its own module names. See the programs `agno_…`."""

from agno.agent import Agent
from agno.models.message import Message
from modes import CITY, QUESTION, WEATHER, ask, sunny
from pydantic import BaseModel


class City(BaseModel):
    name: str
    population: int


def weather(city: str) -> str:
    """Tell the weather."""
    return sunny(city)


def ask_by(open_model, **thinking):
    """Run the modes of a model class, which `thinking` has think."""

    def agent(model, **more):
        return Agent(model=model, telemetry=False, **more)

    def plain(model):
        return agent(open_model(model)).run(QUESTION).content

    def stream(model):
        events = agent(open_model(model)).run(QUESTION, stream=True)
        return [event.content for event in events if event.content]

    def tools(model):
        return agent(open_model(model, **thinking), tools=[weather]).run(WEATHER).content

    def structured(model):
        return agent(open_model(model), output_schema=City).run(CITY).content.model_dump()

    def error(model):
        """Ask the model itself: an agent tells a refusal as its answer."""
        return open_model(model).response([Message(role="user", content=QUESTION)]).content

    ask(plain, stream, tools, structured, error)
