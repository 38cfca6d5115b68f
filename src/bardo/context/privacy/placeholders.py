"""The placeholders for values in a call, such as `<EMAIL_1>`: equal values share one, in the order in which they first appear.

The same conversation gives the same placeholders in each of its turns, since its beginning stays the same; so nothing has to be kept, and
prompt caches hold. A number that the client's own text uses in such a form is passed over.

Values are put back where their placeholders stand, in text that arrives in pieces. What may be the beginning of a placeholder is held until
it is one or is none, and nothing else. So a placeholder comes out whole, wherever the pieces are cut, or it is none of this call.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any

import msgspec

from bardo.context.privacy.known_values import KnownValues, Pieces
from bardo.context.privacy.patterns import WORD
from bardo.values.blocks import Block, ReasoningBlock, RefusalBlock, TextBlock, ToolCallBlock

_CLIENT_WORDS = re.compile(r"([A-Za-z]{2,14})\\?[_ -]([0-9]{1,6})")


class Placeholders:
    """The placeholders of one call. Values are added by `take`; what stands for what never reaches a log, a receipt or an error."""

    def __init__(self) -> None:
        self._by_value: dict[str, str] = {}
        self._known = KnownValues()
        self._next: dict[str, int] = {}
        self._used: set[tuple[str, int]] = set()

    def __bool__(self) -> bool:
        return bool(self._by_value)

    @property
    def labels(self) -> tuple[str, ...]:
        """The words of the placeholders that there are."""
        return tuple(sorted(self._next))

    @property
    def values(self) -> dict[str, str]:
        """The values by the inner part of their placeholders: `EMAIL_1`."""
        return {placeholder[1:-1]: value for value, placeholder in self._by_value.items()}

    def avoid(self, text: str, labels: Iterable[str]) -> None:
        """Pass over the numbers that a text of the client uses with one of these words, also within a word: its neighbours may go."""
        known_labels = set(labels)
        for placeholder in _CLIENT_WORDS.finditer(text):
            word, digits = placeholder.group(1).upper(), placeholder.group(2)
            for label in known_labels.intersection(word[start:] for start in range(len(word) - 1)):
                self._used.update((label, int(digits[:length])) for length in range(1, len(digits) + 1))

    def take(self, value: str, label: str, *, in_word: bool = False) -> None:
        """Add a value, unless it is there. `in_word` says that it was found where a word goes on: then it is masked there too."""
        self._known.add(value, in_word=in_word)
        if value in self._by_value:
            return
        number = self._next.get(label, 0) + 1
        while (label, number) in self._used:
            number += 1
        self._next[label] = number
        self._by_value[value] = f"<{label}_{number}>"

    def kept(self) -> tuple[tuple[str, str, bool], ...]:
        """Return the values with their placeholders, and whether each is masked in words too."""
        return tuple([(value, name, self._known.found_in_words(value)) for value, name in self._by_value.items()])

    @classmethod
    def of_kept(cls, kept: Iterable[tuple[str, str, bool]]) -> Placeholders:
        """Return the placeholders that `kept` returned."""
        made = cls()
        for value, placeholder, is_in_words in kept:
            label, _, number = placeholder[1:-1].rpartition("_")
            made._by_value[value] = placeholder
            made._known.add(value, in_word=is_in_words)
            made._next[label] = max(int(number), made._next.get(label, 0))
        return made

    def masked(self, text: str) -> str:
        """Return a text with placeholders for all values, the longest first, wherever no word goes on beside them or they were found so."""
        return self.in_place(text, self._known.pieces(text))

    def in_place(self, text: str, pieces: Pieces) -> str:
        """Return a text, cut at its values, with placeholders for them."""
        if len(pieces) == 1 and not pieces[0][1]:
            return text
        return "".join([self._by_value[part] if is_value else part for part, is_value in pieces])

    def of(self, value: str) -> str | None:
        """Return what stands for a whole value."""
        return self._by_value.get(value)


_Part = str | tuple[str, ...]
"""A part of a placeholder: an expression, or the words of which one stands there."""


class PlaceholderForms:
    """How the placeholders of one call may come back: `whole` finds one, and `begun` one that may have begun at the end of a text.

    Models escape for Markdown, HTML and JSON, change case, and leave out the brackets. Without brackets only capitals are read.
    """

    def __init__(self, labels: Sequence[str]) -> None:
        opening, closing = ("<", "\\<", "&lt;", "\\u003c"), (">", "\\>", "&gt;", "\\u003e")
        joints = ("_", "\\_", "-", " ")
        names = tuple(sorted(labels))
        in_brackets: list[_Part] = [opening, _SPACE, names, joints, _NUMBER, _SPACE, closing]
        alone: list[_Part] = [names, joints[:2], _NUMBER]
        bare = rf"(?<![{WORD}])(?P<bare>{_chain(alone)})(?![{WORD}])"
        self.whole = re.compile(rf"(?i:(?P<framed>{_chain(in_brackets)}))|{bare}")
        self.begun = re.compile(rf"(?:(?i:{_begun(in_brackets)})|(?<![{WORD}])(?:{_begun(alone)}|{_chain(alone)}))\Z")
        self.longest = sum(
            (max(map(len, part)) if isinstance(part, tuple) else 1 if part == _SPACE else 6) for part in in_brackets
        )


_SPACE, _NUMBER = " ?", "[0-9]{1,6}"
_FOUND = re.compile(r"([A-Za-z]{1,99})[^A-Za-z0-9]{1,9}([0-9]{1,9})")


def inner_of(placeholder: str) -> str:
    """Return the inner part of a placeholder in any of its forms: `EMAIL_1`."""
    plain = re.sub(r"(?i)&lt;|&gt;|\\u003[ce]", "", placeholder)
    part = _FOUND.search(plain)
    return f"{part.group(1).upper()}_{part.group(2)}" if part else ""


def _chain(parts: Sequence[_Part]) -> str:
    return "".join(part if isinstance(part, str) else f"(?:{'|'.join(map(re.escape, part))})" for part in parts)


def _begun(parts: Sequence[_Part]) -> str:
    """Return what matches each beginning of a chain that is shorter than it."""
    forms = []
    for place, part in enumerate(parts):
        before = _chain(parts[:place])
        if isinstance(part, tuple):
            beginnings = sorted(
                {word[:length] for word in part for length in range(1, len(word))}, key=len, reverse=True
            )
            forms += [f"{before}(?:{'|'.join(map(re.escape, beginnings))})"] if beginnings else []
        if place:
            forms.append(before)
    return f"(?:{'|'.join(forms)})"


_ESCAPE = re.compile(r"\\(?:u([0-9a-fA-F]{4})|(.))", re.DOTALL)
_OPEN_ESCAPE = re.compile(r"\\(?:u[0-9a-fA-F]{0,3})?\Z")
_PLAIN = {"n": "\n", "t": "\t", "r": "\r", "b": "\b", "f": "\f"}


class RestorePlan:
    """The values to put back in one call, shared by all places of its reply."""

    def __init__(self, placeholders: Placeholders) -> None:
        self._values: Mapping[str, str] = placeholders.values
        self.forms = PlaceholderForms(placeholders.labels)
        # The words, not the values: of these there may be a hundred thousand.
        self.exact = re.compile(f"<((?:{'|'.join(map(re.escape, placeholders.labels))})_[0-9]{{1,6}})>")

    def value_of(self, placeholder: str) -> str | None:
        """Return the value of a placeholder in any form, or None if it is none of this call."""
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
            return {self.whole(key): self.in_value(inner) for key, inner in value.items()}
        return [self.in_value(item) for item in value] if isinstance(value, list) else value

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
        """Return the part of the text so far that is certain."""
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
        """Return the part of the text so far that is certain."""
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
        """Return the part of the text so far that is certain."""
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
    """Return where an escape begins that is cut at the end, or None if none is."""
    placeholder = _OPEN_ESCAPE.search(raw, max(0, len(raw) - 6))
    if placeholder is None:
        return None
    slashes = placeholder.start()
    while slashes and raw[slashes - 1] == "\\":
        slashes -= 1
    return placeholder.start() if (placeholder.start() - slashes) % 2 == 0 else None
