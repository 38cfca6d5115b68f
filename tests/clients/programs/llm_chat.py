"""llm over Chat Completions, as its own commands ask."""

import json

from llm.default_plugins.openai_models import Chat
from modes import ADDRESS, CITY, QUESTION, SCHEMA, WEATHER, ask, sunny


def opened(name):
    model = Chat(
        name, model_name=name, api_base=ADDRESS + "/v1", reasoning=True, supports_schema=True, supports_tools=True
    )
    model.key = "any"
    return model


def plain(model):
    return opened(model).prompt(QUESTION, stream=False).text()


def stream(model):
    return [piece for piece in opened(model).prompt(QUESTION) if piece]


def weather(city: str) -> str:
    """Tell the weather."""
    return sunny(city)


def tools(model):
    return opened(model).chain(WEATHER, tools=[weather], options={"reasoning_effort": "low"}).text()


def structured(model):
    return json.loads(opened(model).prompt(CITY, schema=SCHEMA, stream=False).text())


ask(plain, stream, tools, structured)
