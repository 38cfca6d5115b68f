"""Read the tool calls in the text of one reply while it arrives.

Any cut of the text gives the same pieces once neighbours are joined. Text outside calls comes out verbatim. The beginning of a call is held
until its name is certain, and comes out as text, with a note, where it turns out to be none; from then on arguments come as they arrive.
"""

from __future__ import annotations

import re
from collections.abc import Sequence

from bardo.streams.fences import FenceTracker
from bardo.tools.calls import MakeId, OpenCall
from bardo.tools.declared import DeclaredTools
from bardo.tools.formats import ToolCallFormat
from bardo.tools.grammar import CallGrammar
from bardo.tools.pieces import Piece, Pieces
from bardo.tools.scanner import Malformed, Reading, Scanner, markers, shapes_of
from bardo.values.request import Tool

HOLD = 65_536
LEAST_HOLD = 256
"""Any marker and any name fit in."""
QUOTED = 200
_BRACKETS = ("{", "[")
_LINES = ("\n{", "\n[")
# Brackets that begin no list of calls: no name of a tool stands behind them, or it has no arguments.
_BLANK = r"[ \t\r\n]{0,64}+"
_NAME = rf"[^\W\d][\w.\-]{{0,200}}+{_BLANK}(?:[^\w.\-( \t\r\n]|\({_BLANK}[^\w) \t\r\n])"
_NO_LIST_OF_CALLS = re.compile(rf"(?:\[(?={_BLANK}(?:[^\w.\- \t\r\n]|[0-9]|{_NAME})))+")


