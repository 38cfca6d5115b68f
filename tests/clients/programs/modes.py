"""Ask a gateway in each mode with each model, and print a line of JSON for each. Arguments of a program: the gateway's address, and models.

A program's functions take a model's name. `plain` and `tools` return the text of the answer, `stream` its pieces, `structured` the value,
and `error` asks a model that is refused.
"""

import asyncio
import inspect
import json
import sys

ADDRESS, *MODELS = sys.argv[1:]
QUESTION = "What is the longest river of France?"
WEATHER = "How is the weather in Paris?"
CITY = "Describe the city of Paris."
REFUSED = "+fault:status=400"
SCHEMA = {
    "type": "object",
    "properties": {"name": {"type": "string"}, "population": {"type": "integer"}},
    "required": ["name", "population"],
    "additionalProperties": False,
}
PLACE = {
    "type": "object",
    "properties": {"city": {"type": "string", "description": "The city."}},
    "required": ["city"],
    "additionalProperties": False,
}


def sunny(city):
    return f"sunny in {city}"


def ask(plain, stream, tools, structured, error=None):
    """Run what each mode is, and print its result, or how it fails."""
    modes = {"plain": plain, "stream": stream, "tools": tools, "structured": structured, "error": error or plain}
    for model in MODELS:
        for name, function in modes.items():
            if function is not None:
                told = _result(function, model + REFUSED if name == "error" else model)
                print(json.dumps({"model": model, "mode": name, **told}), flush=True)


def _result(function, model):
    try:
        value = function(model)
        if inspect.isawaitable(value):
            value = asyncio.run(_awaited(value))
    except Exception as error:  # noqa: BLE001 - whatever a client raises is its result
        return {"failed": type(error).__name__, "message": str(error)}
    return {"result": value}


async def _awaited(value):
    return await value
