"""Google's SDK."""

import json

from google import genai
from google.genai import types
from modes import ADDRESS, CITY, PLACE, QUESTION, SCHEMA, WEATHER, ask, sunny

CLIENT = genai.Client(api_key="any", http_options={"base_url": ADDRESS})
TOOL = {"name": "weather", "description": "Tell the weather.", "parameters_json_schema": PLACE}


def plain(model):
    return CLIENT.models.generate_content(model=model, contents=QUESTION).text


def stream(model):
    pieces = CLIENT.models.generate_content_stream(model=model, contents=QUESTION)
    return [piece.text for piece in pieces if piece.text]


def tools(model):
    contents = [types.Content(role="user", parts=[types.Part(text=WEATHER)])]
    thinking = types.ThinkingConfig(thinking_budget=2048, include_thoughts=True)
    config = types.GenerateContentConfig(tools=[{"function_declarations": [TOOL]}], thinking_config=thinking)
    while True:
        pieces = list(CLIENT.models.generate_content_stream(model=model, contents=contents, config=config))
        parts = [
            part
            for piece in pieces
            if piece.candidates and piece.candidates[0].content
            for part in piece.candidates[0].content.parts or []
        ]
        calls = [part.function_call for part in parts if part.function_call]
        if not calls:
            return "".join(part.text or "" for part in parts if not part.thought)
        results = [
            types.Part(
                function_response=types.FunctionResponse(
                    id=call.id, name=call.name, response={"result": sunny(**call.args)}
                )
            )
            for call in calls
        ]
        contents += [types.Content(role="model", parts=parts), types.Content(role="user", parts=results)]


def structured(model):
    config = types.GenerateContentConfig(response_mime_type="application/json", response_json_schema=SCHEMA)
    return json.loads(CLIENT.models.generate_content(model=model, contents=CITY, config=config).text)


ask(plain, stream, tools, structured)
