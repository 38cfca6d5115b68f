"""Read the typed answer out of a model's text, decide whether the model is asked again, and join the further reply to the earlier one.

The strict path takes microseconds. `read_closely` may take milliseconds for broken text, so whoever serves others runs it in a thread.
"""

from __future__ import annotations

from collections.abc import Sequence

import msgspec
from msgspec.structs import replace

from bardo.planning.typed_answer import AnswerPlan, AnswerValidator
from bardo.structured import (
    Extraction,
    Failure,
    Provenance,
    extract_repair,
    extract_sound,
    extract_strict,
    retry_message,
    with_defaults,
    worth_retrying,
)
from bardo.values.blocks import TextBlock
from bardo.values.degradation import Degradation
from bardo.values.events import (
    BlockFields,
    ContentChunk,
    Event,
    OpaqueState,
    RefusalChunk,
    ReplyFields,
    ReplyStart,
    ThinkChunk,
    ThinkEnd,
    ThinkStart,
    ToolCallChunk,
    ToolCallEnd,
    ToolCallStart,
    UnknownContent,
    UsageUpdate,
)
from bardo.values.request import Message
from bardo.values.usage import Usage, UsageDetails

_MAX_FED_BACK = 20_000
_MAX_NAMES = 300
_WITHOUT_VALUE = ("no_json", "refusal", "too_complex")


class AnswerText(msgspec.Struct, frozen=True, kw_only=True):
    """What a model answered. `cut`: its reply may have ended in the middle of the answer. `plain`: no thinking can stand in the text.

    `end_known` False: the provider did not say why the reply ended.
    """

    text: str
    refused: bool = False
    cut: bool = False
    end_known: bool = True
    plain: bool = False


class AnswerReading(msgspec.Struct, frozen=True):
    """An answer that was read. `verbatim`: the text itself is the JSON the caller gets."""

    extraction: Extraction
    verbatim: bool = False

    @property
    def text(self) -> str:
        """The answer as JSON text."""
        return self.extraction.text if self.verbatim else msgspec.json.encode(self.extraction.value).decode()


def read_strictly(answer: AnswerPlan, said: AnswerText) -> AnswerReading | None:
    """Return the answer where it is sound JSON, or None if `read_closely` has to look."""
    if said.refused:
        return AnswerReading(Extraction(error="refusal", message="the model refused to answer", text=said.text))
    sound = None if answer.plan.changes_answers else extract_sound(said.text, answer.judge, cut=said.cut)
    if sound is not None:
        return AnswerReading(sound, verbatim=True)
    found = extract_strict(said.text, answer.read_by, cut=said.cut, reasoning_removed=said.plain)
    if found is None or not found.ok:
        return None
    restored = _restored(answer, found)
    return AnswerReading(restored) if restored.ok else None


def read_closely(answer: AnswerPlan, said: AnswerText) -> AnswerReading:
    """Return the best that can be read, repaired where it has to be. Work is bounded whatever the text is."""
    found = _restored(answer, _closely(answer, said, asked=True))
    if not found.ok and answer.plan.changes_answers:
        # Models that are not held to the form they were asked for may answer in the caller's own.
        own = _closely(answer, said, asked=False)
        found = own if _better(answer, own, found) else found
    return AnswerReading(found)


def _better(answer: AnswerPlan, one: Extraction, other: Extraction) -> bool:
    """Whether one reading is nearer to the caller's schema: its failures are the ones worth telling."""
    if one.ok or other.error in _WITHOUT_VALUE:
        return one.ok or one.error == "invalid"
    return one.error == "invalid" and _distance(answer, one) < _distance(answer, other)


def _distance(answer: AnswerPlan, found: Extraction) -> tuple[int, bool]:
    failures = answer.judge.failures(found.value)
    return len(failures), all(not failure.path for failure in failures)


