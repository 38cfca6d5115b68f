"""What could not be said in a request: each difference once."""

from __future__ import annotations

from typing import Any

from bardo.dialects.openai_responses.state import NAME
from bardo.values.blocks import Carried, Opaque
from bardo.values.degradation import Degradation


class Notes:
    """Collects degradations."""

    def __init__(self) -> None:
        self._found: dict[tuple[str, str], Degradation] = {}

    @property
    def found(self) -> tuple[Degradation, ...]:
        """All of them, in order."""
        return tuple(self._found.values())

    def add(self, what: str, *, asked: Any, why: str, sent: Any = None, key: str = "") -> None:
        """Note a difference, unless `what` (with `key`) was noted before."""
        self._found.setdefault((what, key), Degradation(what, asked=asked, sent=sent, why=why))

    def once(self, what: str, *, asked: Any, why: str) -> None:
        """Note a difference once for each thing asked."""
        self.add(what, asked=asked, why=why, key=str(asked))

    def foreign(self, carried: Carried | None) -> None:
        """Note the fields of another dialect that cannot be written."""
        if carried is not None and carried.dialect != NAME:
            for name, value in carried.fields.items():
                self.add(name, asked=value, why=f"{NAME} has no such field")

    def state(self, states: tuple[Opaque, ...]) -> None:
        """Note opaque state that means nothing to a provider of this dialect."""
        for opaque in states:
            self.reasoning(opaque.format, "this provider cannot read opaque state of that format")

    def reasoning(self, form: str, why: str) -> None:
        """Note reasoning that was left out, once for each format."""
        self.once("reasoning", asked=form, why=why)
