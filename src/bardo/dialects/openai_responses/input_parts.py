"""The content of one input item: a string, or a list of parts."""

from __future__ import annotations

from typing import Any

import msgspec

from bardo.dialects.documents import picture_or_document, read_file, split_data_url
from bardo.dialects.openai_responses import wire
from bardo.dialects.openai_responses.state import NAME
from bardo.dialects.structs import Wire, as_it_came, carried_fields
from bardo.values.blocks import Block, Carried, DocumentBlock, ImageBlock, RefusalBlock, TextBlock, UnknownBlock

_EMPTY: tuple[Any, ...] = (None, [], {})


def blocks_of(content: str | list[wire.Part], *, answer: bool) -> tuple[Block, ...]:
    """Return the blocks of some content. `answer`: it is the model's own, so that it may hold refusals but no pictures."""
    if isinstance(content, str):
        return (TextBlock(content),)
    return tuple([_block(part, answer=answer) for part in content])


def _block(part: wire.Part, *, answer: bool) -> Block:
    if isinstance(part, wire.Text):
        return TextBlock(part.text, carried=_carried(part))
    if isinstance(part, wire.Refusal) and answer:
        return RefusalBlock(part.refusal, carried=_carried(part))
    if isinstance(part, wire.InputImage) and not answer and isinstance(part.image_url, str):
        return _image(part, part.image_url)
    if isinstance(part, wire.InputFile) and not answer and part.file_id is None:
        return _file(part)
    return UnknownBlock(NAME, as_it_came(part))


def _file(part: wire.InputFile) -> DocumentBlock | UnknownBlock:
    """Return a document: its data, or its address."""
    name, data, url = part.filename or "", part.file_data, part.file_url
    found = read_file(data, name) if data else DocumentBlock(url=url, name=name) if url else None
    if found is None or (data and url):
        return UnknownBlock(NAME, as_it_came(part))
    return msgspec.structs.replace(found, carried=_carried(part))


def _image(part: wire.InputImage, url: str) -> ImageBlock | DocumentBlock:
    """Return a picture; a data URL of another type is a document, which some clients send so."""
    carried, detail, inline = _carried(part), part.detail or "", split_data_url(url)
    if inline:
        return picture_or_document(*inline, detail=detail, carried=carried)
    return ImageBlock(url=url, detail=detail, carried=carried)


def _carried(part: Wire) -> Carried | None:
    fields = carried_fields(part)
    if fields is None:
        return None
    said = {name: value for name, value in fields.items() if value not in _EMPTY}
    return Carried(NAME, said) if said else None
