"""The events by which a Responses stream builds each of its output items."""

from __future__ import annotations

from collections.abc import Iterator

from bardo.simulators.exchange import Exchange
from bardo.simulators.fields import Fields, rows
from bardo.simulators.marks import ciphertext


def item_events(exchange: Exchange, index: int, item: Fields) -> Iterator[Fields]:
    """Yield the events of one item, from its addition to its end; their numbers are put in later."""
    yield {"type": "response.output_item.added", "item": _added_item(item), "output_index": index}
    match item["type"]:
        case "reasoning":
            yield from _summary_events(exchange, index, item)
        case "message":
            yield from _text_events(exchange, index, item)
        case "function_call":
            yield from _call_events(exchange, index, item, "arguments", "function_call_arguments")
        case "custom_tool_call":
            yield from _call_events(exchange, index, item, "input", "custom_tool_call_input")
    yield {"type": "response.output_item.done", "item": item, "output_index": index}


def _added_item(item: Fields) -> Fields:
    """Return an item before anything is in it. Its ciphertext is another, shorter one than at the end."""
    match item["type"]:
        case "reasoning":
            early = ciphertext(f"early/{item['id']}", size=300)
            return {**item, "encrypted_content": early, "summary": []}
        case "message":
            return {**item, "status": "in_progress", "content": []}
        case kind:
            return {**item, "status": "in_progress", "input" if kind == "custom_tool_call" else "arguments": ""}


def _summary_events(exchange: Exchange, place: int, item: Fields) -> Iterator[Fields]:
    for index, part in enumerate(rows(item["summary"])):
        where: Fields = {"item_id": item["id"], "output_index": place, "summary_index": index}
        yield {"type": "response.reasoning_summary_part.added", **where, "part": {**part, "text": ""}}
        for piece in exchange.pieces(str(part["text"])):
            delta: Fields = {"delta": piece, "obfuscation": _obfuscation(exchange, piece)}
            yield {"type": "response.reasoning_summary_text.delta", **where, **delta}
        yield {"type": "response.reasoning_summary_text.done", **where, "text": part["text"]}
        yield {"type": "response.reasoning_summary_part.done", **where, "part": part}


def _text_events(exchange: Exchange, index: int, item: Fields) -> Iterator[Fields]:
    part = rows(item["content"])[0]
    where: Fields = {"content_index": 0, "item_id": item["id"], "output_index": index}
    yield {"type": "response.content_part.added", **where, "part": {**part, "text": ""}}
    for piece in exchange.pieces(str(part["text"])):
        delta: Fields = {"delta": piece, "logprobs": [], "obfuscation": _obfuscation(exchange, piece)}
        yield {"type": "response.output_text.delta", **where, **delta}
    yield {"type": "response.output_text.done", **where, "logprobs": [], "text": part["text"]}
    yield {"type": "response.content_part.done", **where, "part": part}


def _call_events(exchange: Exchange, index: int, item: Fields, field: str, event: str) -> Iterator[Fields]:
    where: Fields = {"item_id": item["id"], "output_index": index}
    for piece in exchange.pieces(str(item[field])):
        delta: Fields = {"delta": piece, "obfuscation": _obfuscation(exchange, piece)}
        yield {"type": f"response.{event}.delta", **where, **delta}
    yield {"type": f"response.{event}.done", **where, field: item[field]}


def _obfuscation(exchange: Exchange, piece: str) -> str:
    """Return letters that hide the length of a delta from whoever watches the line."""
    return exchange.token(piece, max(1, 16 - len(piece) % 16))
