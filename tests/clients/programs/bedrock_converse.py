"""AWS's own library for Bedrock: Converse and ConverseStream."""

import json

from bedrock_modes import CLIENT
from modes import CITY, PLACE, QUESTION, SCHEMA, WEATHER, ask, sunny

TOOL = {"toolSpec": {"name": "weather", "description": "Tell the weather.", "inputSchema": {"json": PLACE}}}
THINKING = {"thinking": {"type": "enabled", "budget_tokens": 2048}}


def fields(model, text, **further):
    messages = [{"role": "user", "content": [{"text": text}]}]
    return {"modelId": model, "messages": messages, "inferenceConfig": {"maxTokens": 4096}, **further}


def text_of(message):
    return "".join(block.get("text", "") for block in message["content"])


def plain(model):
    return text_of(CLIENT.converse(**fields(model, QUESTION))["output"]["message"])


def stream(model):
    events = CLIENT.converse_stream(**fields(model, QUESTION))["stream"]
    deltas = [event["contentBlockDelta"]["delta"] for event in events if "contentBlockDelta" in event]
    return [delta["text"] for delta in deltas if delta.get("text")]


def tools(model):
    asked = fields(model, WEATHER, toolConfig={"tools": [TOOL]}, additionalModelRequestFields=THINKING)
    while True:
        message = CLIENT.converse(**asked)["output"]["message"]
        calls = [block["toolUse"] for block in message["content"] if "toolUse" in block]
        if not calls:
            return text_of(message)
        results = [
            {"toolResult": {"toolUseId": call["toolUseId"], "content": [{"text": sunny(**call["input"])}]}}
            for call in calls
        ]
        asked["messages"] += [message, {"role": "user", "content": results}]


def structured(model):
    form = {"structure": {"jsonSchema": {"schema": json.dumps(SCHEMA), "name": "city"}}, "type": "json_schema"}
    reply = CLIENT.converse(**fields(model, CITY, outputConfig={"textFormat": form}))
    return json.loads(text_of(reply["output"]["message"]))


ask(plain, stream, tools, structured)
