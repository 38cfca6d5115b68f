"""Anthropic's SDK."""

import json

from anthropic import Anthropic
from modes import ADDRESS, CITY, PLACE, QUESTION, SCHEMA, WEATHER, ask, sunny

CLIENT = Anthropic(base_url=ADDRESS, api_key="any", max_retries=0)
TOOL = {"name": "weather", "description": "Tell the weather.", "input_schema": PLACE}


def fields(model, text, **further):
    return {"model": model, "max_tokens": 4096, "messages": [{"role": "user", "content": text}], **further}


def text_of(message):
    return "".join(block.text for block in message.content if block.type == "text")


def plain(model):
    return text_of(CLIENT.messages.create(**fields(model, QUESTION)))


def stream(model):
    with CLIENT.messages.stream(**fields(model, QUESTION)) as events:
        return list(events.text_stream)


def tools(model):
    asked = fields(model, WEATHER, tools=[TOOL], thinking={"type": "enabled", "budget_tokens": 2048})
    while True:
        with CLIENT.messages.stream(**asked) as events:
            message = events.get_final_message()
        calls = [block for block in message.content if block.type == "tool_use"]
        if not calls:
            return text_of(message)
        results = [{"type": "tool_result", "tool_use_id": call.id, "content": sunny(**call.input)} for call in calls]
        asked["messages"] += [
            {"role": "assistant", "content": message.content},
            {"role": "user", "content": results},
        ]


def structured(model):
    form = {"format": {"type": "json_schema", "schema": SCHEMA}}
    return json.loads(text_of(CLIENT.messages.create(**fields(model, CITY, output_config=form))))


ask(plain, stream, tools, structured)
