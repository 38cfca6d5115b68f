"""What a request loses on its way to a dialect, each kind of loss told once; and what a reply that is written must say of its calls."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from bardo.values.blocks import Carried, Opaque, ToolCallBlock, UnknownBlock
from bardo.values.degradation import Degradation
from bardo.values.request import Request


class Losses:
    """Collects degradations for `dialect`, which people call `title`. Those of one name and key are one.

    `own_format` is the format of opaque state that the dialect takes back, None where it takes none; `reasoning_why` says why reasoning in
    any other format is lost.
    """

    def __init__(self, dialect: str, title: str, *, own_format: str | None = None, reasoning_why: str = "") -> None:
        self.dialect = dialect
        self._title = title
        self._own_format = own_format
        self._reasoning_why = reasoning_why or f"{title} takes earlier thinking as text only"
        self._by_key: dict[tuple[str, str], Degradation] = {}

    @property
    def all(self) -> tuple[Degradation, ...]:
        """All of them, in order."""
        return tuple(self._by_key.values())

    def lose(self, what: str, asked: Any, why: str, *, sent: Any = None, key: str = "") -> None:
        """Add a loss, unless one of its name and `key` is there."""
        self._by_key.setdefault((what, key), Degradation(what, asked=asked, sent=sent, why=why))

    def lose_each(self, what: str, asked: Any, why: str, *, sent: Any = None) -> None:
        """Add a loss, once for each value of `asked`."""
        self.lose(what, asked, why, sent=sent, key=str(asked))

    def add_all(self, degraded: Iterable[Degradation]) -> None:
        """Add degradations that another function found."""
        for one in degraded:
            self._by_key.setdefault((one.what, one.why), one)

    def lose_states(self, states: Iterable[Opaque], *, sent: str | None = None) -> None:
        """Report opaque state that the dialect does not take back; `sent` is what was left of the reasoning."""
        for state in states:
            if state.format != self._own_format:
                self.lose_reasoning(state.format, sent=sent)

    def lose_reasoning(self, form: str, why: str = "", *, sent: str | None = None) -> None:
        """Report reasoning of a format that is not sent, or of which only `sent` is left."""
        self.lose("reasoning", form or "unsigned", why or self._reasoning_why, sent=sent, key=form)

    def lose_unknown(self, block: UnknownBlock) -> None:
        """Report a block that only its own dialect knows."""
        kind = block.value.get("type") if isinstance(block.value, dict) else None
        self.lose(f"{block.dialect} {kind or 'content'}", kind, "a block only its own dialect knows", key=str(kind))

    def own_fields(self, carried: Carried | None) -> dict[str, Any]:
        """Return the fields of this dialect; those of another are lost."""
        if carried is None:
            return {}
        if carried.dialect == self.dialect:
            return carried.fields
        for name, value in carried.fields.items():
            self.lose(name, value, f"a field of {carried.dialect}")
        return {}

    def own_extra(self, request: Request) -> dict[str, Any]:
        """Return the request's further fields where it came in this dialect; those of another are lost."""
        if request.dialect == self.dialect:
            return request.extra
        for name, value in request.extra.items():
            self.lose(name, value, f"{self._title} has no such field")
        return {}


def with_wrapped(bardo: dict[str, Any], calls: Iterable[ToolCallBlock], *, what: str, key: str) -> dict[str, Any]:
    """Add to bardo's own fields which calls have arguments that are no JSON object, so that their text stands under `key` of one."""
    why = "the model's arguments are no JSON object, so their text stands under this key"
    lost = [{"what": what, "asked": call.id, "sent": key, "why": why} for call in calls]
    before = bardo.get("degraded")
    return {**bardo, "degraded": [*(before if isinstance(before, list) else ()), *lost]} if lost else bardo
