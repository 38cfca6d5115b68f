"""What a message of Chat Completions looks like, as OpenAI's reference says it (`POST /v1/chat/completions`, 2026-11).

Its family adds fields of its own. What bardo has a word for is read; fields beside it are carried as they came.
"""

from __future__ import annotations

from typing import Any, ClassVar

from bardo.dialects.structs import Unknown, Wire


class Text(Wire, tag="text", kw_only=True):
    """Words."""

    CARRIED: ClassVar = ("cache_control", "prompt_cache_breakpoint")
    text: str
    cache_control: Any = None
    prompt_cache_breakpoint: Any = None


class InputText(Text, tag="input_text", kw_only=True):
    """Words, by the name that Responses has for them."""


class OutputText(Text, tag="output_text", kw_only=True):
    """Words of the model, by the name that Responses has for them."""


class Refusal(Wire, tag="refusal", kw_only=True):
    """Words with which the model declined."""

    refusal: str


class ImageUrl(Wire, kw_only=True):
    """Where a picture is, or its bytes as a data URL."""

    url: str
    detail: str | None = None


class Image(Wire, tag="image_url", kw_only=True):
    """A picture."""

    CARRIED: ClassVar = ("cache_control", "prompt_cache_breakpoint")
    image_url: ImageUrl | str
    cache_control: Any = None
    prompt_cache_breakpoint: Any = None


class FileData(Wire, kw_only=True):
    """The bytes of a file, or the id of one that was uploaded, which `others` has."""

    file_data: str | None = None
    filename: str | None = None


class File(Wire, tag="file", kw_only=True):
    """A document."""

    CARRIED: ClassVar = ("cache_control", "prompt_cache_breakpoint")
    file: FileData
    cache_control: Any = None
    prompt_cache_breakpoint: Any = None


class Thought(Wire, kw_only=True):
    """A piece of thinking: Mistral writes its type too."""

    text: str | None = None


class Thinking(Wire, tag="thinking", kw_only=True):
    """Thinking among the content, as Mistral writes it."""

    thinking: list[Thought | str | None] | Thought | str | None = None
    signature: str | None = None


Part = Text | InputText | OutputText | Refusal | Image | File | Thinking | Unknown
"""What the content of a message may hold. Some clients write bare strings."""


class Function(Wire, kw_only=True):
    """Which function is called with which arguments, as JSON text."""

    name: str
    arguments: Any = None


class Custom(Wire, kw_only=True):
    """Which custom tool is called with which text."""

    name: str
    input: Any = None


class Call(Wire, kw_only=True):
    """A call of a tool. One that is neither of a function nor of a custom tool is carried whole."""

    id: str | None = None
    type: Any = None
    function: Function | None = None
    custom: Custom | None = None
    index: Any = None
    extra_content: Any = None


class OlderCall(Wire, kw_only=True):
    """A call as older clients write it, which has no id."""

    name: str | None = None
    arguments: str | None = None


class Message(Wire, kw_only=True):
    """A message of any role. `reasoning_details` are OpenRouter's, `thinking_blocks` LiteLLM's, `extra_content` Google's."""

    CARRIED: ClassVar = ("name", "annotations", "audio")
    role: str
    content: str | list[Part | str] | None = None
    refusal: str | None = None
    tool_calls: list[Call] | None = None
    tool_call_id: str | None = None
    function_call: OlderCall | None = None
    name: Any = None
    reasoning_content: str | None = None
    reasoning: str | None = None
    reasoning_details: str | list[dict[str, Any]] | None = None
    thinking_blocks: list[Any] | None = None
    extra_content: Any = None
    annotations: Any = None
    audio: Any = None
