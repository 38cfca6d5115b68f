"""Put values back where their placeholders stand, in text that arrives in pieces.

What may be the beginning of a placeholder is held until it is one or is none, and nothing else. So a placeholder comes out whole,
wherever the pieces are cut, or it is none of this call.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Mapping
from typing import Any

import msgspec

from bardo.context.privacy.placeholders import PlaceholderForms, Placeholders, inner_of
from bardo.values.blocks import Block, ReasoningBlock, RefusalBlock, TextBlock, ToolCallBlock

_ESCAPE = re.compile(r"\\(?:u([0-9a-fA-F]{4})|(.))", re.DOTALL)
_OPEN_ESCAPE = re.compile(r"\\(?:u[0-9a-fA-F]{0,3})?\Z")
_PLAIN = {"n": "\n", "t": "\t", "r": "\r", "b": "\b", "f": "\f"}


class RestorePlan:
    """What is to be put back in one call, shared by all places of its reply."""

    def __init__(self, placeholders: Placeholders) -> None:
        self._values: Mapping[str, str] = placeholders.values
        self.forms = PlaceholderForms(placeholders.labels)
        # The words, not the values: of these there may be a hundred thousand.
        self.exact = re.compile(f"<((?:{'|'.join(map(re.escape, placeholders.labels))})_[0-9]{{1,6}})>")

    def value_of(self, placeholder: str) -> str | None:
        """Return the value of a placeholder in any form; None where it is none of this call."""
        return self._values.get(inner_of(placeholder))

    def whole(self, text: str) -> str:
        """Return a whole text with values."""
        return self.forms.whole.sub(lambda placeholder: self._or_as_it_is(placeholder.group()), text)

    def exactly(self, text: str) -> str:
        """Return a whole text with values for those placeholders that are written as they were sent."""
        return self.exact.sub(lambda placeholder: self._values.get(placeholder[1], placeholder[0]), text)

    def block(self, block: Block) -> Block:
        """Return a block of a reply with values."""
        match block:
            case ReasoningBlock():
                summary = tuple([self.exactly(part) for part in block.summary])
                return msgspec.structs.replace(block, text=self.exactly(block.text), summary=summary)
            case ToolCallBlock():
                restorer = JsonRestorer(self)
                return msgspec.structs.replace(block, arguments=restorer.feed(block.arguments) + restorer.finish())
            case TextBlock() | RefusalBlock():
                return msgspec.structs.replace(block, text=self.whole(block.text))
            case _:
                return block

    def in_value(self, value: Any) -> Any:
        """Return a JSON value with values in all of its strings."""
        if isinstance(value, str):
            return self.whole(value)
        if isinstance(value, dict):
            return {self.whole(key): self.in_value(one) for key, one in value.items()}
        return [self.in_value(one) for one in value] if isinstance(value, list) else value

    def _or_as_it_is(self, placeholder: str) -> str:
        value = self.value_of(placeholder)
        return placeholder if value is None else value


class TextRestorer:
    """Restores one text that arrives in pieces."""

    def __init__(self, restoring: RestorePlan) -> None:
        self._restoring = restoring
        self._before = ""
        self._held = ""

    def feed(self, piece: str) -> str:
        """Return what is certain of the text so far."""
        text = self._held + piece
        certain = self._certain(text)
        self._held = text[certain:]
        return self._restored(text[:certain])

    def finish(self) -> str:
        """Return what was held."""
        held, self._held = self._held, ""
        return self._restored(held)

    def _certain(self, text: str) -> int:
        forms = self._restoring.forms
        with_before = self._before + text
        begun = forms.begun.search(with_before, max(len(self._before), len(with_before) - forms.longest))
        return len(text) if begun is None else begun.start() - len(self._before)

    def _restored(self, text: str) -> str:
        if not text:
            return ""
        with_before, offset = self._before + text, len(self._before)
        self._before = text[-1]
        parts: list[str] = []
        read = offset
        for placeholder in self._restoring.forms.whole.finditer(with_before, offset):
            value = self._restoring.value_of(placeholder.group())
            if value is not None:
                parts += with_before[read : placeholder.start()], value
                read = placeholder.end()
        return "".join([*parts, with_before[read:]])


class ExactRestorer:
    """Restores one text that arrives in pieces, where placeholders are written exactly as they were sent.

    So the client's text can be masked again to what the provider wrote, which it may have signed.
    """

    def __init__(self, restoring: RestorePlan) -> None:
        self._restoring = restoring
        self._held = ""

    def feed(self, piece: str) -> str:
        """Return what is certain of the text so far."""
        text = self._held + piece
        opened = text.rfind("<", max(0, len(text) - self._restoring.forms.longest))
        certain = opened if opened >= 0 and ">" not in text[opened:] else len(text)
        self._held = text[certain:]
        return self._restoring.exactly(text[:certain])

    def finish(self) -> str:
        """Return what was held."""
        held, self._held = self._held, ""
        return held


class JsonRestorer:
    """Restores JSON text that arrives in pieces: any character of a placeholder may be escaped, and values are escaped."""

    def __init__(self, restoring: RestorePlan) -> None:
        self._restoring = restoring
        self._before = ""
        self._held = ""

    def feed(self, piece: str) -> str:
        """Return what is certain of the text so far."""
        return self._restored(self._held + piece, over=False)

    def finish(self) -> str:
        """Return what was held."""
        return self._restored(self._held, over=True)

    def _restored(self, raw: str, *, over: bool) -> str:
        forms, offset = self._restoring.forms, len(self._before)
        plain, places = _unescaped(raw, over=over)
        text = self._before + plain
        begun = None if over else forms.begun.search(text, max(offset, len(text) - forms.longest))
        certain = len(plain) if begun is None else begun.start() - offset
        parts: list[str] = []
        read = 0
        for placeholder in forms.whole.finditer(text, offset, offset + certain):
            value = self._restoring.value_of(placeholder.group())
            if value is not None:
                parts += raw[read : places(placeholder.start() - offset)], json.dumps(value, ensure_ascii=False)[1:-1]
                read = places(placeholder.end() - offset)
        end = places(certain)
        self._held = raw[end:]
        self._before = plain[certain - 1 : certain] or self._before
        return "".join([*parts, raw[read:end]])


def _unescaped(raw: str, *, over: bool) -> tuple[str, Callable[[int], int]]:
    """Return JSON text without escapes, and what gives the place in the raw text of a place in it.

    An escape that is cut at the end is left out, unless the text is over.
    """
    if "\\" not in raw:
        return raw, lambda place: place
    unfinished = None if over else _open_escape(raw)
    end = len(raw) if unfinished is None else unfinished
    chars: list[str] = []
    starts: list[int] = []
    place = 0
    while place < end:
        placeholder = _ESCAPE.match(raw, place, end) if raw[place] == "\\" else None
        starts.append(place)
        if placeholder is None:
            chars.append(raw[place])
            place += 1
            continue
        code, letter = placeholder.groups()
        chars.append(chr(int(code, 16)) if code else _PLAIN.get(letter, letter))
        place = placeholder.end()
    starts.append(end)
    return "".join(chars), starts.__getitem__


def _open_escape(raw: str) -> int | None:
    """Return where an escape begins that is cut at the end; None where none is."""
    placeholder = _OPEN_ESCAPE.search(raw, max(0, len(raw) - 6))
    if placeholder is None:
        return None
    slashes = placeholder.start()
    while slashes and raw[slashes - 1] == "\\":
        slashes -= 1
    return placeholder.start() if (placeholder.start() - slashes) % 2 == 0 else None
