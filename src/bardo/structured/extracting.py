"""Read one typed answer out of a model's text: strictly where it is JSON, with bounded repair where it is almost JSON.

The caller's own schema is the judge of every reading. The last conforming value wins, and text inside reasoning markup is never the
answer. A value that a cut reply ended in is never the answer either. `extract_strict` takes microseconds; `extract_repair` may take
milliseconds for each thousand characters of broken text, so whoever serves others runs it in a thread.

What a type must offer so that a model can be asked for it and its answer be read is the documents' `StructuredOutput`.
"""

from __future__ import annotations

import re
from bisect import bisect_right
from collections.abc import Callable, Iterator, Mapping
from typing import Any, Literal, Protocol, Self, TypeVar, runtime_checkable

import msgspec

from bardo.structured.bounds import MAX_ANSWER, MAX_READ
from bardo.structured.completeness import settled
from bardo.structured.extraction import Extraction, Failure, Json, JsonSchema, UnusableAnswer
from bardo.structured.judging import TooMuchWork
from bardo.structured.reading import ParsedValue
from bardo.structured.scanning import sound_spans, strict_values
from bardo.structured.search import Search, may_answer
from bardo.structured.types import WrongShape, schema_of
from bardo.structured.validation import Checker, checker
from bardo.values.events import FinishReason
from bardo.values.once import pattern

_NAMES = r"think|thinking|thought|thoughts|reasoning|reflection|scratchpad|analysis|seed:think|mm:think"
# One right behind a quotation mark is spoken about, not opened.
_OPENS = pattern(
    rf"(?<![\"'\\\w])(?:<(?:{_NAMES})>|◁think▷|\[THINK\]|<\|START_THINKING\|>|<\|begin_of_thought\|>"
    r"|<\|channel\|>(?:analysis|commentary)\b)",
    re.I,
)
_CLOSES = pattern(
    rf"</(?:{_NAMES})>|◁/think▷|\[/THINK\]|<\|END_THINKING\|>|<\|end_of_thought\|>"
    r"|<\|(?:end|return|call)\|>|<\|channel\|>final\b[^<]{0,40}<\|message\|>",
    re.I,
)
_LEFT_OVER = pattern(r"<\|(?:start|end|return|call|message|START_RESPONSE|END_RESPONSE|eot_id|im_end)\|>", re.I)
# Text after an end mark that no begin mark went before: servers whose template writes the begin mark leave it out.
_EATEN = pattern(rf"</(?:{_NAMES})>|◁/think▷|\[/THINK\]|<\|END_THINKING\|>|<\|end_of_thought\|>", re.I)


