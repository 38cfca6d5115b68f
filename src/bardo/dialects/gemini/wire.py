"""What the contents of a generateContent request look like, as Google's reference says it (2026-11). Both spellings of names are read.

What bardo has a word for is read; fields beside it are carried as they came.
"""

from __future__ import annotations

from typing import Any

from bardo.dialects.structs import Wire


class Blob(Wire, kw_only=True, rename="camel"):
    """Bytes in base64. One that has more fields is carried whole."""

    data: str
    mime_type: str | None = None


class FileData(Wire, kw_only=True, rename="camel"):
    """Where a file is. One that has more fields is carried whole."""

    file_uri: str
    mime_type: str | None = None


class ResponsePart(Wire, kw_only=True, rename="camel"):
    """A picture or a document that a function gave back."""

    inline_data: Blob | None = None
    file_data: FileData | None = None


class FunctionCall(Wire, kw_only=True, rename="camel"):
    """A call of a function, which may have no id."""

    name: str
    id: str | None = None
    args: dict[str, Any] | None = None


class FunctionResponse(Wire, kw_only=True, rename="camel"):
    """What a function gave back."""

    name: str
    id: str | None = None
    response: dict[str, Any] | None = None
    parts: list[ResponsePart] | None = None


class Part(Wire, kw_only=True, rename="camel"):
    """A part of a content: one of text, a call, a result or media, with what goes with it."""

    text: str | None = None
    thought: bool | None = None
    thought_signature: str | None = None
    inline_data: Blob | None = None
    file_data: FileData | None = None
    function_call: FunctionCall | None = None
    function_response: FunctionResponse | None = None


class Content(Wire, kw_only=True, rename="camel"):
    """A message, or a piece of one. Bare strings stand for parts of text."""

    parts: list[Part | str] | Part | str | None = None
    role: str | None = None
