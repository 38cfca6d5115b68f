"""AWS's own library for Bedrock: InvokeModel and InvokeModelWithResponseStream with a body of Claude's."""

import json

from bedrock_modes import CLIENT
from modes import CITY, PLACE, QUESTION, SCHEMA, WEATHER, ask, sunny

TOOL = {"name": "weather", "description": "Tell the weather.", "input_schema": PLACE}
THINKING = {"type": "enabled", "budget_tokens": 2048}


def fields(text, **further):
    messages = [{"role": "user", "content": text}]
    return {"anthropic_version": "bedrock-2023-05-31", "max_tokens": 4096, "messages": messages, **further}


def invoke(model, body):
    return json.loads(CLIENT.invoke_model(modelId=model, body=json.dumps(body))["body"].read())


def text_of(message):
    return "".join(block.get("text", "") for block in message["content"])


def plain(model):
    return text_of(invoke(model, fields(QUESTION)))


def stream(model):
    reply = CLIENT.invoke_model_with_response_stream(modelId=model, body=json.dumps(fields(QUESTION)))
    events = [json.loads(event["chunk"]["bytes"]) for event in reply["body"]]
    return [event["delta"]["text"] for event in events if event.get("delta", {}).get("type") == "text_delta"]


def tools(model):
    asked = fields(WEATHER, tools=[TOOL], thinking=THINKING)
    while True:
        message = invoke(model, asked)
        calls = [block for block in message["content"] if block["type"] == "tool_use"]
        if not calls:
            return text_of(message)
        results = [
            {"type": "tool_result", "tool_use_id": call["id"], "content": sunny(**call["input"])} for call in calls
        ]
        asked["messages"] += [
            {"role": "assistant", "content": message["content"]},
            {"role": "user", "content": results},
        ]


def structured(model):
    form = {"format": {"type": "json_schema", "schema": SCHEMA}}
    return json.loads(text_of(invoke(model, fields(CITY, output_config=form))))


ask(plain, stream, tools, structured)
