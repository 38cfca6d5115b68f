"""The wire format of Ollama's chat, as its reference says it (`POST /api/chat`, 2026-11), and the dialect's words.

What bardo has a word for is read; fields beside it are carried as they came. `signature` is bardo's own: state that it sealed.
"""

from typing import ClassVar

import msgspec

from bardo.dialects.shared.json_values import JsonObject, input_of
from bardo.dialects.shared.structs import Wire
from bardo.values.blocks import ToolCallBlock, fields_for
from bardo.values.events import Finish, FinishReason


class Function(Wire, kw_only=True):
    """Which function is called with which arguments. `index` is the place of the call in its message."""

    CARRIED: ClassVar = ("index", "description")
    name: str
    arguments: JsonObject | None = None
    index: object = None
    description: object = None


class Call(Wire, kw_only=True):
    """A call of a tool, which may have no id."""

    function: Function
    id: str | None = None


class Message(Wire, kw_only=True):
    """A message of any role."""

    CARRIED: ClassVar = ("signature",)
    role: str
    content: str | None = None
    thinking: str | None = None
    images: list[str] | None = None
    tool_calls: list[Call] | None = None
    tool_name: str | None = None
    tool_call_id: str | None = None
    signature: object = None


class ToolFunction(Wire, kw_only=True):
    """A function that may be called, with the schema of its arguments."""

    name: str
    description: str | None = None
    parameters: JsonObject | None = None


class Tool(Wire, kw_only=True):
    """A tool: a function, unless its type says otherwise."""

    type: str | None = None
    function: ToolFunction | None = None


class Options(Wire, kw_only=True):
    """The options that bardo has a word for; those of the model's runner are only carried."""

    temperature: int | float | None = None
    top_p: int | float | None = None
    top_k: int | float | None = None
    min_p: int | float | None = None
    repeat_penalty: int | float | None = None
    frequency_penalty: int | float | None = None
    presence_penalty: int | float | None = None
    seed: int | float | None = None
    stop: str | list[str] | None = None
    num_predict: int | float | None = None


class Request(Wire, kw_only=True):
    """The fields of a request that are read; its others are only carried."""

    messages: list[Message] | None = None
    tools: list[Tool] | None = None
    options: Options | None = None
    format: str | JsonObject | None = None
    think: bool | str | None = None
    stream: bool | None = None


class WrittenFunction(Wire, kw_only=True):
    """Which function the model calls, with the arguments as they were written."""

    CARRIED: ClassVar = ("index",)
    name: str
    arguments: msgspec.Raw = msgspec.Raw()
    index: object = None


class WrittenCall(Wire, kw_only=True):
    """A call in a reply; older servers give no ids."""

    function: WrittenFunction
    id: str | None = None


class Answer(Wire, kw_only=True):
    """The message of a reply, or a piece of it."""

    role: str | None = None
    content: str | None = None
    thinking: str | None = None
    tool_calls: list[WrittenCall] | None = None


class Line(Wire, kw_only=True):
    """A line of a stream, or a whole reply. The last one has the totals."""

    CARRIED: ClassVar = ("logprobs",)
    model: str | None = None
    created_at: str | None = None
    message: Answer
    done: bool
    done_reason: str | None = None
    total_duration: int | None = None
    load_duration: int | None = None
    prompt_eval_count: int | None = None
    prompt_eval_duration: int | None = None
    eval_count: int | None = None
    eval_duration: int | None = None
    logprobs: object = None


COUNTS = ("total_duration", "load_duration", "prompt_eval_count", "prompt_eval_duration", "eval_count", "eval_duration")
"""The fields of the last line that count tokens and time."""

NAME = "ollama"
TITLE = "Ollama"
FORMAT = "thinking"

REASONS: dict[str, FinishReason] = {"stop": "stop", "length": "length", "load": "stop", "unload": "stop"}
"""The dialect's reasons in our words; an older server gives none."""


def encode_finish(finish: Finish) -> str:
    """Return the word an Ollama client knows."""
    return finish.raw if finish.raw in REASONS else "length" if finish.reason == "length" else "stop"


def object_of(arguments: str) -> msgspec.Raw:
    """Return the arguments as the object they must be, on one line; text that is none is wrapped."""
    raw = bytes(input_of(arguments))
    # A line end between the tokens would cut the line that the object stands in.
    return msgspec.Raw(msgspec.json.format(raw, indent=-1) if b"\n" in raw or b"\r" in raw else raw)


def write_call(call: ToolCallBlock, place: int) -> JsonObject:
    """Return one entry of `tool_calls`, as it was written where it came in this dialect."""
    carried = {**(fields_for(NAME, call.carried) or {"function": {"index": place}})}
    function = carried.pop("function", {})
    unnamed = "id" in carried and carried.pop("id") is None
    return {
        **({} if unnamed else {"id": call.id}),
        "function": {**function, "name": call.name, "arguments": object_of(call.arguments)},
        **carried,
    }


SAMPLING = {
    "temperature": "temperature",
    "top_p": "top_p",
    "top_k": "top_k",
    "min_p": "min_p",
    "repetition_penalty": "repeat_penalty",
    "frequency_penalty": "frequency_penalty",
    "presence_penalty": "presence_penalty",
    "seed": "seed",
    "stop": "stop",
}
"""The sampling parameters by their names here."""
