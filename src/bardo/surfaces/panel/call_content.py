"""What was asked and answered in one call, as parts that a page shows: turns, thinking, calls of tools and their results."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import msgspec

from bardo.adapters.stores.log.row import LogRow
from bardo.surfaces.library.memory import read_past
from bardo.values.blocks import (
    Block,
    DocumentBlock,
    ImageBlock,
    ReasoningBlock,
    RefusalBlock,
    ReplyBlock,
    TextBlock,
    ToolCallBlock,
    ToolResultBlock,
    UnknownBlock,
)
from bardo.values.errors import BardoError
from bardo.values.request import Request

_STREAMED = ("stream", "stream_options")


class ContentPart(msgspec.Struct, frozen=True, kw_only=True):
    """One part. `kind` says how it is shown: `text` as Markdown, `thinking` likewise and folded, `json` and `plain` as they are."""

    kind: str
    text: str = ""
    title: str = ""


class Turn(msgspec.Struct, frozen=True, kw_only=True):
    """What one side said."""

    role: str
    parts: tuple[ContentPart, ...]


def asked_turns(row: LogRow) -> tuple[Turn, ...]:
    """Return what was asked, oldest first. Content that was cut, or is in no dialect, is shown as it stands in the log."""
    if row.request_content is None:
        return ()
    request = past_request(row)
    if request is None or not request.messages:
        return (Turn(role="request", parts=(ContentPart(kind="plain", text=row.request_content),)),)
    return tuple([Turn(role=one.role, parts=tuple(_parts(one.blocks))) for one in request.messages])


def answered_parts(row: LogRow) -> tuple[ContentPart, ...]:
    """Return what was answered, with its thinking."""
    if row.reply_content is None:
        return ()
    try:
        blocks = msgspec.json.decode(row.reply_content, type=tuple[ReplyBlock, ...])
    except (msgspec.DecodeError, RecursionError):
        return (ContentPart(kind="plain", text=row.reply_content),)
    return tuple(_parts(blocks))


def past_request(row: LogRow) -> Request | None:
    """Return what was asked as a request for a whole reply; None where the log does not hold it."""
    content = row.request_content
    if content is None or not row.client_dialect:
        return None
    try:
        body = msgspec.json.decode(content)
        if not isinstance(body, dict):
            return None
        whole = msgspec.json.encode({name: value for name, value in body.items() if name not in _STREAMED})
        fields = {"request_id": row.request_id, "model_asked": row.model_asked, "client_dialect": row.client_dialect}
        line = msgspec.json.encode({**fields, "request_content": whole.decode(), "route": row.route})
        return read_past(line, row.client_dialect, {}).request
    except (msgspec.DecodeError, RecursionError, BardoError):
        return None


def _parts(blocks: Sequence[Block | ReplyBlock]) -> Iterator[ContentPart]:
    for block in blocks:
        match block:
            case TextBlock(text=text):
                yield ContentPart(kind="text", text=text)
            case ReasoningBlock():
                yield _thinking(block)
            case RefusalBlock(text=text):
                yield ContentPart(kind="text", text=text, title="Refusal")
            case ToolCallBlock(name=name, arguments=arguments):
                yield ContentPart(kind="json", text=_indented_json(arguments), title=f"Call of {name}")
            case ToolResultBlock(name=name, content=content, is_error=is_error):
                title = f"Result{f' of {name}' if name else ''}{', an error' if is_error else ''}"
                words = "\n".join(
                    [one.text if isinstance(one, TextBlock) else _block_description(one) for one in content]
                )
                yield ContentPart(kind="plain", text=words, title=title)
            case ImageBlock() | DocumentBlock():
                yield ContentPart(kind="plain", text=_block_description(block))
            case UnknownBlock(value=value):
                yield ContentPart(
                    kind="json", text=_indented_json(msgspec.json.encode(value).decode()), title="Other part"
                )


def _thinking(block: ReasoningBlock) -> ContentPart:
    text = block.text or "\n\n".join(block.summary)
    if not text:
        return ContentPart(kind="hidden")
    return ContentPart(kind="thinking", text=text, title="Thinking" if block.text else "Summary of thinking")


def _block_description(block: object) -> str:
    """Return a description of a part that is not text."""
    if isinstance(block, ImageBlock):
        return f"[picture: {block.media_type or 'by its address'}]"
    if isinstance(block, DocumentBlock):
        return f"[document: {block.name or block.media_type or 'without a name'}]{block.text and chr(10)}{block.text}"
    return "[part that is no text]"


def _indented_json(text: str) -> str:
    """Return JSON on several lines, and what is no JSON as it is."""
    try:
        return msgspec.json.format(text, indent=2)
    except (msgspec.DecodeError, RecursionError):
        return text
