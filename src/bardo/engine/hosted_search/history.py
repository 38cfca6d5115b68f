"""Searches in the history of a conversation: how a model gets them again, as calls of a function and their results, or as text.

Anthropic's clients send back what was found, Responses' only that a search was made.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import msgspec

from bardo.catalog.rows import ProviderRow
from bardo.dialects import dialect
from bardo.dialects.shared.content_forms import SearchPart, SearchResults
from bardo.dialects.shared.json_values import encode_json
from bardo.values.blocks import Block, TextBlock, ToolCallBlock, ToolResultBlock, UnknownBlock
from bardo.values.degradation import Degradation
from bardo.values.request import Message, Request


def results_text(results: SearchResults) -> str:
    """Return the results of a search as a model reads them: JSON with one object for each page."""
    if results.error:
        return encode_json({"error": results.error}).decode()
    pages = [{name: value for name, value in msgspec.to_builtins(page).items() if value} for page in results.pages]
    return encode_json({"results": pages}).decode()


def as_calls(request: Request, tool: str) -> tuple[Message, ...]:
    """Return the messages with earlier searches as calls of the function `tool` and their results."""
    if not any(part_of(block) for message in request.messages for block in message.blocks):
        return request.messages
    return tuple(one for message in request.messages for one in _split(message, tool))


def without_own_results(request: Request, row: ProviderRow) -> Request:
    """Return a request with the gateway's own earlier results as text, for a provider that would refuse such blocks."""
    parts = (part_of(block) for message in request.messages for block in message.blocks)
    if not any(part is not None and part.own for part in parts):
        return request
    messages = tuple(
        msgspec.structs.replace(message, blocks=tuple(_as_text(message.blocks))) for message in request.messages
    )
    lost = Degradation("web_search", sent="text", why=f"{row.id} reads only what its own search found")
    return msgspec.structs.replace(
        request, messages=messages, body=None, body_bytes=b"", degraded=(*request.degraded, lost)
    )


def part_of(block: Block) -> SearchPart | None:
    """Return which part of a search a block is; None for a block that is none."""
    if not isinstance(block, UnknownBlock) or not isinstance(block.value, dict):
        return None
    declared = dialect(block.dialect).reply
    return None if declared is None or declared.searches is None else declared.searches.read(block.value)


def _split(message: Message, tool: str) -> Iterator[Message]:
    """Yield a message as the turns it stands for: a call of the function ends one, its result begins the next."""
    pending: list[Block] = []
    for block in message.blocks:
        part = part_of(block)
        if part is None:
            pending.append(block)
            continue
        if part.query is not None:
            arguments = encode_json({"query": part.query}).decode()
            pending.append(ToolCallBlock(id=part.id, name=tool, arguments=arguments))
        if part.results is not None:
            yield msgspec.structs.replace(message, blocks=tuple(pending))
            yield Message("user", (_result(part, part.results, tool),))
            pending = []
    if pending:
        yield msgspec.structs.replace(message, blocks=tuple(pending))


def _result(part: SearchPart, results: SearchResults, tool: str) -> ToolResultBlock:
    content = (TextBlock(results_text(results)),)
    return ToolResultBlock(call_id=part.id, name=tool, content=content, is_error=bool(results.error))


def _as_text(blocks: Sequence[Block]) -> Iterator[Block]:
    for block in blocks:
        part = part_of(block)
        if part is None or not part.own:
            yield block
        elif part.results is not None:
            yield TextBlock(f"Found on the web: {results_text(part.results)}")
