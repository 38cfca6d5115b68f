"""The call that is being read: announced once its name is certain, and its events from then on."""

from __future__ import annotations

from collections.abc import Callable
from typing import Protocol

from bardo.tools.declared import DeclaredTools
from bardo.tools.jsontext import escape
from bardo.tools.pieces import Pieces
from bardo.tools.scanner import Malformed, Scanner

MakeId = Callable[[], str]


class ArgumentSink(Protocol):
    """Takes arguments as JSON text, and notes on them."""

    def arguments(self, text: str) -> None: ...

    def note(self, why: str, raw: str = "") -> None: ...


class OpenCall:
    """At most one call at a time. `strict` is for calls no marker announced: their names must be declared."""

    def __init__(self, scanner: Scanner, pieces: Pieces, declared: DeclaredTools, make_id: MakeId) -> None:
        self._scanner = scanner
        self._pieces = pieces
        self._make_id = make_id
        self.declared = declared
        self.strict = False
        self.name = ""
        self.id = ""
        self.count = 0
        self.has_arguments = False
        self._parameters = 0

    @property
    def begun(self) -> bool:
        """Whether the call was announced."""
        return self._pieces.open

    def reset(self) -> None:
        """Forget the name and id of what was read before."""
        self.name = self.id = ""
        self.has_arguments = False
        self._parameters = 0

    def check_name(self) -> None:
        """Raise Malformed where there is no name, or where nothing but a declared name makes this a call."""
        if not self.name:
            raise Malformed("a tool's name is missing")
        if self.strict and not self.declared.knows(self.name):
            raise Malformed(f"no tool is named {self.name!r}")

    def begin(self) -> None:
        """Announce the call: from here on nothing is given back as text."""
        if self.begun:
            return
        self.check_name()
        self._scanner.release()
        self.count += 1
        self._pieces.start(self.id or self._make_id(), self.name)
        if not self.declared.knows(self.name):
            self.note(f"the request declares no tool {self.name!r}")

    def end(self, why: str = "") -> None:
        """End the call, and say what was wrong with it."""
        if self.begun:
            self._pieces.end()
        if why:
            self.note(why)
        self.reset()

    def arguments(self, text: str) -> None:
        """Pass on JSON text of the arguments."""
        self.has_arguments = self.has_arguments or bool(text)
        self._pieces.arguments(text)

    def key(self, name: str) -> None:
        """Begin one parameter of arguments that are put together here."""
        self.arguments(("{" if self._parameters == 0 else ", ") + f'"{escape(name)}": ')
        self._parameters += 1

    def close_parameters(self) -> None:
        """End arguments that are put together here; nothing where they came whole."""
        if self._parameters:
            self.arguments("}")
        elif not self.has_arguments:
            self.arguments("{}")

    def note(self, why: str, raw: str = "") -> None:
        """Say something about the latest call."""
        self._pieces.note(why, raw, index=self._pieces.index)
