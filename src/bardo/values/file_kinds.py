"""The kinds of files that go with a question: the pictures that every provider with vision takes, PDF, and sound."""

from __future__ import annotations

_KINDS = (
    (b"\x89PNG\r\n\x1a\n", "image/png"), (b"\xff\xd8\xff", "image/jpeg"), (b"GIF8", "image/gif"), (b"%PDF-", "application/pdf"),
    (b"ID3", "audio/mpeg"), (b"\xff\xfb", "audio/mpeg"), (b"\xff\xf3", "audio/mpeg"), (b"\xff\xf2", "audio/mpeg"),
    (b"fLaC", "audio/flac"), (b"OggS", "audio/ogg"),
)  # fmt: skip
_RIFF_KINDS = {b"WEBP": "image/webp", b"WAVE": "audio/wav"}


def file_kind(data: bytes) -> str:
    """Return the media type of a picture, a PDF or a sound, by the bytes that it begins with; empty for anything else."""
    if data.startswith(b"RIFF"):
        return _RIFF_KINDS.get(data[8:12], "")
    return next((kind for head, kind in _KINDS if data.startswith(head)), "")


def picture_kind(data: bytes) -> str:
    """Return the media type of a picture; empty for anything else."""
    kind = file_kind(data)
    return kind if kind.startswith("image/") else ""
