"""OpenAI's SDK over Responses."""

import json

from modes import ADDRESS, CITY, PLACE, QUESTION, SCHEMA, WEATHER, ask, sunny
from openai import OpenAI

CLIENT = OpenAI(base_url=ADDRESS + "/v1", api_key="any", max_retries=0)
TOOL = {"type": "function", "name": "weather", "description": "Tell the weather.", "parameters": PLACE, "strict": True}
FORMAT = {"type": "json_schema", "name": "city", "strict": True, "schema": SCHEMA}


def plain(model):
    return CLIENT.responses.create(model=model, input=QUESTION).output_text


def stream(model):
    events = CLIENT.responses.create(model=model, input=QUESTION, stream=True)
    return [event.delta for event in events if event.type == "response.output_text.delta"]


def tools(model):
    items = [{"role": "user", "content": WEATHER}]
    while True:
        with CLIENT.responses.stream(
            model=model,
            input=items,
            tools=[TOOL],
            reasoning={"effort": "low", "summary": "auto"},
            include=["reasoning.encrypted_content"],
            store=False,
        ) as events:
            reply = events.get_final_response()
        calls = [item for item in reply.output if item.type == "function_call"]
        if not calls:
            return reply.output_text
        items += reply.output
        for call in calls:
            result = sunny(**json.loads(call.arguments))
            items.append({"type": "function_call_output", "call_id": call.call_id, "output": result})


def structured(model):
    return json.loads(CLIENT.responses.create(model=model, input=CITY, text={"format": FORMAT}).output_text)


ask(plain, stream, tools, structured)
