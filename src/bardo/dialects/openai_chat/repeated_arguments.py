"""The arguments of a call that a server writes in two fields at once, `tool_calls` and the older `function_call`."""

from __future__ import annotations


class RepeatedArguments:
    """Gives each piece once. `pieces` are the pieces so far; whichever field is ahead adds to them, the other repeats them."""

    __slots__ = ("_pieces", "_places", "_strays")

    def __init__(self, pieces: list[str], first: str) -> None:
        self._pieces = pieces
        # Where each field stands in `pieces`, as a piece and a place in it; None at the end.
        self._places: dict[str, tuple[int, int] | None] = {first: None}
        self._strays: set[str] = set()

    def take(self, field: str, text: str) -> str:
        """Return what of `text` has not been given yet. A field that says something else is not listened to any more."""
        if field in self._strays or not text:
            return ""
        place = self._places.get(field, (0, 0))
        rest: str | None = text
        if place is not None:
            rest, place = self._beyond(text, *place)
        if rest is None:
            self._strays.add(field)
            return ""
        self._places[field] = place
        if rest:
            end = (len(self._pieces), 0)
            self._places = {name: end if at is None and name != field else at for name, at in self._places.items()}
            self._places[field] = None
        return rest

    def _beyond(self, text: str, piece: int, begin: int) -> tuple[str | None, tuple[int, int] | None]:
        """Return what `text` has beyond the pieces from this place on, and where it ends; None where it differs from them."""
        at = 0
        while piece < len(self._pieces) and at < len(text):
            held = self._pieces[piece]
            size = min(len(held) - begin, len(text) - at)
            if held[begin : begin + size] != text[at : at + size]:
                return None, None
            at, begin = at + size, begin + size
            if begin == len(held):
                piece, begin = piece + 1, 0
        return text[at:], (piece, begin)
