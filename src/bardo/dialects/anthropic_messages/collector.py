"""Collect the frames of a message into one whole message, as a client would."""

from __future__ import annotations

from typing import Any

from bardo.dialects.anthropic_messages.block_writer import MessageBlockWriter, MessageFrames
from bardo.dialects.wire import input_of


class MessageCollector(MessageFrames):
    """Collect one message. `message` is complete after the encoder's end."""

    streamed = False

    def __init__(self) -> None:
        super().__init__()
        self.message: dict[str, Any] = {}
        self._block: dict[str, Any] = {}
        self._pieces: list[str] = []

    def write(self, kind: str, **fields: Any) -> None:
        """Take the start of the message, or its end."""
        fields.pop("error", None)
        self.message |= fields.pop("message", {}) | fields.pop("delta", {}) | fields

    def piece(self, block: MessageBlockWriter, text: str) -> None:
        """Take a piece of text or of arguments."""
        self._pieces.append(text)

    def start(self, block: dict[str, Any]) -> None:
        """Begin a block."""
        self._block, self._pieces = dict(block), []

    def delta(self, **fields: Any) -> None:
        """Add fields to the block: citations to their list, a signature and an estimate in their place."""
        kind = fields.pop("type")
        if kind == "citations_delta":
            self._block.setdefault("citations", []).append(fields["citation"])
        elif kind == "signature_delta":
            self._block["signature"] = fields["signature"]
        elif kind == "thinking_delta":
            self._block["estimated_tokens"] = fields["estimated_tokens"]
        else:
            self._block.setdefault(kind, []).append(fields)

    def stop(self, fields: dict[str, Any]) -> None:
        """End the block."""
        text = "".join(self._pieces)
        match self._block["type"]:
            case "tool_use":
                self._block["input"] = input_of(text)
            case "thinking" | "text" as field:
                self._block[field] = text
        self.whole(self._block | fields)

    def whole(self, block: Any) -> None:
        """Add a block that is complete."""
        self.message["content"].append(block)
