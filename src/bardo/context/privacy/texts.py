"""All texts of a request that a model reads, and a request with other texts in their place.

Prompts, tool results, arguments of calls, thinking, and the strings in fields that bardo only carries. Of a text that is JSON, each string
is a text of its own. Opaque state, pictures and files are left as they are.
"""

from __future__ import annotations

import json
import re
from collections import Counter
from collections.abc import Callable, Mapping
from typing import Any, TypeVar

import msgspec

from bardo.context.layer import changed
from bardo.values.blocks import (
    Block,
    Carried,
    DocumentBlock,
    ImageBlock,
    ReasoningBlock,
    ResultPart,
    TextBlock,
    ToolCallBlock,
    ToolResultBlock,
    UnknownBlock,
)
from bardo.values.request import Message, Request

Change = Callable[[str], str]
_NO_TEXT = """
signature data encrypted_content encrypted_index thought_signature thoughtSignature bytes id call_id tool_use_id file_id type media_type
mimeType image_url
"""
OPAQUE_FIELDS = frozenset(_NO_TEXT.split())
"""Fields of blocks that hold what only their provider reads, or no text."""
_STRING = re.compile(r'"((?:[^"\\]++|\\.)*+)(?:"|\Z)', re.DOTALL)
_NUMBER = re.compile(r"(?<![\w.+-])-?[0-9]+(?:\.[0-9]+)?(?![\w.+-])")
_ESCAPE = re.compile(r"\\(?:u([0-9a-fA-F]{4})|(.))", re.DOTALL)
_MOST_NESTED = 2


class TextChanger:
    """Changes the texts of a request. `change` is given each text; `quoted` says what stands for a JSON number, None for most."""

    def __init__(self, change: Change, quoted: Callable[[str], str | None] = lambda number: None) -> None:
        self._change = change
        self._quoted = quoted
        self.skipped: Counter[str] = Counter()

    def request(self, request: Request) -> Request:
        """Return the request with changed texts, or itself where none changed."""
        messages = tuple([self.message(message) for message in request.messages])
        extra = self.value(request.extra)
        form = request.output_format
        if form is not None and form.guidance:
            guidance = self._change(form.guidance)
            form = form if guidance == form.guidance else msgspec.structs.replace(form, guidance=guidance)
        if form is request.output_format and extra is request.extra and _same(messages, request.messages):
            return request
        return changed(request, messages=messages, extra=extra, output_format=form)

    def message(self, message: Message) -> Message:
        """Return a message with changed texts, or itself."""
        blocks = tuple([self.block(block) for block in message.blocks])
        carried = self._carried(message.carried)
        same = carried is message.carried and _same(blocks, message.blocks)
        return message if same else Message(message.role, blocks, carried)

    def block(self, block: Block) -> Block:
        """Return a block with changed texts, or itself."""
        if isinstance(block, TextBlock | ImageBlock | DocumentBlock | UnknownBlock):
            return self._part(block)
        carried = self._carried(block.carried)
        if isinstance(block, ToolResultBlock):
            content = tuple([self._part(part) for part in block.content])
            return _with(block, carried=carried, content=block.content if _same(content, block.content) else content)
        if isinstance(block, ToolCallBlock):
            return _with(block, carried=carried, arguments=self.json(block.arguments))
        if isinstance(block, ReasoningBlock):
            summary = tuple([self._change(one) for one in block.summary])
            return _with(block, carried=carried, text=self._change(block.text), summary=summary)
        return _with(block, carried=carried, text=self.text(block.text))

    def _part(self, part: ResultPart) -> ResultPart:
        if isinstance(part, UnknownBlock):
            return _with(part, value=self.value(part.value))
        if isinstance(part, ImageBlock):
            self.skipped["pictures"] += 1
            return part
        carried = self._carried(part.carried)
        if isinstance(part, DocumentBlock):
            self.skipped["files"] += bool(part.data or part.url)
            return _with(part, carried=carried, text=self.text(part.text), name=self._change(part.name))
        return _with(part, carried=carried, text=self.text(part.text))

    def _carried(self, carried: Carried | None) -> Carried | None:
        return None if carried is None else _with(carried, fields=self.value(carried.fields))

    def text(self, text: str) -> str:
        """Return a text changed; string by string where it is JSON."""
        return self.json(text) if text[:1] in ("{", "[") else self._change(text)

    def json(self, text: str, nested: int = 0) -> str:
        """Return JSON text of which each string is changed, and each number that something stands for; all else stays as it is."""
        parts: list[str] = []
        read = 0
        for match in _STRING.finditer(text):
            parts.append(self._numbers(text[read : match.start()]))
            parts.append(self._string(match, nested))
            read = match.end()
        return "".join([*parts, self._numbers(text[read:])])

    def _string(self, match: re.Match[str], nested: int) -> str:
        try:
            plain = json.loads(match.group(), strict=False)
        except ValueError:
            return self._change(match.group())
        inner = plain[:1] in ("{", "[") and nested < _MOST_NESTED
        new = self.json(plain, nested + 1) if inner else self._change(plain)
        return match.group() if new == plain else json.dumps(new, ensure_ascii=False)

    def _numbers(self, text: str) -> str:
        def quoted(match: re.Match[str]) -> str:
            placeholder = self._quoted(match.group())
            return match.group() if placeholder is None else f'"{placeholder}"'

        return _NUMBER.sub(quoted, text)

    def value(self, value: Any) -> Any:
        """Return a JSON value with its strings changed, or itself; fields that hold no text stay as they are."""
        if isinstance(value, str):
            return self._change(value)
        if isinstance(value, Mapping):
            new = {key: one if key in OPAQUE_FIELDS else self.value(one) for key, one in value.items()}
            return value if all(new[key] is one for key, one in value.items()) else new
        if isinstance(value, list):
            items = [self.value(one) for one in value]
            return value if _same(items, value) else items
        return value


def unescaped(text: str) -> str:
    """Return JSON text without its escapes, also those of JSON within it."""
    for _ in range(_MOST_NESTED + 1):
        if "\\" not in text:
            break
        text = _ESCAPE.sub(_plain, text)
    return text


def _plain(match: re.Match[str]) -> str:
    code, letter = match.groups()
    return chr(int(code, 16)) if code else {"n": "\n", "t": "\t", "r": "\r"}.get(letter, letter)


def _same(new: Any, old: Any) -> bool:
    return all(one is other for one, other in zip(new, old, strict=True))


Struct = TypeVar("Struct", bound=msgspec.Struct)


def _with(struct: Struct, **fields: Any) -> Struct:
    """Return a struct with other fields, or itself where they are equal."""
    if all(value is (old := getattr(struct, name)) or value == old for name, value in fields.items()):
        return struct
    return msgspec.structs.replace(struct, **fields)
