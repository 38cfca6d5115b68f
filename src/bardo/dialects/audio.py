"""Sound in a question, between the dialects that take it: base64 data of a media type.

Chat Completions has a part `input_audio` with a short name of the format (OpenAI takes wav and mp3), Gemini `inlineData` and Interactions
a content of the type `audio`, both with a media type. Each stays a block of its own dialect, which others are given in theirs.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping
from operator import is_
from typing import Any

import msgspec

from bardo.dialects.known_media import plain_base64
from bardo.values.blocks import Block, UnknownBlock
from bardo.values.histories import parts_of
from bardo.values.request import Message, Request

_AUDIO = "audio/"
_HOLDERS = ("input_audio", "inlineData", "inline_data")
"""The fields of a part that hold the data of sound, where it does not hold them itself."""
_TYPES = {"mp3": "mpeg"}
_FORMATS = {"mpeg": "mp3", "x-wav": "wav", "wave": "wav"}

Sound = tuple[str, str]
"""The media type, and the data."""


def _read_input_audio(value: dict[str, Any]) -> tuple[object, object]:
    held = value.get("input_audio")
    name = held.get("format") if isinstance(held, dict) else None
    if value.get("type") != "input_audio" or not isinstance(held, dict) or not isinstance(name, str):
        return None, None
    return f"{_AUDIO}{_TYPES.get(name, name)}", held.get("data")


def _read_inline_data(value: dict[str, Any]) -> tuple[object, object]:
    # google-genai writes some fields in snake case, and data in base64 for addresses.
    held = value.get("inlineData") or value.get("inline_data")
    if not isinstance(held, dict):
        return None, None
    data = held.get("data")
    return held.get("mimeType") or held.get("mime_type"), plain_base64(data) if isinstance(data, str) else data


def _read_content(value: dict[str, Any]) -> tuple[object, object]:
    return (value.get("mime_type"), value.get("data")) if value.get("type") == "audio" else (None, None)


def _write_input_audio(media_type: str, data: str) -> dict[str, Any]:
    name = media_type.removeprefix(_AUDIO).partition(";")[0]
    return {"type": "input_audio", "input_audio": {"data": data, "format": _FORMATS.get(name, name)}}


_READ: Mapping[str, Callable[[dict[str, Any]], tuple[object, object]]] = {
    "openai_chat": _read_input_audio,
    "openai_responses": _read_input_audio,
    "gemini": _read_inline_data,
    "gemini_interactions": _read_content,
}
_WRITE: Mapping[str, Callable[[str, str], dict[str, Any]]] = {
    "openai_chat": _write_input_audio,
    "gemini": lambda media_type, data: {"inlineData": {"mimeType": media_type, "data": data}},
    "gemini_interactions": lambda media_type, data: {"type": "audio", "mime_type": media_type, "data": data},
}


def sound_block(media_type: str, data: str) -> UnknownBlock:
    """Return the block of a sound, base64 `data`, which every dialect that takes sound is given in its own form."""
    return UnknownBlock("openai_chat", _write_input_audio(media_type, data))


def sound_of(block: Block) -> Sound | None:
    """Return the media type and the data of a block that is sound in its dialect's form, or None."""
    if not isinstance(block, UnknownBlock) or not isinstance(block.value, dict) or block.dialect not in _READ:
        return None
    media_type, data = _READ[block.dialect](block.value)
    if not isinstance(media_type, str) or not media_type.startswith(_AUDIO) or not isinstance(data, str):
        return None
    return media_type, plain_base64(data)


def has_plain_sound(request: Request) -> bool:
    """Whether all sound of a request is plain base64, as every server takes it."""
    if UnknownBlock not in parts_of(request.messages):
        return True
    return all(_plain(block) is block for message in request.messages for block in message.blocks)


def with_plain_sound(request: Request) -> Request:
    """Return a request whose sound is plain base64: itself where it is."""
    if has_plain_sound(request):
        return request
    messages = [
        msgspec.structs.replace(message, blocks=tuple(map(_plain, message.blocks))) for message in request.messages
    ]
    return msgspec.structs.replace(request, messages=tuple(messages))


def _plain(block: Block) -> Block:
    sound = sound_of(block)
    if sound is None or not isinstance(block, UnknownBlock):
        return block
    holder = next((name for name in _HOLDERS if name in block.value), "")
    held = block.value[holder] if holder else block.value
    if held["data"] == sound[1]:
        return block
    plain = {**held, "data": sound[1]}
    return msgspec.structs.replace(block, value={**block.value, holder: plain} if holder else plain)


def takes_sound(dialects: Collection[str | None]) -> bool:
    """Whether sound of another dialect can be written in one of these."""
    return not _WRITE.keys().isdisjoint(dialects)


def carry_sound(request: Request, dialect: str, parts: frozenset[type[Block]]) -> Request:
    """Return a request of another dialect with its sound in this one's form, where it has one. `parts` are as `parts_of` gives them."""
    write = _WRITE.get(dialect)
    if write is None or UnknownBlock not in parts:
        return request
    messages = tuple([_with_audio(message, dialect, write) for message in request.messages])
    unchanged = all(map(is_, messages, request.messages))
    return request if unchanged else msgspec.structs.replace(request, messages=messages)


def _with_audio(message: Message, dialect: str, write: Callable[[str, str], dict[str, Any]]) -> Message:
    sounds = {place: sound for place, block in enumerate(message.blocks) if (sound := sound_of(block)) is not None}
    if not sounds:
        return message
    blocks = [
        UnknownBlock(dialect, write(*sounds[place])) if place in sounds else block
        for place, block in enumerate(message.blocks)
    ]
    return msgspec.structs.replace(message, blocks=tuple(blocks))
