"""OpenAI's SDK over Chat Completions."""

import json

from modes import ADDRESS, CITY, PLACE, QUESTION, SCHEMA, WEATHER, ask, sunny
from openai import OpenAI

CLIENT = OpenAI(base_url=ADDRESS + "/v1", api_key="any", max_retries=0)
TOOL = {"type": "function", "function": {"name": "weather", "description": "Tell the weather.", "parameters": PLACE}}
FORMAT = {"type": "json_schema", "json_schema": {"name": "city", "strict": True, "schema": SCHEMA}}


def said(text):
    return [{"role": "user", "content": text}]


def plain(model):
    return CLIENT.chat.completions.create(model=model, messages=said(QUESTION)).choices[0].message.content


def stream(model):
    pieces = CLIENT.chat.completions.create(model=model, messages=said(QUESTION), stream=True)
    return [piece.choices[0].delta.content for piece in pieces if piece.choices and piece.choices[0].delta.content]


def tools(model):
    messages = said(WEATHER)
    while True:
        with CLIENT.chat.completions.stream(
            model=model, messages=messages, tools=[TOOL], reasoning_effort="low"
        ) as pieces:
            message = pieces.get_final_completion().choices[0].message
        if not message.tool_calls:
            return message.content
        messages.append(message)
        for call in message.tool_calls:
            result = sunny(**json.loads(call.function.arguments))
            messages.append({"role": "tool", "tool_call_id": call.id, "content": result})


def structured(model):
    reply = CLIENT.chat.completions.create(model=model, messages=said(CITY), response_format=FORMAT)
    return json.loads(reply.choices[0].message.content)


ask(plain, stream, tools, structured)
