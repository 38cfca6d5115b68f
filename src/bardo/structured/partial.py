"""Read a JSON answer while it arrives. What was once given only grows: no key, item or scalar is ever taken back or changed.

A scalar appears once it is complete: 12 may become 125, and "neg" may become "negative". Free text may grow letter by letter where the
caller asks for it. Time is linear in the text; `feed` also copies the containers that are still open, `grow` does not.
"""

from __future__ import annotations

import re
from typing import Literal

import msgspec

from bardo.structured.coercion import accepted_types, followed, items_of, may_conform, members_of
from bardo.structured.extraction import Json, JsonSchema
from bardo.structured.lexemes import NUMBER, StringReader, number

_MAX_DEPTH = 200
_MAX_TOKEN = 4096
_SPACE = re.compile(r"[\s\ufeff]*")
_OPENER = re.compile(r"[{\[]")
_TOKEN = re.compile(r"[\w.+-]*")
_WORDS: dict[str, Json] = {"true": True, "false": False, "null": None, "NaN": None, "Infinity": None, "-Infinity": None}

_State = Literal["seek", "value", "string", "token", "after", "colon", "done", "broken"]


class _Open(msgspec.Struct):
    """A container that is not closed. `key` is the member being read, `fresh` that nothing stood in it yet."""

    value: dict[str, Json] | list[Json]
    schema: JsonSchema
    key: str | None = None
    fresh: bool = True
    text_grows: bool = False


