"""Haystack, by the chat generator that its own module names. See the programs `haystack_…`."""

import json

from haystack.components.agents import Agent
from haystack.dataclasses import ChatMessage
from haystack.tools import create_tool_from_function
from modes import CITY, QUESTION, WEATHER, ask, sunny


def weather(city: str) -> str:
    """Tell the weather."""
    return sunny(city)


def ask_by(open_model, structured_by, **thinking):
    """Run the modes of a generator, which `structured_by` keeps to the schema, and `thinking` has think; without it no tools are run."""

    def said(text):
        return [ChatMessage.from_user(text)]

    def plain(model):
        return open_model(model).run(messages=said(QUESTION))["replies"][0].text

    def stream(model):
        pieces = []
        open_model(model, streaming_callback=lambda chunk: pieces.append(chunk.content)).run(messages=said(QUESTION))
        return [piece for piece in pieces if piece]

    def tools(model):
        generator = open_model(model, generation_kwargs=thinking)
        agent = Agent(chat_generator=generator, tools=[create_tool_from_function(weather)])
        return agent.run(messages=said(WEATHER))["last_message"].text

    def structured(model):
        generator = open_model(model, generation_kwargs=structured_by)
        return json.loads(generator.run(messages=said(CITY))["replies"][0].text)

    ask(plain, stream, tools if thinking else None, structured)
