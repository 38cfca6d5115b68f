"""Give a reply back as one text, with the opener that the prompt ended with in front of it.

This separates nothing. It is for callers who separate reasoning themselves, from text that opens what it closes.
"""

from collections.abc import Sequence

from bardo.reasoning.formats import ReasoningFormat
from bardo.reasoning.splitter import Segment


class RestoredOpener:
    """Reads one reply. An opener that the reply begins with is not doubled; a reply without text stays empty."""

    def __init__(self, format: ReasoningFormat, starts_inside: bool | None = None) -> None:  # noqa: A002
        inside = format.starts_inside is True if starts_inside is None else starts_inside
        self.notes: list[str] = []
        self._opener = format.restores if inside else ""
        self._held = ""

    @property
    def inside(self) -> bool:
        """Never, as nothing is separated."""
        return False

    def feed(self, item: str) -> Sequence[Segment]:
        if not self._opener:
            return (Segment(False, item),) if item else ()
        self._held += item
        if len(self._held) < len(self._opener) and self._opener.startswith(self._held):
            return ()
        return self.finish()

    def finish(self) -> Sequence[Segment]:
        """Return what was held until it was known whether it is the opener."""
        held, opener = self._held, self._opener
        self._held = self._opener = ""
        if not held:
            return ()
        return (Segment(False, held if held.startswith(opener) else opener + held),)
