"""Know whether text, read in pieces, stands inside a fenced code block. Only the beginning of a line decides, and no more is kept."""

from __future__ import annotations

import re

LINE_LIMIT = 200
_FENCE = re.compile(r"[ \t]*(?P<run>`{3,}|~{3,})(?P<rest>.*)", re.DOTALL)


class Fences:
    """Follows the fences of Markdown: a block ends at a line with nothing but a run of its own character, as long or longer."""

    __slots__ = ("_line", "_open")

    def __init__(self) -> None:
        self._open = ""
        self._line = ""

    @property
    def inside(self) -> bool:
        """Whether what comes next is fenced; the line that opens a fence counts as fenced."""
        return bool(self._open or _opener(self._line))

    def feed(self, text: str) -> None:
        """Read on."""
        if "\n" not in text:
            self._line = (self._line + text[:LINE_LIMIT])[:LINE_LIMIT]
            return
        seen = self._line + text
        lines = seen.split("\n") if "```" in seen or "~~~" in seen else ("", seen[seen.rfind("\n") + 1 :])
        for line in lines[:-1]:
            self._end_line(line[:LINE_LIMIT])
        self._line = lines[-1][:LINE_LIMIT]

    def _end_line(self, line: str) -> None:
        if not self._open:
            self._open = _opener(line)
        elif (found := _FENCE.match(line)) and found["run"].startswith(self._open) and not found["rest"].strip():
            self._open = ""


def _opener(line: str) -> str:
    found = _FENCE.match(line)
    # What follows the opening run of backticks holds no backtick, or else it is a span of code.
    if found is None or (found["run"][0] == "`" and "`" in found["rest"]):
        return ""
    return found["run"]
