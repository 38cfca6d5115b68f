"""The value of one parameter on its way from text to JSON."""

from __future__ import annotations

import json
from collections.abc import Callable, Collection

from bardo.tools.calls import ArgumentSink, OpenCall
from bardo.tools.declared import TEXT, as_json
from bardo.tools.jsontext import escape

_WRAPPED = frozenset({"object", "string"})


class Value:
    """Text goes on at once; what must be converted to one of `types` is held, up to `hold` characters."""

    def __init__(self, call: ArgumentSink, types: frozenset[str], hold: int) -> None:
        self._call = call
        self._types = types
        self._hold = hold
        self._held: list[str] = []
        self._size = 0
        self._text = False
        if types <= TEXT:
            self._go_on_as_text()

    def give(self, text: str) -> None:
        """Add a piece of the value."""
        if self._text:
            self._call.arguments(escape(text))
            return
        self._held.append(text)
        self._size += len(text)
        if self._size > self._hold:
            self._call.note("a value is too long to be read by its type, and stays text")
            self._go_on_as_text()

    def close(self) -> None:
        """The value is complete."""
        if self._text:
            self._call.arguments('"')
            return
        text = "".join(self._held)
        converted = as_json(text, self._types)
        if converted is None:
            self._call.note("a value is not of its declared type, and stays text", text)
        self._call.arguments(f'"{escape(text)}"' if converted is None else converted)

    def cut_off(self) -> None:
        """The reply ended inside: nothing is closed, so that no client takes the value for whole."""
        self._call.arguments("".join(self._held))

    def _go_on_as_text(self) -> None:
        self._text = True
        self._call.arguments('"' + escape("".join(self._held)))
        self._held = []


class WrappedValue(Value):
    """The value of a parameter that the tool does not declare, and that may hold all arguments, which are `declared`, as one object."""

    def __init__(self, call: OpenCall, key: str, declared: Collection[str], hold: int) -> None:
        super().__init__(call, _WRAPPED, hold)
        self._whole = call
        self._key = key
        self._declared = declared

    def settle(self, *, alone: bool) -> None:
        """The value is complete; `alone`: no other parameter follows."""
        inner = as_json("".join(self._held), frozenset({"object"})) if alone and not self._text else None
        if inner is None or json.loads(inner).keys().isdisjoint(self._declared):
            self._begin()
            self.close()
            return
        self._call.arguments(inner)
        self._call.note(f"the arguments stood in a parameter {self._key!r} of their own")

    def cut_off(self) -> None:
        self._begin()
        super().cut_off()

    def _go_on_as_text(self) -> None:
        self._begin()
        super()._go_on_as_text()

    def _begin(self) -> None:
        if not self._text:
            self._whole.key(self._key)


class TrimmedValue:
    """Passes text on but for a line break at its very end."""

    def __init__(self, give: Callable[[str], None]) -> None:
        self._give = give
        self._held = ""

    def give(self, text: str) -> None:
        """Add a piece of the text."""
        text = self._held + text
        line = text[:-1] if text.endswith(("\n", "\r")) else text
        line = line[:-1] if text.endswith("\r\n") else line
        self._held = text[len(line) :]
        if line:
            self._give(line)

    def release(self) -> None:
        """Return the line break back after all."""
        if self._held:
            self._give(self._held)