def _closely(answer: AnswerPlan, said: AnswerText, *, asked: bool) -> Extraction:
    judge = answer.read_by if asked else answer.judge
    found = extract_strict(said.text, judge, cut=said.cut, reasoning_removed=said.plain)
    return found or extract_repair(
        said.text, judge, cut=said.cut, end_known=said.end_known, reasoning_removed=said.plain
    )


def _restored(answer: AnswerPlan, found: Extraction) -> Extraction:
    """Return what was read in the caller's form, judged by the caller's schema."""
    if not answer.plan.changes_answers or found.error in _WITHOUT_VALUE:
        return found
    value = answer.plan.restore(found.value)
    failures = answer.judge.failures(value)
    if not failures:
        return replace(found, value=value, failures=())
    if not found.ok:
        return replace(found, value=value, failures=failures)
    return _invalid(replace(found, value=value), failures)


def _invalid(found: Extraction, failures: tuple[Failure, ...]) -> Extraction:
    message = f"the answer does not conform to its schema: {failures[0]}"
    return replace(found, error="invalid", message=message, failures=failures)


def looked_at(read: AnswerReading, validator: AnswerValidator | None) -> AnswerReading:
    """Return the answer after the caller's own look at its value."""
    if validator is None or not read.extraction.ok:
        return read
    failures = validator(read.extraction.value)
    return AnswerReading(_invalid(read.extraction, failures)) if failures else read


def read_call(answer: AnswerPlan, arguments: str, text: str, *, cut: bool, end_known: bool = True) -> AnswerReading:
    """Return what a call of the tool that carries the answer says. No arguments are an empty object, unless the text holds the answer."""
    if arguments.strip() not in ("", "null"):
        return read_any(answer, AnswerText(text=arguments, cut=cut, end_known=end_known, plain=True))
    empty = read_any(answer, AnswerText(text="{}", plain=True))
    beside = (
        read_any(answer, AnswerText(text=text, cut=cut))
        if not (empty.extraction.ok and not cut) and text.strip()
        else None
    )
    if beside is not None and beside.extraction.ok:
        return beside
    if not cut:
        return empty
    return AnswerReading(
        Extraction(error="truncated", message="the reply ended before its answer was complete", truncated=True)
    )


def read_any(answer: AnswerPlan, said: AnswerText) -> AnswerReading:
    """Return the answer, read as closely as it needs."""
    return read_strictly(answer, said) or read_closely(answer, said)


def not_offered(read: AnswerReading, names: Sequence[str]) -> AnswerReading:
    """Return an answer that cannot be used because the model called tools it was not offered."""
    if read.extraction.ok:
        return read
    said = f"the model called {', '.join(names)[:_MAX_NAMES]}, which it was not offered"
    failure = Failure(path="", message=said, keyword="tool")
    return AnswerReading(replace(read.extraction, message=said, failures=(failure, *read.extraction.failures)))


def unlike_shown(read: AnswerReading, why: str) -> AnswerReading:
    """Return an answer that cannot be given any more, because something else was already shown."""
    return AnswerReading(_invalid(read.extraction, (Failure(path="", message=why, keyword="shown"),)))


def again_worthwhile(read: AnswerReading) -> bool:
    """Return whether asking again may help."""
    return worth_retrying(read.extraction)


def turns_to_ask_again(answer: AnswerPlan, read: AnswerReading) -> tuple[Message, ...]:
    """Return what is said to the model after an answer that cannot be used: its own words, and what was wrong with them."""
    found = read.extraction
    own = [Message("assistant", (TextBlock(found.text[:_MAX_FED_BACK]),))] if found.text.strip() else []
    told = retry_message(found, answer.read_by, with_schema=answer.plan.mode != "schema_enforced")
    return (*own, Message("user", (TextBlock(told),)))


def with_declared_defaults(answer: AnswerPlan, read: AnswerReading) -> AnswerReading:
    """Return the answer with its bad members filled by the defaults of the caller's schema, or as it was where they do not suffice."""
    return AnswerReading(with_defaults(read.extraction, answer.judge)) if not read.extraction.ok else read


