"""Cohere's own library, version 2 of its chat."""

import json

from cohere import ClientV2
from modes import ADDRESS, CITY, PLACE, QUESTION, SCHEMA, WEATHER, ask, sunny

CLIENT = ClientV2(api_key="any", base_url=ADDRESS, max_retries=0)
TOOL = {"type": "function", "function": {"name": "weather", "description": "Tell the weather.", "parameters": PLACE}}
THINKING = {"type": "enabled", "token_budget": 2048}


def said(text):
    return [{"role": "user", "content": text}]


def text_of(message):
    return "".join(part.text for part in message.content or () if part.type == "text")


def plain(model):
    return text_of(CLIENT.chat(model=model, messages=said(QUESTION)).message)


def stream(model):
    events = CLIENT.chat_stream(model=model, messages=said(QUESTION))
    deltas = [event.delta.message.content for event in events if event.type == "content-delta"]
    return [delta.text for delta in deltas if delta.text]


def tools(model):
    messages = said(WEATHER)
    while True:
        message = CLIENT.chat(model=model, messages=messages, tools=[TOOL], thinking=THINKING).message
        if not message.tool_calls:
            return text_of(message)
        messages.append(message)
        for call in message.tool_calls:
            result = sunny(**json.loads(call.function.arguments))
            messages.append({"role": "tool", "tool_call_id": call.id, "content": result})


def structured(model):
    form = {"type": "json_object", "json_schema": SCHEMA}
    return json.loads(text_of(CLIENT.chat(model=model, messages=said(CITY), response_format=form).message))


ask(plain, stream, tools, structured)
