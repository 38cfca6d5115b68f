"""What a message of Cohere's v2 chat looks like, as its reference says it (`POST /v2/chat`, 2026-11).

What bardo has a word for is read; fields beside it are carried as they came. `signature` is bardo's own: state that it sealed.
"""

from __future__ import annotations

from typing import Any, ClassVar

from bardo.dialects.structs import Unknown, Wire


class Text(Wire, tag="text", kw_only=True):
    """Words."""

    CARRIED: ClassVar = ("signature",)
    text: str
    signature: Any = None


class Thinking(Wire, tag="thinking", kw_only=True):
    """Thinking of the model."""

    CARRIED: ClassVar = ("signature",)
    thinking: str
    signature: Any = None


class ImageUrl(Wire, kw_only=True):
    """Where a picture is, or its bytes as a data URL."""

    url: str
    detail: str | None = None


class Image(Wire, tag="image_url", kw_only=True):
    """A picture."""

    image_url: ImageUrl


class Document(Wire, tag="document", kw_only=True):
    """A document: text, or an object whose `data` is text or an object."""

    document: Any = None


Part = Text | Image | Document | Thinking | Unknown
"""What the content of a message may hold."""


class Function(Wire, kw_only=True):
    """Which function is called with which arguments, as JSON text."""

    name: str
    arguments: str | None = None


class Call(Wire, kw_only=True):
    """A call of a tool."""

    CARRIED: ClassVar = ("signature",)
    id: str
    function: Function
    type: Any = None
    signature: Any = None


class Message(Wire, kw_only=True):
    """A message of any role."""

    CARRIED: ClassVar = ("citations",)
    role: str
    content: str | list[Part] | None = None
    tool_plan: str | None = None
    tool_calls: list[Call] | None = None
    tool_call_id: str | None = None
    citations: Any = None
