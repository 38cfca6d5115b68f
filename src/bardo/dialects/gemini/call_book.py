"""Which result answers which call, where neither has an id."""

from __future__ import annotations

from collections import deque


class CallBook:
    """The calls of a conversation that nobody answered yet, in order."""

    def __init__(self) -> None:
        self._by_name: dict[str, deque[str]] = {}
        self._answered: set[str] = set()
        self._count = 0

    def called(self, name: str, own_id: str | None) -> str:
        """Note a call and return its id, made up where it has none."""
        call_id = own_id or f"call_{self._count}"
        self._count += 1
        self._answered.discard(call_id)
        self._by_name.setdefault(name, deque()).append(call_id)
        return call_id

    def answered(self, name: str, own_id: str | None) -> str:
        """Return the id of the call that a result answers: its own, or else that of the turn's next open call of that name."""
        waiting = self._by_name.get(name, deque())
        while own_id is None and waiting:
            call_id = waiting.popleft()
            if call_id not in self._answered:
                own_id = call_id
        self._answered.add(own_id or "")
        return own_id or f"call_{name}"

    def new_turn(self) -> None:
        """The model speaks again: what was not answered by now stays so."""
        self._by_name.clear()
