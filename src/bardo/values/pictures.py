"""The kinds of pictures that every provider with vision takes."""

from __future__ import annotations

_KINDS = ((b"\x89PNG\r\n\x1a\n", "image/png"), (b"\xff\xd8\xff", "image/jpeg"), (b"GIF8", "image/gif"))


def picture_kind(data: bytes) -> str:
    """Return the media type of a picture, by the bytes that it begins with; empty for anything else."""
    if data[:4] == b"RIFF" and data[8:12] == b"WEBP":
        return "image/webp"
    return next((kind for head, kind in _KINDS if data.startswith(head)), "")
