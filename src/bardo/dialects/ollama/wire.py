"""What a message of Ollama's chat looks like, as its reference says it (`POST /api/chat`, 2026-11).

What bardo has a word for is read; fields beside it are carried as they came. `signature` is bardo's own: state that it sealed.
"""

from __future__ import annotations

from typing import Any, ClassVar

from bardo.dialects.structs import Wire


class Function(Wire, kw_only=True):
    """Which function is called with which arguments. `index` is the place of the call in its message."""

    CARRIED: ClassVar = ("index", "description")
    name: str
    arguments: dict[str, Any] | None = None
    index: Any = None
    description: Any = None


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
    signature: Any = None
