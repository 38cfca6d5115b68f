"""What is said to the model between two of its turns.

Gemini matches the results of tools with the calls by name and order, and counts them in the one content that follows the calls: "Please
ensure that the number of function response parts is equal to the number of function call parts of the function call turn".
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

Part = dict[str, Any]


class UserTurn:
    """Collects contents of one turn, whose results come first, in one content, in the order of the calls before them."""

    def __init__(self) -> None:
        self._order: dict[str, int] = {}
        self._results: list[tuple[str, list[Part]]] = []
        self._content: Part = {}
        self._beside: list[Part] = []
        self._others: list[Part] = []

    @property
    def is_empty(self) -> bool:
        """Whether nothing has been said in it."""
        return not (self._results or self._others)

    def copy(self) -> UserTurn:
        """Return a turn that says the same, and goes on by itself."""
        copied = UserTurn()
        copied._order, copied._results, copied._content = {**self._order}, [*self._results], self._content
        copied._beside, copied._others = [*self._beside], [*self._others]
        return copied

    def follow(self, call_ids: Iterable[str]) -> None:
        """Note calls that the model made before this turn, in order."""
        for call_id in call_ids:
            self._order.setdefault(call_id, len(self._order))

    def add(self, content: Part) -> None:
        """Add a content without results."""
        self._others.append(content)

    def add_results(self, content: Part, results: Iterable[tuple[str, list[Part]]], beside: Iterable[Part]) -> None:
        """Add a content with results: the parts of each by the id of its call, and the other parts. Its own `parts` are not looked at."""
        self._content = self._content or content
        self._results.extend(results)
        self._beside.extend(beside)

    def contents(self) -> list[Part]:
        """Return all contents. Results of calls that the model did not make before this turn are the last of the results."""
        if not self._results:
            return [*self._others]
        unknown = len(self._order)
        ordered = sorted(self._results, key=lambda result: self._order.get(result[0], unknown))
        parts = [part for _, written in ordered for part in written]
        return [{**self._content, "parts": [*parts, *self._beside]}, *self._others]