def without_reasoning(text: str) -> str:
    """Return the text without thinking markup and what stands in it. A text that begins as JSON is returned as it is.

    Marks inside sound JSON are the model's own words: what an answer quotes is not markup.

    This is the last line of defence, for texts that no parser of the model's format has read: a draft in the thinking is never taken for
    the answer.
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
        pieces: list[str] = []
        position = 0
        while (opening := self._next(_OPENS, position)) is not None:
            pieces.append(self._after_eaten(position, opening.start()))
            closing = self._next(_CLOSES, opening.end())
            if closing is None:
                position = len(self._text)
                break
            position = closing.end()
        eaten = list(self._matches(_EATEN, position, len(self._text)))
        if eaten:
            # A nested or doubled end mark: everything before the last one is thinking.
            return self._text[eaten[-1].end() :]
        return "".join([*pieces, self._tidy(position)])

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
        return (match for match in pattern.finditer(self._text, begin, end) if not self._in_json(match.start()))

    def _in_json(self, position: int) -> bool:
        place = bisect_right(self._begins, position) - 1
        return place >= 0 and position < self._ends[place]


def extract(
    text: str,
    schema: JsonSchema | Checker | type,
    *,
    finish: FinishReason | None = None,
    cut: bool = False,
    refused: bool = False,
    reasoning_removed: bool = False,
) -> Extraction:
    """Return the answer a text holds, judged by `schema`; its faults are in the Extraction and never raised.

    `schema` may be a type too, as for `response_type` of a client: then `value` is an instance of it where there is no error.

    `finish` is why the provider says the reply ended. With "stop", or where it is not given, the text counts as all that the model had to
    say: closing brackets that are missing behind a complete value are repaired, and `repaired` and `truncated` tell so. With "unknown"
    they are not. With "length" and the like only a value that was closed before the end is an answer, with `truncated_after`, and the
    rest is `truncated`. An open
    string, a key without its value or a comma at the end is `truncated` with every finish. `cut` says the same as `finish="length"`,
    `refused` as `finish="refusal"`. `reasoning_removed`: the text is known to hold no thinking markup. Raises InvalidRequest where the
    schema is not one that can be used.
    """
    if isinstance(schema, Checker | Mapping | bool):
        judge, decode = checker(schema), None
    else:
        typed = schema_of(schema)
        judge, decode = checker(typed.schema), typed.decode
    cut = cut or was_cut(finish)
    refused = refused or finish == "refusal"
    end_known = finish != "unknown"
    try:
        extraction = extract_strict(text, judge, cut=cut, refused=refused, reasoning_removed=reasoning_removed)
        if extraction is None:
            extraction = extract_repair(text, judge, cut=cut, end_known=end_known, reasoning_removed=reasoning_removed)
    except TooMuchWork as problem:
        return too_much_work(text, problem)
    return extraction if decode is None or not extraction.ok else _typed(extraction, decode)


def too_much_work(text: str, problem: TooMuchWork) -> Extraction:
    """Return the error of an answer that could not be judged within the bounds."""
    return Extraction(error="too_complex", message=f"the answer cannot be judged by its schema: {problem}", text=text)


def _typed(extraction: Extraction, decode: Callable[[Json], Any]) -> Extraction:
    """Return the extraction with a value of the caller's type, or with what the type's own checks say."""
    try:
        return msgspec.structs.replace(extraction, value=decode(extraction.value))
    except WrongShape as problem:
        failure = Failure(path=problem.path, message=problem.message, keyword="type")
        return msgspec.structs.replace(extraction, error="invalid", message=str(problem), failures=(failure,))


def was_cut(finish: FinishReason | None) -> bool:
    """Return whether a reply that ended for this reason may have ended in the middle of its answer."""
    return finish in ("length", "pause", "error")


def extract_sound(text: str, judge: Checker, *, cut: bool = False) -> Extraction | None:
    """Return the answer where the text is one JSON value and nothing else, and conforms. Raises TooMuchWork."""
    if len(text) > MAX_ANSWER:
        raise TooMuchWork(f"{len(text):,} characters are more than {MAX_ANSWER:,}")
    try:
        value = msgspec.json.decode(text)
    except (ValueError, RecursionError):
        return None
    if cut and not settled(ParsedValue(value, 0, len(text)), text):
        return None
    return Extraction(value=value, text=text, truncated_after=cut) if judge.accepts(value) else None


def extract_strict(
    text: str,
    schema: JsonSchema | Checker,
    *,
    cut: bool = False,
    refused: bool = False,
    reasoning_removed: bool = False,
) -> Extraction | None:
    """Return the answer where it is sound JSON, alone or with prose around it, or None if `extract_repair` has to look.

    Raises TooMuchWork where the text is too long, or the schema asks for too much.
    """
    judge = checker(schema)
    if refused:
        return Extraction(error="refusal", message="the model refused to answer", text=text)
    if (sound := extract_sound(text, judge, cut=cut)) is not None:
        return sound
    plain = text if reasoning_removed else without_reasoning(text)
    extraction = strict_values(plain)
    if not extraction:
        return None
    answer = Search(judge, text).as_it_stands(value for value in extraction if may_answer(value, plain, cut=cut))
    return answer if answer is None or not cut else msgspec.structs.replace(answer, truncated_after=True)


def extract_repair(
    text: str,
    schema: JsonSchema | Checker,
    *,
    cut: bool = False,
    end_known: bool = True,
    reasoning_removed: bool = False,
) -> Extraction:
    """Return the answer of a text `extract_strict` found none in. Work is bounded whatever the text is.

    `end_known` False: it is unknown why the text ends, so a value is not closed there. Raises TooMuchWork where the schema asks for too
    much.
    """
    plain = text if reasoning_removed else without_reasoning(text)
    search = Search(checker(schema), text)
    if len(plain) > MAX_READ:
        return search.too_complex(f"{len(plain):,} characters are too many to repair")
    extraction = search.repaired(plain.removeprefix("\ufeff"), cut=cut)
    if cut and extraction.ok:
        return msgspec.structs.replace(extraction, truncated_after=True)
    if end_known or not (extraction.ok and extraction.truncated):
        return extraction
    return msgspec.structs.replace(extraction, error="truncated", message="the text ends inside the answer")


class ResponseSchema(msgspec.Struct, frozen=True, kw_only=True):
    """A schema with the name providers want for it. `strict` asks them to enforce it to the letter."""

    name: str
    schema: JsonSchema
    strict: bool = True
    description: str = ""


@runtime_checkable
class StructuredOutput(Protocol):
    """A type a model can answer with. Each also works from free text, for models that cannot be held to a schema."""

    @classmethod
    def schema(cls) -> ResponseSchema:
        """Return the schema to ask for."""
        ...

    @classmethod
    def from_json(cls, text: str | bytes) -> Self:
        """Read JSON that conforms to the schema. Raises UnusableAnswer for any other text."""
        ...

    @classmethod
    def from_text(cls, text: str) -> Self:
        """Read an answer given in free text as well as it can be read. Raises UnusableAnswer where nothing of it can."""
        ...

    @classmethod
    def prompt_guidance(cls) -> str:
        """Return what to add to a prompt where the schema cannot be enforced."""
        ...

    def validate(self, issues: list[str]) -> None:
        """Add one line to `issues` for each value that makes no sense: a number out of its range, a word that is not in its list."""
        ...


Output = TypeVar("Output", bound=StructuredOutput)
Verdict = Literal["valid", "invalid_content"]


class ValidationResult(msgspec.Struct, frozen=True, kw_only=True):
    """The result of a type's own checks of a value that already conforms to its schema."""

    issues: tuple[str, ...] = ()

    @property
    def valid(self) -> bool:
        """Whether there are no issues."""
        return not self.issues

    @property
    def verdict(self) -> Verdict:
        """The documents' word for it."""
        return "valid" if self.valid else "invalid_content"


def validate(value: StructuredOutput) -> ValidationResult:
    """Return the faults of a value's content, by its own `issues`: ranges and lists of words. The schema was checked when it was read."""
    issues: list[str] = []
    value.validate(issues)
    return ValidationResult(issues=tuple(issues))


def parse_response(kind: type[Output], text: str, *, schema_enforced: bool) -> Output:
    """Read an answer: as JSON where the schema was enforced; else as JSON found in the text, and where there is none as free text.

    Raises UnusableAnswer, also for JSON that the text ends in: words are not read out of it.
    """
    if schema_enforced:
        return kind.from_json(text)
    extraction = extract(text, kind.schema().schema)
    if extraction.error == "truncated":
        raise UnusableAnswer(extraction)
    return kind.from_json(msgspec.json.encode(extraction.value)) if extraction.ok else kind.from_text(text)
