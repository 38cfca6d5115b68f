"""The official client libraries by the dialect they speak: each reads bytes as a server's answer, over its own HTTP path."""

from __future__ import annotations

from typing import Protocol

from conformance.anthropic_library import messages
from conformance.google_library import gemini
from conformance.heard import Heard
from conformance.openai_library import chat, responses


class Reader(Protocol):
    """Reads one answer. Raises the library's own error where that is one."""

    def __call__(self, body: bytes, *, stream: bool, status: int = 200) -> Heard: ...


READERS: dict[str, Reader] = {
    "openai_chat": chat,
    "openai_responses": responses,
    "anthropic_messages": messages,
    "gemini": gemini,
}
