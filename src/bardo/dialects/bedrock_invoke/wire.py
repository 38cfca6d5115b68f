"""What Bedrock itself adds to the payloads that InvokeModel holds (Amazon's reference, 2026-11)."""

from __future__ import annotations

from typing import Final

import msgspec

from bardo.dialects.shared.structs import Wire

NAME: Final = "bedrock_invoke"


class ClaudeFields(Wire, kw_only=True):
    """What only Bedrock's form of a Messages body has: Anthropic's own takes both as headers."""

    anthropic_version: str | None = None
    anthropic_beta: list[str] | None = None


class Chunk(msgspec.Struct, gc=False, rename={"payload": "bytes"}):
    """A frame of a stream, which holds the payload's own as base64. What stands beside it says nothing."""

    payload: bytes
