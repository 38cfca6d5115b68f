"""What the items of a Responses request look like, as OpenAI's reference says it (`POST /v1/responses`, 2026-11).

What bardo has a word for is read; fields beside it are carried as they came, and so are whole items of other types.
"""

from __future__ import annotations

from typing import Any, ClassVar

from bardo.dialects.structs import Unknown, Wire


class Text(Wire, tag="text", kw_only=True):
    """Words, by the name that Chat has for them."""

    CARRIED: ClassVar = ("annotations", "logprobs", "prompt_cache_breakpoint")
    text: str
    annotations: Any = None
    logprobs: Any = None
    prompt_cache_breakpoint: Any = None


class InputText(Text, tag="input_text", kw_only=True):
    """Words of the user."""


class OutputText(Text, tag="output_text", kw_only=True):
    """Words of the model."""


class Refusal(Wire, tag="refusal", kw_only=True):
    """Words with which the model declined."""

    refusal: str


class InputImage(Wire, tag="input_image", kw_only=True):
    """A picture by its address or data URL, or else one that was uploaded."""

    CARRIED: ClassVar = ("file_id", "prompt_cache_breakpoint")
    image_url: Any = None
    detail: str | None = None
    file_id: Any = None
    prompt_cache_breakpoint: Any = None


class InputFile(Wire, tag="input_file", kw_only=True):
    """A document by its data or address, or else one that was uploaded."""

    CARRIED: ClassVar = ("file_id", "detail", "prompt_cache_breakpoint")
    filename: str | None = None
    file_data: str | None = None
    file_url: str | None = None
    file_id: Any = None
    detail: Any = None
    prompt_cache_breakpoint: Any = None


Part = Text | InputText | OutputText | Refusal | InputImage | InputFile | Unknown
"""What a message, or the output of a tool, may hold."""


class Message(Wire, tag="message", kw_only=True):
    """A message of any role."""

    CARRIED: ClassVar = ("id", "status", "phase")
    role: str
    content: str | list[Part]
    id: Any = None
    status: Any = None
    phase: Any = None


class Thought(Wire, kw_only=True):
    """A piece of thinking, or of a summary of it."""

    text: str
    type: Any = None


class Reasoning(Wire, tag="reasoning", kw_only=True):
    """Thinking. `format` says whose it is, where a router passes on that of others."""

    CARRIED: ClassVar = ("format",)
    id: str | None = None
    summary: list[Thought | str] | None = None
    content: list[Thought | str] | None = None
    encrypted_content: str | None = None
    status: Any = None
    format: str | None = None


class FunctionCall(Wire, tag="function_call", kw_only=True):
    """A call of a function."""

    CARRIED: ClassVar = ("id", "status", "namespace", "caller")
    call_id: str
    name: str
    arguments: str | None = None
    id: Any = None
    status: Any = None
    namespace: Any = None
    caller: Any = None


class CustomToolCall(Wire, tag="custom_tool_call", kw_only=True):
    """A call of a tool that takes any text."""

    CARRIED: ClassVar = ("id", "status", "namespace", "caller")
    call_id: str
    name: str
    input: str
    id: Any = None
    status: Any = None
    namespace: Any = None
    caller: Any = None


class FunctionCallOutput(Wire, tag="function_call_output", kw_only=True):
    """What a function gave back."""

    CARRIED: ClassVar = ("id", "status", "caller", "name", "namespace")
    call_id: str
    output: str | list[Part]
    id: Any = None
    status: Any = None
    caller: Any = None
    name: Any = None
    namespace: Any = None


class CustomToolCallOutput(FunctionCallOutput, tag="custom_tool_call_output", kw_only=True):
    """What a tool that takes any text gave back."""


ITEMS: dict[str, type[Wire]] = {
    "message": Message,
    "reasoning": Reasoning,
    "function_call": FunctionCall,
    "custom_tool_call": CustomToolCall,
    "function_call_output": FunctionCallOutput,
    "custom_tool_call_output": CustomToolCallOutput,
}
"""The types of items that are read."""
