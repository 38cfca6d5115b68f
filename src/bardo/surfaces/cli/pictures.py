"""Pictures that go with a question: from files or from addresses."""

from __future__ import annotations

from base64 import b64encode
from collections.abc import Sequence
from pathlib import Path

from bardo.surfaces.library.asking import Prompt
from bardo.values.blocks import ImageBlock, TextBlock
from bardo.values.errors import InvalidRequest
from bardo.values.request import Message

_MOST_BYTES = 20 * 1024 * 1024
# The kinds that every provider with vision takes, by the bytes that their files begin with.
_KINDS = ((b"\x89PNG\r\n\x1a\n", "image/png"), (b"\xff\xd8\xff", "image/jpeg"), (b"GIF8", "image/gif"))


def prompt_with(text: str, pictures: Sequence[str]) -> Prompt:
    """Return the prompt, and the pictures before its text: files, or http(s) addresses. Raises InvalidRequest for anything else."""
    if not pictures:
        return text
    return [Message("user", (*map(_block, pictures), TextBlock(text)))]


def _block(name: str) -> ImageBlock:
    if name.startswith(("http://", "https://")):
        return ImageBlock(url=name)
    try:
        with Path(name).open("rb") as file:
            data = file.read(_MOST_BYTES + 1)
    except OSError as problem:
        hint = "give a file, or an address that begins with https://"
        raise InvalidRequest(f"cannot read {name}: {problem.strerror or problem}", hint=hint) from problem
    if len(data) > _MOST_BYTES:
        raise InvalidRequest(f"{name} has more than {_MOST_BYTES:,} bytes", hint="give a smaller picture")
    return ImageBlock(media_type=_kind(name, data), data=b64encode(data).decode())


def _kind(name: str, data: bytes) -> str:
    if data[:4] == b"RIFF" and data[8:12] == b"WEBP":
        return "image/webp"
    found = next((kind for head, kind in _KINDS if data.startswith(head)), "")
    if not found:
        raise InvalidRequest(f"{name} is not a picture that can be sent", hint="give a PNG, JPEG, GIF or WebP file")
    return found
