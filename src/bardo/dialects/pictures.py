"""Pictures in replies, in one form between the dialects: base64 data of a media type.

A dialect whose replies may hold pictures declares a PictureForm, and `engine/foreign_content.py` writes what one dialect gives in the
form of the client's. Gemini gives a part with `inlineData`, Responses an item of the type `image_generation_call`, OpenRouter's Chat
Completions a list `images` beside the content, and Interactions a content of the type `image`.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from hashlib import sha256
from typing import Any

from bardo.values.blocks import ImageBlock

_DATA_URL = "data:"
_BASE64 = ";base64,"
_CALL = "image_generation_call"


@dataclass(frozen=True, slots=True, kw_only=True)
class PictureForm:
    """How one dialect writes a picture of a reply.

    `read` returns the pictures of a value, none where it is something else, or where it holds more than pictures. `write` returns the
    value for one picture. `members` are those of a value that the picture, its place and its end are told by; what stands in others is
    lost with another dialect. `field` is the field of the choice that lists such values; empty where each is a block of its own.
    """

    read: Callable[[Any], tuple[ImageBlock, ...]]
    write: Callable[[ImageBlock], dict[str, Any]]
    members: frozenset[str]
    field: str = ""


def _picture(media_type: object, data: object) -> tuple[ImageBlock, ...]:
    if not isinstance(media_type, str) or not media_type.startswith("image/") or not isinstance(data, str) or not data:
        return ()
    return (ImageBlock(media_type=media_type, data=data),)


def _read_part(value: Any) -> tuple[ImageBlock, ...]:
    inline = value.get("inlineData") if isinstance(value, dict) else None
    return _picture(inline.get("mimeType"), inline.get("data")) if isinstance(inline, dict) else ()


def _read_call(value: Any) -> tuple[ImageBlock, ...]:
    if not isinstance(value, dict) or value.get("type") != _CALL:
        return ()
    return _picture(f"image/{value.get('output_format') or 'png'}", value.get("result"))


def _write_call(picture: ImageBlock) -> dict[str, Any]:
    name = sha256(picture.data.encode()).hexdigest()[:24]
    kind = picture.media_type.removeprefix("image/")
    return {
        "type": _CALL,
        "id": f"ig_bardo_{name}",
        "status": "completed",
        "output_format": kind,
        "result": picture.data,
    }


def _read_listed(value: Any) -> tuple[ImageBlock, ...]:
    held = value.get("image_url") if isinstance(value, dict) else None
    url = held.get("url") if isinstance(held, dict) else None
    head, found, data = url.partition(_BASE64) if isinstance(url, str) else ("", "", "")
    return _picture(head.removeprefix(_DATA_URL), data) if found else ()


def _read_output(value: Any) -> tuple[ImageBlock, ...]:
    contents = value.get("content") if isinstance(value, dict) and value.get("type") == "model_output" else None
    listed = contents if isinstance(contents, list) else []
    found = [_read_content(one) for one in listed]
    return tuple(picture for pictures in found for picture in pictures) if all(found) else ()


def _read_content(value: Any) -> tuple[ImageBlock, ...]:
    if not isinstance(value, dict) or value.get("type") != "image":
        return ()
    return _picture(value.get("mime_type"), value.get("data"))


GEMINI_PICTURES = PictureForm(
    read=_read_part,
    write=lambda picture: {"inlineData": {"mimeType": picture.media_type, "data": picture.data}},
    members=frozenset({"inlineData"}),
)
RESPONSES_PICTURES = PictureForm(
    read=_read_call,
    write=_write_call,
    members=frozenset({"type", "id", "status", "result", "output_format"}),
)
CHAT_PICTURES = PictureForm(
    read=_read_listed,
    write=lambda picture: {
        "type": "image_url",
        "image_url": {"url": f"{_DATA_URL}{picture.media_type}{_BASE64}{picture.data}"},
    },
    members=frozenset({"type", "image_url", "index"}),
    field="message.images",
)
INTERACTIONS_PICTURES = PictureForm(
    read=_read_output,
    write=lambda picture: {
        "type": "model_output",
        "content": [{"type": "image", "mime_type": picture.media_type, "data": picture.data}],
    },
    members=frozenset({"type", "content"}),
)
