"""The content of one input item: a string, or a list of parts."""

from __future__ import annotations

from typing import Any

import msgspec

from bardo.dialects.documents import picture_or_document, read_file, split_data_url
from bardo.dialects.jsonfield import kind_of, optional, required, take
from bardo.dialects.openai_responses.state import NAME
from bardo.values.blocks import Block, Carried, DocumentBlock, ImageBlock, RefusalBlock, TextBlock, UnknownBlock
from bardo.values.errors import InvalidRequest

_TEXTS = frozenset({"input_text", "output_text", "text"})


def blocks_of(content: Any, at: str, *, answer: bool) -> tuple[Block, ...]:
    """Return the blocks of some content. `answer`: it is the model's own, so that it may hold refusals but no pictures."""
    if isinstance(content, str):
        return (TextBlock(content),)
    if not isinstance(content, list):
        raise InvalidRequest(f"{at} must be a string or an array, not {kind_of(content)}", param=at)
    return tuple(
        _block(take(part, dict, f"{at}[{index}]"), f"{at}[{index}].", answer) for index, part in enumerate(content)
    )


def _block(part: dict[str, Any], at: str, answer: bool) -> Block:
    kind = required(part, "type", str, at)
    if kind in _TEXTS:
        return TextBlock(required(part, "text", str, at), carried=_carried_fields(part, "text"))
    if kind == "refusal" and answer:
        return RefusalBlock(required(part, "refusal", str, at), carried=_carried_fields(part, "refusal"))
    if kind == "input_image" and not answer and isinstance(part.get("image_url"), str):
        return _image(part, at)
    if kind == "input_file" and not answer and part.get("file_id") is None:
        return _file(part, at)
    return UnknownBlock(NAME, part)


def _file(part: dict[str, Any], at: str) -> DocumentBlock | UnknownBlock:
    """Return a document: its data, or its address."""
    name, data, url = (optional(part, key, str, at) or "" for key in ("filename", "file_data", "file_url"))
    found = read_file(data, name) if data else DocumentBlock(url=url, name=name) if url else None
    if found is None or (data and url):
        return UnknownBlock(NAME, part)
    return msgspec.structs.replace(found, carried=_carried_fields(part, "filename", "file_data", "file_url"))


def _image(part: dict[str, Any], at: str) -> ImageBlock | DocumentBlock:
    """Return a picture; a data URL of another type is a document, which some clients send so."""
    url, detail = required(part, "image_url", str, at), optional(part, "detail", str, at) or ""
    carried = _carried_fields(part, "image_url", "detail")
    inline = split_data_url(url)
    if inline:
        return picture_or_document(*inline, detail=detail, carried=carried)
    return ImageBlock(url=url, detail=detail, carried=carried)


def _carried_fields(part: dict[str, Any], *known: str) -> Carried | None:
    fields = {name: value for name, value in part.items() if name not in ("type", *known) and value not in _EMPTY}
    return Carried(NAME, fields) if fields else None


_EMPTY: tuple[Any, ...] = (None, [], {})
