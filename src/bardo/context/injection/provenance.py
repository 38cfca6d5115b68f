"""Where the text of a request comes from: what the operator, the user, a tool or a document says.

Only the system prompt and the user's own words are somebody's wish. Results of tools, documents, pages that a search found, and what a
user pasted between marks of quotation are material: instructions in them have no authority.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from functools import cache
from typing import Any, Literal

import msgspec

from bardo.catalog.layer_rows import injection_rows
from bardo.values.blocks import DocumentBlock, ResultPart, TextBlock, ToolCallBlock, ToolResultBlock, UnknownBlock
from bardo.values.request import Request

Provenance = Literal["system", "user", "tool", "document"]
LEAST_TEXT = 12
"""Characters below which text is taken for a value, not for a sentence."""
_DEEPEST = 32


class Span(msgspec.Struct, frozen=True, kw_only=True):
    """A piece of text and where it comes from. `source` is the name of the tool or document, empty where it has none."""

    text: str
    provenance: Provenance
    source: str = ""

    @property
    def trusted(self) -> bool:
        """Whether somebody vouches for it: the operator or the user."""
        return self.provenance in ("system", "user")


def all_spans(request: Request) -> Iterator[Span]:
    """Yield all text of a request that the model did not write."""
    names: dict[str, str] = {}
    for message in request.messages:
        if message.role != "assistant":
            own: Provenance = "system" if message.role == "system" else "user"
            for block in message.blocks:
                if isinstance(block, TextBlock):
                    yield from [Span(text=block.text, provenance=own)] if own == "system" else parts_of_user(block.text)
                elif isinstance(block, ToolResultBlock):
                    name = block.name or names.get(block.call_id, "")
                    for part in block.content:
                        yield from _of_result(part, name)
                elif isinstance(block, DocumentBlock) and block.text:
                    yield Span(text=block.text, provenance="document", source=block.name)
                elif isinstance(block, UnknownBlock):
                    for text in _texts_in(block.value):
                        yield Span(text=text, provenance="tool")
        else:
            names |= {block.id: block.name for block in message.blocks if isinstance(block, ToolCallBlock)}


def _of_result(part: ResultPart, name: str) -> Iterator[Span]:
    if isinstance(part, TextBlock):
        yield Span(text=part.text, provenance="tool", source=name)
    elif isinstance(part, DocumentBlock) and part.text:
        yield Span(text=part.text, provenance="document", source=part.name or name)
    elif isinstance(part, UnknownBlock):
        for text in _texts_in(part.value):
            yield Span(text=text, provenance="tool", source=name)


def _texts_in(value: Any) -> Iterator[str]:
    """Yield the texts in a block of a dialect that has no counterpart here."""
    waiting: list[tuple[Any, int]] = [(value, 0)]
    while waiting:
        node, depth = waiting.pop()
        if isinstance(node, str):
            if len(node) >= LEAST_TEXT and " " in node:
                yield node
        elif depth < _DEEPEST:
            inner = node.values() if isinstance(node, dict) else node if isinstance(node, list | tuple) else ()
            waiting += [(each, depth + 1) for each in inner]


def parts_of_user(text: str) -> Iterator[Span]:
    """Yield what a user says, in the parts that are their own words and those that they quote."""
    place = 0
    for start, end, name in _quotes(text):
        if text[place:start].strip():
            yield Span(text=text[place:start], provenance="user")
        yield Span(text=text[start:end], provenance="document", source=name)
        place = end
    if place < len(text):
        yield Span(text=text[place:], provenance="user")


def _quotes(text: str) -> list[tuple[int, int, str]]:
    """Return the quoted parts of a text, in order: where each begins and ends, and what it is called."""
    quotes: list[tuple[int, int, str]] = []
    unclosed, place = set[str](), 0
    while (opening := _opening().search(text, place)) is not None:
        name = (opening[1] or "").lower()
        if name:
            place = opening.end()
            closing = None if name in unclosed else re.compile(f"</{name}>", re.IGNORECASE).search(text, place)
            if closing is None:
                unclosed.add(name)
                continue
            quotes.append((place, closing.start(), name))
            place = closing.start()
        elif opening[2] is not None:
            quotes.append((opening.start(2), opening.end(2), "quote"))
            place = opening.end(2)
        else:
            # Where a mail or a page begins, nothing says where it ends.
            quotes.append((opening.start(), len(text), "mail"))
            break
    return quotes


@cache
def _opening() -> re.Pattern[str]:
    """Return the pattern of what opens a quote: a tag, lines that begin with `>`, or the head of a mail."""
    rows = injection_rows().quoted
    tags, heads = "|".join(sorted(rows.tags)), "|".join(re.escape(header) for header in rows.headers)
    return re.compile(
        rf"<({tags})(?:\s[^<>]{{0,200}})?>|((?:^>[^\n]*\n?)+)|^(?:{heads})[^\n]*\n", re.IGNORECASE | re.MULTILINE
    )
