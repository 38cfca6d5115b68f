"""What Bedrock itself adds to the payloads that InvokeModel holds (Amazon's reference, 2026-11)."""

from typing import Final

import msgspec

NAME: Final = "bedrock_invoke"


class Chunk(msgspec.Struct, gc=False, rename={"payload": "bytes"}):
    """A frame of a stream, which holds the payload's own as base64. What stands beside it says nothing."""

    payload: bytes
