"""Know whether a text, read in pieces, has arrived inside a fenced code block.

Only the beginning of a line decides, so no more than that is kept.
"""

from __future__ import annotations

import re

FENCES = ("```", "~~~")
LINE_LIMIT = 200
FENCE_LINE = re.compile(r"[ \t]*(`{3,}|~{3,})(.*)", re.DOTALL)


class FenceTracker:
    """Follows the fences of Markdown: a line that begins with three or more backticks or tildes.

    A block ends at a line that holds only a run of the same character, as long as the first or longer.
    """

    __slots__ = ("_decided", "_fence", "_line")

    def __init__(self) -> None:
        self._fence = ""
        self._line = ""
        self._decided = False

    @property
    def inside(self) -> bool:
        """Whether what comes next is fenced; the line that opens a fence counts as fenced."""
        return bool(self._fence) or _opening_run(self._line) != ""

    def feed(self, text: str) -> None:
        """Read on."""
        if "\n" not in text:
            if not self._decided:
                self._begin_line(self._line + text)
            return
        seen = self._line + text
        if any(fence in seen for fence in FENCES):
            for line in seen.split("\n")[:-1]:
                self._end_line(line[:LINE_LIMIT])
        begin = seen.rfind("\n") + 1
        self._begin_line(seen[begin:])

    def _begin_line(self, line: str) -> None:
        self._line = line[:LINE_LIMIT]
        # Whatever comes later, this line is no fence, or is as long as any that counts.
        self._decided = len(line) >= LINE_LIMIT or line.lstrip(" \t")[:1] not in ("", "`", "~")

    def _end_line(self, line: str) -> None:
        if not self._fence:
            self._fence = _opening_run(line)
        elif _closes(line, self._fence):
            self._fence = ""


def _opening_run(line: str) -> str:
    fence = FENCE_LINE.match(line)
    # A line such as ```code``` is a code span: what follows the opening run of a fence holds no backtick.
    if fence is None or (fence[1][0] == "`" and "`" in fence[2]):
        return ""
    return fence[1]


def _closes(line: str, fence: str) -> bool:
    closing = FENCE_LINE.match(line)
    return closing is not None and closing[1].startswith(fence) and not closing[2].strip()
