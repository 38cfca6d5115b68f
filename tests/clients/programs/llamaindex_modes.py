"""LlamaIndex, by the model class that its own module names. See the programs `llamaindex_…`."""

import json

from llama_index.core.llms import ChatMessage
from llama_index.core.tools import FunctionTool
from modes import CITY, QUESTION, WEATHER, ask, sunny
from pydantic import BaseModel


class City(BaseModel):
    name: str
    population: int


def weather(city: str) -> str:
    """Tell the weather."""
    return sunny(city)


def ask_by(open_model, **thinking):
    """Run the modes of a model class, which `thinking` has think."""

    def plain(model):
        return open_model(model).complete(QUESTION).text

    def stream(model):
        return [piece.delta for piece in open_model(model).stream_complete(QUESTION) if piece.delta]

    def tools(model):
        asked, history = open_model(model, **thinking), [ChatMessage(role="user", content=WEATHER)]
        tool = FunctionTool.from_defaults(weather)
        while True:
            *_, last = asked.stream_chat_with_tools([tool], chat_history=history)
            calls = asked.get_tool_calls_from_response(last, error_on_no_tool_call=False)
            if not calls:
                return last.message.content
            history.append(last.message)
            for call in calls:
                result = sunny(**call.tool_kwargs)
                history.append(
                    ChatMessage(role="tool", content=result, additional_kwargs={"tool_call_id": call.tool_id})
                )

    def structured(model):
        reply = open_model(model).as_structured_llm(City).complete(CITY)
        return json.loads(reply.text)

    ask(plain, stream, tools, structured)
