"""What a request loses on its way, each kind of loss told once."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from bardo.dialects.anthropic_messages.words import FORMAT, NAME
from bardo.values.blocks import Carried, Opaque
from bardo.values.degradation import Degradation


class Losses:
    """Collects degradations. Those with the same key are one."""

    def __init__(self) -> None:
        self._by_key: dict[tuple[str, str], Degradation] = {}

    @property
    def all(self) -> tuple[Degradation, ...]:
        """All of them, in order."""
        return tuple(self._by_key.values())

    def add_all(self, degraded: Iterable[Degradation]) -> None:
        """Add what somebody else found."""
        for one in degraded:
            self._by_key.setdefault((one.what, one.why), one)

    def lose(self, what: str, asked: Any, why: str, *, sent: Any = None, key: str = "") -> None:
        """Add a loss, unless one of its name and `key` is there."""
        self._by_key.setdefault((what, key), Degradation(what, asked=asked, sent=sent, why=why))

    def lose_state(self, states: tuple[Opaque, ...]) -> None:
        """Report opaque state that only its own provider reads."""
        for state in states:
            if state.format != FORMAT:
                self.lose_reasoning(state.format)

    def lose_reasoning(self, form: str) -> None:
        """Report reasoning of a format that Anthropic does not take."""
        self.lose(
            "reasoning", form or "unsigned", "only thinking that Anthropic signed may be sent back to it", key=form
        )

    def own_fields(self, carried: Carried | None) -> dict[str, Any]:
        """Return the fields of this dialect; those of another are lost."""
        if carried is None:
            return {}
        if carried.dialect == NAME:
            return carried.fields
        for name, value in carried.fields.items():
            self.lose(name, value, f"a field of {carried.dialect}")
        return {}
