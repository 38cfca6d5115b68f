"""Take well-known thinking markup out of a raw text, so that a draft in it is never taken for the answer.

This is the last line of defence, for texts nobody looked through before. Who knows the model's format removes its reasoning itself.
"""

from __future__ import annotations

import re
from bisect import bisect_right
from collections.abc import Iterator

from bardo.structured.scanning import sound_spans

_NAMES = r"think|thinking|thought|thoughts|reasoning|reflection|scratchpad|analysis|seed:think|mm:think"
# One right behind a quotation mark is spoken about, not opened.
_OPENS = re.compile(
    rf"(?<![\"'\\\w])(?:<(?:{_NAMES})>|◁think▷|\[THINK\]|<\|START_THINKING\|>|<\|begin_of_thought\|>"
    r"|<\|channel\|>(?:analysis|commentary)\b)",
    re.I,
)
_CLOSES = re.compile(
    rf"</(?:{_NAMES})>|◁/think▷|\[/THINK\]|<\|END_THINKING\|>|<\|end_of_thought\|>"
    r"|<\|(?:end|return|call)\|>|<\|channel\|>final\b[^<]{0,40}<\|message\|>",
    re.I,
)
_LEFT_OVER = re.compile(r"<\|(?:start|end|return|call|message|START_RESPONSE|END_RESPONSE|eot_id|im_end)\|>", re.I)
# Text after an end mark that no begin mark went before: servers whose template writes the begin mark leave it out.
_EATEN = re.compile(rf"</(?:{_NAMES})>|◁/think▷|\[/THINK\]|<\|END_THINKING\|>|<\|end_of_thought\|>", re.I)


def without_reasoning(text: str) -> str:
    """Return the text without thinking markup and what stands in it. A text that begins as JSON is returned as it is.

    Marks inside sound JSON are the model's own words: what an answer quotes is not markup.
    """
    start = text.lstrip()[:1]
    if start in ("{", '"') or (start == "[" and not _OPENS.match(text.lstrip())):
        return text
    if _OPENS.search(text) is None and _EATEN.search(text) is None:
        return text
    return _Marks(text).without_reasoning()


class _Marks:
    """The marks of one text that stand outside its JSON."""

    def __init__(self, text: str) -> None:
        self._text = text
        spans = sound_spans(text)
        self._begins = [begin for begin, _ in spans]
        self._ends = [end for _, end in spans]

    def without_reasoning(self) -> str:
        kept: list[str] = []
        position = 0
        while (opening := self._next(_OPENS, position)) is not None:
            kept.append(self._after_eaten(position, opening.start()))
            closing = self._next(_CLOSES, opening.end())
            if closing is None:
                position = len(self._text)
                break
            position = closing.end()
        eaten = list(self._matches(_EATEN, position, len(self._text)))
        if eaten:
            # A nested or doubled end mark: everything before the last one is thinking.
            return self._text[eaten[-1].end() :]
        return "".join([*kept, self._tidy(position)])

    def _tidy(self, position: int) -> str:
        """Return the rest without control words between its messages."""
        pieces: list[str] = []
        for mark in self._matches(_LEFT_OVER, position, len(self._text)):
            pieces += [self._text[position : mark.start()], " "]
            position = mark.end()
        return "".join([*pieces, self._text[position:]])

    def _after_eaten(self, begin: int, end: int) -> str:
        ends = list(self._matches(_EATEN, begin, end))
        return self._text[ends[-1].end() if ends else begin : end]

    def _next(self, pattern: re.Pattern[str], position: int) -> re.Match[str] | None:
        return next(self._matches(pattern, position, len(self._text)), None)

    def _matches(self, pattern: re.Pattern[str], begin: int, end: int) -> Iterator[re.Match[str]]:
        return (found for found in pattern.finditer(self._text, begin, end) if not self._in_json(found.start()))

    def _in_json(self, position: int) -> bool:
        place = bisect_right(self._begins, position) - 1
        return place >= 0 and position < self._ends[place]