class ToolCallReader:
    """Reads one text in `format`.

    `tools` are those the request declares: their schemas give types to parameters that are written as text. `make_id` names calls that come
    without an id. `hold` is the number of characters that may be held while nothing is certain, 256 or more.
    """

    def __init__(
        self,
        format: ToolCallFormat,  # noqa: A002
        *,
        tools: Sequence[Tool] = (),
        make_id: MakeId,
        hold: int = HOLD,
    ) -> None:
        self.format = format
        hold = max(hold, LEAST_HOLD)
        self._scanner = Scanner(hold)
        self._pieces = Pieces()
        self._shapes = shapes_of(format)
        self._fences = FenceTracker()
        self._call = OpenCall(self._scanner, self._pieces, DeclaredTools(tools), make_id)
        self._grammar = CallGrammar(self._scanner, self._call, format, hold=hold)
        self._openers = (*self._shapes.openers, *format.inline)
        self._lists_calls = "[" in format.inline and all(shape[0].kind == "python" for shape in self._shapes.calls)
        self._last = ""
        self._linewise = any(shape[0].kind == "json" for shape in self._shapes.calls)
        self._announced = False
        self._reading = self._reply()

    @property
    def calls(self) -> int:
        """How many calls have begun."""
        return self._call.count

    def feed(self, text: str) -> Sequence[Piece]:
        """Return what `text` makes certain."""
        if text:
            self._scanner.feed(text)
            next(self._reading, None)
        return self._pieces.take()

    def finish(self) -> Sequence[Piece]:
        """Return what was held, and end an open call. Nothing may be fed afterwards."""
        self._scanner.ended = True
        for _ in self._reading:
            pass
        return self._pieces.take()

    def _reply(self) -> Reading[None]:
        answered = bool(self.format.answer_leads) and (yield from self._scanner.choose(self.format.answer_leads))
        if self.format.leads:
            yield from self._lead()
        if self.format.bare and not answered:
            yield from self._bare_calls()
        if self.format.opens == "start":
            yield from self._calls_at_start()
            yield from self._scanner.pass_until((), self._text)
        while opener := (yield from self._next_opener()):
            yield from self._section(opener)

    def _next_opener(self) -> Reading[str]:
        answers = self.format.answers
        finder = markers((*self._openers, *answers))
        while True:
            mark = yield from self._scanner.pass_to(finder, self._text)
            if mark in answers:
                yield from self._scanner.choose(answers)
                continue
            if self._lists_calls and (no_calls := self._scanner.visible(_NO_LIST_OF_CALLS)):
                self._text(self._scanner.skip(len(no_calls)))
                continue
            # A call that nothing announces is an example where it is quoted.
            quoted = self._fences.inside or (mark in self.format.inline and self._last == "`")
            if not mark or not quoted:
                return mark
            self._text(self._scanner.skip())

    def _lead(self) -> Reading[None]:
        """Read a call of which the prompt holds the beginning."""
        yield from self._scanner.blank(self._text)
        if lead := (yield from self._scanner.stands(self.format.leads)):
            yield from self._section(lead)

    def _calls_at_start(self) -> Reading[None]:
        yield from self._scanner.blank(self._text)
        if opener := (yield from self._scanner.stands(self._shapes.openers)):
            self._call.strict = True
            yield from self._section(opener)
            self._call.strict = False

    def _bare_calls(self) -> Reading[None]:
        yield from self._scanner.blank(self._text)
        marked = yield from self._scanner.stands(self._shapes.openers)
        if not marked and (yield from self._grammar.fitting()):
            self._call.strict = True
            yield from self._section("")
            self._call.strict = False

    def _section(self, opener: str) -> Reading[None]:
        """Read calls until the section is over."""
        self._scanner.mark()
        strict = self._call.strict
        self._call.strict = strict or opener in self.format.inline
        yield from self._enter(opener)
        more = True
        while more:
            more = yield from (self._another() if (yield from self._one_call()) else self._next_line())
        self._call.strict = strict

    def _enter(self, opener: str) -> Reading[None]:
        part_of_call = opener in self.format.inline or any(first.startswith(opener) for first in self._shapes.firsts)
        self._announced = bool(opener) and not part_of_call
        if self._announced:
            yield from self._scanner.choose((opener,))

    def _one_call(self) -> Reading[bool]:
        """Read a call; False where there was none."""
        try:
            yield from self._scanner.blank()
            shape = yield from self._grammar.fitting()
            if shape is None:
                raise Malformed("what follows is no call")
            yield from self._grammar.read(shape)
            self._call.end()
        except Malformed as problem:
            if not self._call.begun:
                # A marker that is a part of its call was not read yet, and must not be found again.
                if self._scanner.untouched and (yield from self._scanner.peek()):
                    self._scanner.skip()
                self._give_back(problem.why)
                return False
            self._call.end(problem.why)
        self._scanner.mark()
        return True

    def _next_line(self) -> Reading[bool]:
        """After a line that was no call, read on to the next one of the section that may be; False where there is none."""
        if not (self._announced and self.format.end and self._linewise):
            return False
        if self._last != "\n" or not (yield from self._scanner.stands(_BRACKETS)):
            mark = yield from self._scanner.pass_until((*_LINES, *self._shapes.borders), self._text)
            if mark not in _LINES:
                return False
        self._scanner.mark()
        return True

    def _another(self) -> Reading[bool]:
        """Read up to the next call of the section; False where the section is over."""
        try:
            return (yield from self._between())
        except Malformed as problem:
            self._give_back(problem.why)
            return False

    def _between(self) -> Reading[bool]:
        yield from self._scanner.blank()
        separated = yield from self._scanner.choose(self.format.separators)
        yield from self._scanner.blank()
        if ended := (yield from self._scanner.choose(self.format.end)):
            return (yield from self._after_end(ended))
        if (yield from self._scanner.choose(self.format.answers)):
            self._scanner.mark()
            return False
        if opener := (yield from self._scanner.stands(self._shapes.openers)):
            yield from self._enter(opener)
            return True
        closes = self._announced and bool(self.format.end)
        if (closes or separated) and (yield from self._grammar.fitting(again=True)):
            return True
        if closes:
            return (yield from self._loose_end())
        self._text(self._scanner.release())
        return False

    def _after_end(self, ended: str) -> Reading[bool]:
        """White space between two sections belongs to neither; a second end of another kind belongs to the first."""
        self._scanner.mark()
        yield from self._scanner.blank()
        if (yield from self._scanner.choose(tuple(end for end in self.format.end if end != ended))):
            self._scanner.mark()
            yield from self._scanner.blank()
        if opener := (yield from self._scanner.stands(self._shapes.openers)):
            yield from self._enter(opener)
            return True
        self._text(self._scanner.release())
        return False

    def _loose_end(self) -> Reading[bool]:
        """Read on to where the section ends or goes on, which it should have done at once."""
        mark = yield from self._scanner.pass_until((*self._shapes.borders, *self._shapes.firsts))
        if not mark:
            text = self._scanner.release()
            self._text(text)
            if text.strip():
                self._pieces.note("the call has no end", text[:QUOTED])
            return False
        self._pieces.note("something else stands after the call", self._scanner.release(), index=self._pieces.index)
        self._scanner.mark()
        if ended := (yield from self._scanner.choose(self.format.end)):
            return (yield from self._after_end(ended))
        yield from self._enter(mark)
        return True

    def _give_back(self, why: str) -> None:
        """Give the held text back as text. JSON without an announcement is an ordinary answer and needs no note."""
        text = self._scanner.release()
        self._text(text)
        if not self._call.strict:
            self._pieces.note(why, text[:QUOTED])

    def _text(self, text: str) -> None:
        self._last = text[-1:] or self._last
        self._fences.feed(text)
        self._pieces.text(text)