def provenance(answer: AnswerPlan, found: Extraction, *, attempts: int) -> Provenance:
    """Return how an answer came about."""
    return Provenance(
        mode=answer.plan.mode,
        attempts=attempts,
        coerced=found.coerced,
        repaired=found.repaired,
        unwrapped=found.unwrapped,
        defaulted=found.defaulted,
        mode_downgraded=answer.plan.downgraded,
        truncated_after=found.truncated_after,
        error=found.error,
    )


def warnings(read: AnswerReading) -> tuple[Degradation, ...]:
    """Return what the caller must know of an answer although it is one."""
    found = read.extraction
    told = []
    if found.truncated_after:
        told.append(Degradation("answer.text", why="the reply was cut behind the answer, which is complete"))
    if found.defaulted:
        why = "the model's own answer did not conform there, so the schema's defaults stand"
        told.append(Degradation("answer.defaults", sent=list(found.defaulted), why=why))
    if found.dropped:
        told.append(
            Degradation("answer.members", asked=list(found.dropped), why="they broke the schema, which needs none")
        )
    if found.repaired:
        told.append(Degradation("answer.text", why="the model's text was no sound JSON, and was repaired"))
    elif not read.verbatim and found.ok and found.text.strip()[:1] not in ("{", "[", '"'):
        told.append(Degradation("answer.text", why="words around the JSON were left out"))
    return tuple(told)


_IN_BLOCKS = frozenset(
    {ThinkStart, ThinkChunk, ThinkEnd, ContentChunk, RefusalChunk, ToolCallStart, ToolCallChunk, ToolCallEnd}
)
_STATE_OF_BLOCKS = frozenset({UnknownContent, BlockFields, OpaqueState})
_OF_ONE_TURN = _STATE_OF_BLOCKS | {ReplyStart, ReplyFields}


class Continuation:
    """Makes a further reply the continuation of an earlier one: its blocks follow, and its tokens are added.

    Its thinking keeps no opaque state, which belongs to another turn than the one the client will send back, unless it `keeps_state`:
    then both replies are parts of that turn.
    """

    def __init__(self, first_block: int, spent: Usage, *, keeps_state: bool = False) -> None:
        self._first = first_block
        self._spent = spent
        self._renumbered = _IN_BLOCKS | _STATE_OF_BLOCKS if keeps_state else _IN_BLOCKS
        self._dropped = _OF_ONE_TURN - self._renumbered

    def feed(self, item: Event) -> Sequence[Event]:
        """Pass on, renumbered."""
        kind = type(item)
        if kind in self._renumbered:
            return (msgspec.structs.replace(item, block=item.block + self._first),)  # type: ignore[union-attr]
        if kind is UsageUpdate:
            return (UsageUpdate(added(self._spent, item.usage)),)  # type: ignore[union-attr]
        return () if kind in self._dropped else (item,)

    def finish(self) -> Sequence[Event]:
        """Nothing is held."""
        return ()


_COUNTS = ("input_tokens", "output_tokens", "reasoning_tokens", "cached_input_tokens", "cache_write_tokens", "cost_usd")


def added(spent: Usage, usage: Usage) -> Usage:
    """Return the tokens of two replies. What only one of them reported is at least that; what neither did stays unknown."""
    counts = {name: _sum(getattr(spent, name), getattr(usage, name)) for name in _COUNTS}
    details = _added_details(spent.details, usage.details)
    before = spent.raw["attempts"] if isinstance(spent.raw, dict) and "attempts" in spent.raw else [spent.raw]
    return msgspec.structs.replace(usage, **counts, details=details, raw={"attempts": [*before, usage.raw]})


def _added_details(spent: UsageDetails | None, details: UsageDetails | None) -> UsageDetails | None:
    if spent is None or details is None:
        return details or spent
    counts = {
        name: _sum(getattr(spent, name), getattr(details, name))
        for name in UsageDetails.__struct_fields__
        if name != "service_tier"
    }
    return msgspec.structs.replace(details, **counts)


def _sum(one: float | None, other: float | None) -> float | None:
    return one if other is None else other if one is None else one + other
