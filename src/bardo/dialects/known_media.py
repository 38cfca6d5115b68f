"""Pictures, documents and sound as every target takes them: plain base64, under the media type that their bytes say.

Clients write `image/jpg`, a type that the file's name suggested, or none; google-genai writes base64 for addresses (`-` and `_`).
"""

from __future__ import annotations

import base64
import binascii

import msgspec

from bardo.dialects.losses import Losses
from bardo.values.blocks import Block, DocumentBlock, ImageBlock, ToolResultBlock
from bardo.values.file_kinds import picture_kind
from bardo.values.histories import parts_of
from bardo.values.request import Message, Request

_MEDIA = frozenset((ImageBlock, DocumentBlock))
_ALIASES = {"image/jpg": "image/jpeg", "image/pjpeg": "image/jpeg", "image/x-png": "image/png"}
_TO_PLAIN = str.maketrans("-_", "+/")
_HEAD_LETTERS = 24
"""Letters of base64 that hold the beginning of a file by which its kind is known."""
_DATA, _BASE64 = "data:", ";base64,"
# What is found of a message once.
_KNOWN = "known_media"


def plain_base64(data: str) -> str:
    """Return base64 in the letters + and /, with its end filled up; itself where it is so."""
    if "-" not in data and "_" not in data and len(data) % 4 == 0:
        return data
    plain = data.translate(_TO_PLAIN).rstrip("=")
    # Data that is no base64 is somebody else's mistake to tell.
    return plain + "=" * (-len(plain) % 4) if len(plain) % 4 != 1 else data


def picture_type(media_type: str, data: str) -> str:
    """Return the media type of a picture by how its data begins, where that is known."""
    try:
        kind = picture_kind(base64.b64decode(data[:_HEAD_LETTERS].translate(_TO_PLAIN)))
    except (binascii.Error, ValueError):
        kind = ""
    return kind or _ALIASES.get(media_type.lower(), media_type)


def has_known_media(request: Request) -> bool:
    """Whether all pictures and documents of a request are as every target takes them."""
    if _MEDIA.isdisjoint(parts_of(request.messages)):
        return True
    return all(_known(message) is message for message in request.messages)


def with_known_media(request: Request, losses: Losses) -> Request:
    """Return a request whose pictures and documents are as every target takes them: itself where they are."""
    if has_known_media(request):
        return request
    messages = tuple([_known(message) for message in request.messages])
    for before, after in zip(request.messages, messages, strict=True):
        if after is not before:
            _report(before.blocks, after.blocks, losses)
    return msgspec.structs.replace(request, messages=messages)


def _report(before: tuple[Block, ...], after: tuple[Block, ...], losses: Losses) -> None:
    for old, new in zip(before, after, strict=True):
        if isinstance(old, ToolResultBlock) and isinstance(new, ToolResultBlock):
            _report(old.content, new.content, losses)
        elif isinstance(old, ImageBlock) and isinstance(new, ImageBlock) and _type_of(old) != _type_of(new):
            why = "the bytes of the picture say so, and providers refuse another type"
            losses.lose("image.media_type", _type_of(old), why, sent=_type_of(new), key=_type_of(old))


def _type_of(block: ImageBlock) -> str:
    return block.media_type if block.data else block.url.removeprefix(_DATA).partition(_BASE64)[0]


def _known(message: Message) -> Message:
    """Return a message with known media: the same object for one that came before."""
    if _MEDIA.isdisjoint(message.parts):
        return message
    kept = message.derived
    if _KNOWN not in kept:
        blocks = tuple(map(_block, message.blocks))
        same = all(new is old for new, old in zip(blocks, message.blocks, strict=True))
        kept[_KNOWN] = None if same else msgspec.structs.replace(message, blocks=blocks)
    found: Message | None = kept[_KNOWN]
    return found or message


def _block(block: Block) -> Block:
    if isinstance(block, ToolResultBlock):
        content = tuple(
            [_media(part) if isinstance(part, ImageBlock | DocumentBlock) else part for part in block.content]
        )
        same = all(new is old for new, old in zip(content, block.content, strict=True))
        return block if same else msgspec.structs.replace(block, content=content)
    return _media(block) if isinstance(block, ImageBlock | DocumentBlock) else block


def _media(block: ImageBlock | DocumentBlock) -> ImageBlock | DocumentBlock:
    media_type, data, url = block.media_type, block.data, block.url
    if data:
        data = plain_base64(data)
        media_type = picture_type(media_type, data) if isinstance(block, ImageBlock) else media_type
    elif url.startswith(_DATA) and isinstance(block, ImageBlock):
        head, found, held = url.partition(_BASE64)
        if found:
            plain = plain_base64(held)
            url = f"{_DATA}{picture_type(head.removeprefix(_DATA), plain)}{_BASE64}{plain}"
    if (media_type, data, url) == (block.media_type, block.data, block.url):
        return block
    return msgspec.structs.replace(block, media_type=media_type, data=data, url=url)