class PartialJson:
    """Gives partial objects of one answer. After prose the first bracket begins it; text that is not JSON ends the growth (`broken`).

    `schema` tells which strings are words of a list: those never grow. `only_conforming`: a key or scalar that cannot be in the answer ends
    the growth, because a later step would change it or leave it out. Its thinking markup has to be taken out before. The whole text
    belongs to `extract` in the end: that is where repair and validation are.
    """

    def __init__(self, schema: JsonSchema = True, *, strings_grow: bool = False, only_conforming: bool = False) -> None:
        self._schema = schema
        self._only_conforming = only_conforming
        self._strings_grow = strings_grow
        self._stack: list[_Open] = []
        self._state: _State = "seek"
        self._text = StringReader()
        self._held = ""
        self._key = False
        self._changed = False
        self._root: Json = None
        self._shown = False

    @property
    def value(self) -> Json:
        """The value so far, growing in place; None before there is any. Copy it, or use what `feed` gives."""
        return self._root if self._shown else None

    @property
    def done(self) -> bool:
        """Whether the answer is closed."""
        return self._state == "done"

    @property
    def broken(self) -> bool:
        """Whether the text turned out not to be JSON, so that nothing more will come."""
        return self._state == "broken"

    @property
    def open_path(self) -> tuple[str | int, ...]:
        """Where the answer still grows. Everything that is not on this path is complete."""
        return tuple(_member_of(container) for container in self._stack)

    def feed(self, text: str) -> list[Json]:
        """Take text, and return a copy of the value if it grew: safe to keep, sharing complete parts with other copies."""
        return [self._copy()] if self.grow(text) else []

    def finish(self) -> list[Json]:
        """End the text. A string that never closed is not shown, unless strings grow."""
        if self._state not in ("done", "broken"):
            self._state = "broken"
        return []

    def grow(self, text: str) -> bool:
        """Take text, and return whether `value` grew."""
        self._changed = False
        at = 0
        while at < len(text) and self._state not in ("done", "broken"):
            at = _STEPS[self._state](self, text, at)
        if self._state == "string" and self._strings_grow:
            self._show_string()
        return self._changed

    # States: each takes what it can from `at` on, and returns where the next one goes on

    def _seek(self, text: str, at: int) -> int:
        opener = _OPENER.search(text, at)
        if opener is None:
            return len(text)
        self._push(opener.group(), self._schema)
        return opener.end()

    def _value(self, text: str, at: int) -> int:
        at = _past_space(text, at)
        here = text[at : at + 1]
        if not here:
            return at
        top = self._stack[-1]
        if here in "}]":
            return self._close(here, at)
        if isinstance(top.value, dict) and top.key is None:
            return self._begin_string(at, key=True) if here == '"' else self._break(at)
        if here == '"':
            return self._begin_string(at, key=False)
        if here in "{[":
            if not self._may_be({} if here == "{" else []):
                return self._break(at)
            self._push(here, self._inner_schema())
            return at + 1
        self._state = "token"
        return at

    def _begin_string(self, at: int, *, key: bool) -> int:
        self._text, self._key, self._state = StringReader(), key, "string"
        self._stack[-1].text_grows = not key and self._strings_grow and _free_text(self._schema, self._inner_schema())
        return at + 1

    def _string(self, text: str, at: int) -> int:
        at = self._text.feed(text, at)
        if self._text.broken:
            if self._strings_grow:
                # In a smaller piece of the text it would have been shown before the mistake came.
                self._show_string()
            return self._break(at)
        return self._end_string(at) if self._text.closed else at

    def _end_string(self, at: int) -> int:
        string = self._text.value
        if self._key:
            top = self._stack[-1]
            # A key that comes twice would change what was given.
            if string in top.value or (self._only_conforming and not self._may_have(string)):
                return self._break(at)
            top.key, self._state = string, "colon"
        elif not self._may_be(string):
            return self._break(at)
        else:
            self._set_member(string)
        return at

    def _may_have(self, key: str) -> bool:
        schema = self._stack[-1].schema
        if not isinstance(schema, dict) or schema.get("additionalProperties") is not False:
            return True
        return "patternProperties" in schema or key in members_of(self._schema, schema)[0]

    def _may_be(self, value: Json) -> bool:
        return not self._only_conforming or may_conform(self._schema, self._inner_schema(), value)

    def _colon(self, text: str, at: int) -> int:
        at = _past_space(text, at)
        if at == len(text):
            return at
        if text[at] != ":":
            return self._break(at)
        self._state = "value"
        return at + 1

    def _token(self, text: str, at: int) -> int:
        token = _TOKEN.match(text, at)
        assert token is not None
        self._held += token.group()
        if token.end() == len(text) and len(self._held) < _MAX_TOKEN:
            return len(text)
        word, self._held = self._held, ""
        scalar = _WORDS.get(word, number(word) if NUMBER.fullmatch(word) else None)
        if (scalar is None and word not in _WORDS) or not self._may_be(scalar):
            return self._break(at)
        finite = None if isinstance(scalar, float) and scalar in (float("inf"), float("-inf")) else scalar
        self._set_member(finite)
        return token.end()

    def _end_value(self, text: str, at: int) -> int:
        at = _past_space(text, at)
        here = text[at : at + 1]
        if here in ("}", "]"):
            return self._close(here, at)
        if here == ",":
            self._state = "value"
            return at + 1
        return self._break(at) if here else at

    # Growing

    def _push(self, opener: str, schema: JsonSchema) -> None:
        value: Json = {} if opener == "{" else []
        if len(self._stack) >= _MAX_DEPTH:
            self._state = "broken"
            return
        if self._stack:
            self._attach(value)
        else:
            self._root = value
        self._stack.append(_Open(value, followed(self._schema, schema)))
        self._state = "value"

    def _attach(self, value: Json) -> None:
        """Show a value in its container, in the place of its own growing text where that was shown."""
        top = self._stack[-1]
        grows = top.text_grows and not top.fresh
        if isinstance(top.value, list):
            self._changed |= not grows or top.value[-1] != value
            top.value[len(top.value) - grows :] = [value]
        elif top.key is not None:
            self._changed |= not grows or top.value[top.key] != value
            top.value[top.key] = value
        self._shown = True

    def _set_member(self, value: Json) -> None:
        top = self._stack[-1]
        self._attach(value)
        top.key, top.fresh, top.text_grows, self._state = None, True, False, "after"

    def _show_string(self) -> None:
        top = self._stack[-1]
        if top.text_grows and (string := self._text.value):
            self._attach(string)
            top.fresh = False

    def _close(self, closer: str, at: int) -> int:
        top = self._stack[-1]
        if (closer == "}") != isinstance(top.value, dict) or top.key is not None:
            return self._break(at)
        self._stack.pop()
        self._shown = True
        if not self._stack:
            self._state, self._changed = "done", self._changed or not top.value
            return at + 1
        above = self._stack[-1]
        above.key, self._state = None, "after"
        return at + 1

    def _break(self, at: int) -> int:
        if self._shown or self._only_conforming:
            self._state = "broken"
            return at
        # A bracket in prose: nothing was given yet, so the search goes on behind it.
        self._stack, self._state, self._held, self._root = [], "seek", "", None
        return at

    def _inner_schema(self) -> JsonSchema:
        top = self._stack[-1]
        if isinstance(top.value, dict):
            properties, others = members_of(self._schema, top.schema)
            return properties.get(str(top.key), others)
        first, rest = items_of(self._schema, top.schema)
        return first[len(top.value)] if len(top.value) < len(first) else rest

    def _copy(self) -> Json:
        """Copy the containers on the open path; closed containers do not change and are shared."""
        if not self._stack:
            return self._root
        inner: Json = None
        for container in reversed(self._stack):
            value: Json = dict(container.value) if isinstance(container.value, dict) else list(container.value)
            if inner is not None:
                value[_member_of(container) if isinstance(value, dict) else -1] = inner
            inner = value
        return inner


_STEPS = {
    "seek": PartialJson._seek,
    "value": PartialJson._value,
    "string": PartialJson._string,
    "token": PartialJson._token,
    "after": PartialJson._end_value,
    "colon": PartialJson._colon,
}


def _member_of(container: _Open) -> str | int:
    if isinstance(container.value, dict):
        return container.key if container.key is not None else ""
    return max(0, len(container.value) - 1)


def _past_space(text: str, at: int) -> int:
    space = _SPACE.match(text, at)
    return space.end() if space else at


def _free_text(root: JsonSchema, schema: JsonSchema) -> bool:
    """Whether a string here is prose rather than a word of a list, a date or an address."""
    schema = followed(root, schema)
    if not isinstance(schema, dict):
        return bool(schema)
    return "string" in accepted_types(root, schema) and not schema.keys() & {
        "enum",
        "const",
        "format",
        "pattern",
        "anyOf",
        "oneOf",
    }
