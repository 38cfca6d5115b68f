"""smolagents over Chat Completions. Its agents ask by a tool `final_answer`, so a loop has one call more."""

import json

from modes import ADDRESS, CITY, QUESTION, SCHEMA, WEATHER, ask, sunny
from smolagents import OpenAIModel, ToolCallingAgent, tool

FORMAT = {"type": "json_schema", "json_schema": {"name": "city", "strict": True, "schema": SCHEMA}}


def opened(model, **more):
    return OpenAIModel(
        model_id=model, api_base=ADDRESS + "/v1", api_key="any", client_kwargs={"max_retries": 0}, retry=False, **more
    )


def said(text):
    return [{"role": "user", "content": [{"type": "text", "text": text}]}]


@tool
def weather(city: str) -> str:
    """Tell the weather.

    Args:
        city: The city.
    """
    return sunny(city)


def plain(model):
    return opened(model).generate(said(QUESTION)).content


def stream(model):
    return [piece.content for piece in opened(model).generate_stream(said(QUESTION)) if piece.content]


def tools(model):
    agent = ToolCallingAgent(tools=[weather], model=opened(model, reasoning_effort="low"), verbosity_level=0)
    return agent.run(WEATHER)


def structured(model):
    return json.loads(opened(model).generate(said(CITY), response_format=FORMAT).content)


ask(plain, stream, tools, structured)
