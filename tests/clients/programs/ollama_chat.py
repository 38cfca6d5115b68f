"""Ollama's own library."""

import json

from modes import ADDRESS, CITY, PLACE, QUESTION, SCHEMA, WEATHER, ask, sunny
from ollama import Client, Message

CLIENT = Client(ADDRESS)
TOOL = {"type": "function", "function": {"name": "weather", "description": "Tell the weather.", "parameters": PLACE}}


def said(text):
    return [Message(role="user", content=text)]


def plain(model):
    return CLIENT.chat(model, said(QUESTION)).message.content


def stream(model):
    pieces = CLIENT.chat(model, said(QUESTION), stream=True)
    return [piece.message.content for piece in pieces if piece.message.content]


def tools(model):
    messages = said(WEATHER)
    while True:
        pieces = [one.message for one in CLIENT.chat(model, messages, tools=[TOOL], think="low", stream=True)]
        text = "".join(piece.content or "" for piece in pieces)
        calls = [call for piece in pieces for call in piece.tool_calls or ()]
        if not calls:
            return text
        thinking = "".join(piece.thinking or "" for piece in pieces)
        messages.append(Message(role="assistant", content=text, thinking=thinking, tool_calls=calls))
        for call in calls:
            result = sunny(**call.function.arguments)
            messages.append(Message(role="tool", tool_name=call.function.name, content=result))


def structured(model):
    return json.loads(CLIENT.chat(model, said(CITY), format=SCHEMA).message.content)


ask(plain, stream, tools, structured)
