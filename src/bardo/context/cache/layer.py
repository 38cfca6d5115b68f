"""The layer `cache`: it answers a call with the reply to an earlier one that asked for the same.

It looks for the reply by the identity of the request; where there is none, it may look for that to a similar question. Else one of several
equal calls that come at once asks the provider, and the others wait for its reply. Some calls are never answered so, and some replies never
kept: questions about the present time and texts with data about persons are among them.
"""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Callable, Collection, Generator, Iterable, Iterator, Mapping, Sequence
from functools import cache, lru_cache
from typing import Any, Literal, NamedTuple, Protocol, get_args

import msgspec

from bardo.catalog.layer_rows import PersonalDataRow, TimeWordsRow, cache_rows
from bardo.catalog.matching import matches_any, matches_glob
from bardo.context.cache.entries import identity_of
from bardo.context.cache.similar_lookup import ForgetSimilar, SimilarLookup, after_reply
from bardo.context.layer import Answered, Effect, EffectFailed, KeptReply, LayerFacts, LayerSteps, Passed, Receipt
from bardo.streams.stage import Stage
from bardo.values.blocks import (
    Block,
    DocumentBlock,
    ImageBlock,
    ReasoningBlock,
    TextBlock,
    ToolCallBlock,
    ToolResultBlock,
    UnknownBlock,
)
from bardo.values.events import Event
from bardo.values.request import CacheAllowance, CacheOptions, Message, Request
from bardo.values.response import Response
from bardo.values.usage import exact_dollars

# What stands between words: marks of ASCII, Latin-1, Arabic and Devanagari, general punctuation, and those of Chinese and Japanese.
_RANGES = (
    (0, 0x80),
    (0xA0, 0xC0),
    (0x60C, 0x60D),
    (0x61B, 0x620),
    (0x964, 0x966),
    (0x2000, 0x2070),
    (0x3000, 0x3040),
    (0xFF00, 0xFF10),
)
_MARKS = {
    code: " " for first, end in _RANGES for code in range(first, end) if not (chr(code).isalnum() or code == ord("_"))
}
_ASCII_WORDS = bytes(ord(_MARKS.get(code, chr(code).lower())) for code in range(128)) + bytes(range(128, 256))
"""For each byte of ASCII a small letter, or the space that stands for anything between words."""
_NO_DIGITS = bytes(code for code in range(256) if chr(code) not in "0123456789")
"""Every byte that is no digit, in UTF-8 too."""


_SLICE, _OVERLAP = 64 * 1024, 400
"""Characters of a text that are searched at once, and how many of them again: no phrase and no value is longer."""
_LONGEST = _SLICE + _OVERLAP


def _slices(text: str) -> Iterable[str]:
    """Return overlapping parts of a text, as a search of all of it would hold the interpreter. Every phrase is whole in one of them."""
    return (text[start : start + _LONGEST] for start in range(0, len(text), _SLICE))


class TimeWords:
    """Finds out whether a text asks about the time at which it is asked, by words of any language."""

    def __init__(self, rows: Iterable[TimeWordsRow]) -> None:
        rows = tuple(rows)
        self._words = frozenset(word for row in rows for word in row.words)
        parts = sorted({part for row in rows for part in row.parts})
        self._parts = re.compile("|".join(map(re.escape, parts))) if parts else None
        self._phrases: dict[tuple[str, str], list[tuple[str, ...]]] = defaultdict(list)
        for phrase in (tuple(phrase.split(" ")) for row in rows for phrase in row.phrases):
            self._phrases[phrase[0], phrase[1]].append(phrase)
        self._first_words = frozenset(first for first, _ in self._phrases)
        self._any_words = self._words | self._first_words
        self._any_in_ascii = frozenset(word.encode("ascii") for word in self._any_words if word.isascii())

    def has(self, text: str) -> bool:
        """Whether a text has one of the words, phrases or parts."""
        if len(text) > _LONGEST:
            return any(map(self.has, _slices(text)))
        if text.isascii():
            # Twice as fast as the same with text.
            parts = text.encode("ascii").translate(_ASCII_WORDS).split()
            if self._any_in_ascii.isdisjoint(parts):
                return False
            words = [part.decode("ascii") for part in parts]
        else:
            words = text.casefold().translate(_MARKS).split()
        if not self._any_words.isdisjoint(words) and (not self._words.isdisjoint(words) or self._has_phrase(words)):
            return True
        return self._parts is not None and not text.isascii() and self._parts.search(text) is not None

    def _has_phrase(self, words: list[str]) -> bool:
        first, phrases = self._first_words, self._phrases
        for place, word in enumerate(words):
            if word in first and place + 1 < len(words):
                for phrase in phrases.get((word, words[place + 1]), ()):
                    if tuple(words[place : place + len(phrase)]) == phrase:
                        return True
        return False


_LEAST_DIGITS = 5
"""The shortest number that a pattern of a row without @ finds is a telephone number of five digits."""


class PersonalData:
    """Finds out whether a text has data about persons that can be known by their form. Names and places cannot."""

    def __init__(self, rows: Iterable[PersonalDataRow]) -> None:
        pairs = [(re.compile(row.pattern), _CHECKS[row.check]) for row in rows]
        self._with_at = [pair for pair in pairs if "@" in pair[0].pattern]
        self._with_digits = [pair for pair in pairs if "@" not in pair[0].pattern]

    def has(self, text: str) -> bool:
        """Whether a text has an address, or a number that passes the check of its kind."""
        if len(text) > _LONGEST:
            return any(map(self.has, _slices(text)))
        if "@" in text and _any(self._with_at, text):
            return True
        digits = text.encode("utf-8", "replace").translate(None, _NO_DIGITS)
        return len(digits) >= _LEAST_DIGITS and _any(self._with_digits, text)


Pair = tuple[re.Pattern[str], Callable[[str], bool]]


def _any(pairs: Iterable[Pair], text: str) -> bool:
    return any(check(match[0]) for pattern, check in pairs for match in pattern.finditer(text))


def has_luhn_digit(number: str) -> bool:
    """Whether the last digit of a card's number is right. Source: ISO/IEC 7812-1, annex B."""
    digits = [int(figure) for figure in number if figure.isdecimal()]
    doubled = [sum(divmod(2 * figure, 10)) for figure in digits[-2::-2]]
    return len(digits) > 11 and (sum(digits[-1::-2]) + sum(doubled)) % 10 == 0


def has_iban_digits(number: str) -> bool:
    """Whether the check digits of an account's number are right. Source: ISO 13616, with ISO 7064 MOD 97-10."""
    compact = "".join(number.split())
    if not 15 <= len(compact) <= 34 or not (compact.isascii() and compact.isalnum()):
        return False
    return int("".join(str(int(sign, 36)) for sign in compact[4:] + compact[:4])) % 97 == 1


_CHECKS: dict[str, Callable[[str], bool]] = {"": lambda _: True, "luhn": has_luhn_digit, "iban": has_iban_digits}


@cache
def time_words() -> TimeWords:
    """Return what finds the words of the rows that come with bardo."""
    return TimeWords(cache_rows().time_words)


@cache
def personal_data() -> PersonalData:
    """Return what finds the kinds of data of the rows that come with bardo."""
    return PersonalData(cache_rows().personal_data)


Refusal = Literal[
    "private",  # The caller asks for providers that keep nothing.
    "no_store",  # The caller wants no kept reply and none to be kept: Cache-Control, or `bardo.cache`.
    "sampling",  # The caller wants another answer each time: a high temperature, or several choices.
    "hosted_tools",  # The provider searches the web, or runs code, while it answers.
    "tools",  # The model may call tools, or has called some: what they did is not in the request.
    "media",  # Pictures, documents and sound.
    "opaque_state",  # Signed or encrypted thinking, and conversations that a server keeps.
    "multi_turn",  # The model has answered before.
    "time_words",  # The answer depends on when it is asked.
    "pii",  # Data about persons.
    "unreadable",  # A number or a text that cannot be compared.
    "error",  # The call failed.
    "truncated",  # The reply was cut off, refused or filtered.
    "too_large",  # The reply is larger than the settings allow, or was put together of several.
]
ALLOWABLE: tuple[CacheAllowance, ...] = get_args(CacheAllowance)
# Fields by which a request goes on from what a server keeps, in Responses, Chat, Messages and Interactions.
_SERVER_STATE = frozenset(
    ("previous_response_id", "conversation", "prompt", "previous_interaction_id", "container", "thread", "background")
)
_WHOLE = frozenset(("stop", "tool_calls"))


def refusal_of(request: Request, allowed: Collection[str], most_temperature: float) -> Refusal | None:
    """Return why a call is not answered by a kept reply, or None if it may be.

    `allowed` are reasons that do not count. A temperature over `most_temperature` asks for another answer each time.
    """
    for reason in _reasons(request, most_temperature):
        if reason not in allowed:
            return reason
    return None


def refusal_of_reply(response: Response, reply: KeptReply | None) -> Refusal | None:
    """Return why a reply that came to its end is not kept, or None if it may be."""
    if response.error is not None:
        return "error"
    if response.finish.reason not in _WHOLE or not response.blocks:
        return "truncated"
    return "too_large" if reply is None else None


def _reasons(request: Request, most_temperature: float) -> Iterator[Refusal]:
    """Yield the reasons in the order of their cost: what looks at all texts comes last."""
    options = request.options
    if options.private:
        yield "private"
    if options.cache is not None and options.cache.mode == "off":
        yield "no_store"
    if request.choices > 1 or _temperature(request) > most_temperature:
        yield "sampling"
    if _is_live(request):
        yield "hosted_tools"
    if request.tools:
        yield "tools"
    stored = request.kept_as
    if _SERVER_STATE.intersection(request.extra) or (stored is not None and (stored.previous or stored.conversation)):
        yield "opaque_state"
    results: Sequence[tuple[str, str]] = ()
    texts = _plain_texts(request.messages)
    if texts is None:
        reasons = {
            reason
            for message in request.messages
            for block in message.blocks
            if (reason := _of_block(block)) is not None
        }
        yield from sorted(reasons)
        if any(message.role == "assistant" for message in request.messages):
            yield "multi_turn"
        texts, results = _texts_and_results(request.messages)
    has_time_words, has_personal_data = time_words().has, personal_data().has
    for role, text in texts:
        if role == "user" and has_time_words(text):
            yield "time_words"
            break
    for _, text in (*texts, *results):
        if has_personal_data(text):
            yield "pii"
            break


def _temperature(request: Request) -> float:
    profile, own = request.options.profile, request.sampling.temperature
    temperature = profile.temperature if own is None and profile is not None else own
    return 0.0 if temperature is None else temperature


def _is_live(request: Request) -> bool:
    """Whether the provider looks into the web, or runs code, while it answers."""
    profile, live = request.options.profile, cache_rows().live
    if any(tool.hosted or (tool.carried is not None and tool.schema is None) for tool in request.tools):
        return True
    if request.extra and any(request.extra.get(name) not in (None, False) for name in live.fields):
        return True
    return (profile is not None and profile.web_search is True) or matches_any(request.model, live.models)


def _plain_texts(messages: Iterable[Message]) -> list[tuple[str, str]] | None:
    """Return who says what, where each turn is one text that no assistant wrote; None for any other request."""
    texts: list[tuple[str, str]] = []
    for message in messages:
        if len(message.blocks) != 1 or message.role == "assistant":
            return None
        block = message.blocks[0]
        if type(block) is not TextBlock or block.opaque:
            return None
        texts.append((message.role, block.text))
    return texts


def _texts_and_results(messages: Sequence[Message]) -> tuple[list[tuple[str, str]], list[tuple[str, str]]]:
    """Return who says what, and what tools returned."""
    texts: list[tuple[str, str]] = [(message.role, message.text) for message in messages]
    results = [
        ("tool", block.text) for message in messages for block in message.blocks if isinstance(block, ToolResultBlock)
    ]
    return texts, results


def _of_block(block: Block) -> Refusal | None:
    if type(block) is TextBlock:
        return "opaque_state" if block.opaque else None
    if isinstance(block, ReasoningBlock) or (isinstance(block, ToolCallBlock) and block.opaque):
        return "opaque_state"
    if isinstance(block, ToolCallBlock | ToolResultBlock):
        return "tools"
    return "media" if isinstance(block, ImageBlock | DocumentBlock | UnknownBlock) else None


NAME = "cache"
_PLAIN = CacheOptions()


class CacheRules(msgspec.Struct, frozen=True, kw_only=True):
    """The operator's settings for stored replies.

    A reply is kept for `ttl_seconds`; `ttl_seconds_at` has other times, by globs of models and workloads, and 0 keeps none. `allow` are
    reasons that do not count, `most_temperature` is the highest at which a call is answered so, and `most_bytes` how large a reply may
    be. `single_flight`: of equal calls at the same time one is sent.
    """

    ttl_seconds: float = 300.0
    ttl_seconds_at: Mapping[str, float] = {}
    allow: tuple[str, ...] = ()
    most_temperature: float = 1.0
    most_bytes: int = 1024 * 1024
    single_flight: bool = True

    def seconds(self, request: Request, facts: LayerFacts) -> float:
        """Return for how many seconds the reply to a request is kept."""
        asked = request.options.cache
        if asked is not None and asked.ttl_seconds is not None:
            return asked.ttl_seconds
        if not self.ttl_seconds_at:
            return self.ttl_seconds
        names = (facts.workload, request.model, *facts.models)
        lifetimes = (
            self.ttl_seconds_at[glob] for glob in self.ttl_seconds_at if any(matches_glob(name, glob) for name in names)
        )
        return next(lifetimes, self.ttl_seconds)


class CacheResult(msgspec.Struct, frozen=True, kw_only=True):
    """The result of the cache for one call. `age_seconds` and `saved_nanos` are those of the reply that is given."""

    outcome: Literal["hit", "similar", "miss", "refused"]
    reason: str = ""
    age_seconds: float = 0.0
    saved_nanos: int | None = None

    @property
    def word(self) -> str:
        """The word in the log: the outcome, with the reason of a refusal."""
        return f"refused:{self.reason}" if self.outcome == "refused" else self.outcome

    @property
    def header(self) -> str:
        """The value of the header `X-Bardo-Cache`."""
        if self.outcome in ("hit", "similar"):
            saved = "" if self.saved_nanos is None else f"; saved_usd={exact_dollars(self.saved_nanos)}"
            return f"{self.outcome}; age={self.age_seconds:.0f}{saved}"
        return f"{self.outcome}; reason={self.reason}" if self.reason else self.outcome


_MISS, _MISS_RECEIPT = CacheResult(outcome="miss"), Receipt(layer=NAME, saw={"cache": "miss"})


class FindReply(Effect, frozen=True):
    """Look for a kept reply: a KeptReply, or whether the call leads. One that was kept before `since`, in Unix time, is too old.

    `lead`: where there is none and an equal call is under way, its reply is waited for; where none is under way, this call leads, until
    it yields StoreReply or ReleaseWaitingCalls. `within`: no longer than so many seconds are waited; None is the configured time.
    """

    tenant: str
    identity: bytes
    since: float
    lead: bool
    within: float | None = None


class StoreReply(Effect, frozen=True):
    """Keep a reply until `expires`, in Unix time, and give it to those who wait for it."""

    tenant: str
    identity: bytes
    reply: KeptReply
    expires: float
    model: str
    tags: tuple[str, ...] = ()
    index: bytes = b""


class ReleaseWaitingCalls(Effect, frozen=True):
    """Release the calls that wait for a reply which is not kept, with the reason."""

    tenant: str
    identity: bytes
    reason: Refusal | Literal["similar"]


class Similar(Protocol):
    """Looks for similar questions: `bardo.context.cache.similar.SimilarAnswers`, which is loaded where it is configured."""

    def look(self, request: Request, facts: LayerFacts) -> Generator[Effect, Any, SimilarLookup | None]:
        """Return what may be given in place of the provider's reply, and what that is compared with."""
        ...


class CacheLayer:
    """Answers with kept replies. Immutable, and shared by all calls."""

    name = NAME

    def __init__(self, rules: CacheRules, similar: Similar | None = None) -> None:
        self._rules = rules
        self._similar = similar

    def steps(self, request: Request, facts: LayerFacts) -> LayerSteps:
        """Answer a call with a kept reply, or have its own reply kept."""
        asked, rules = request.options.cache or _PLAIN, self._rules
        allowed = _allowed(rules.allow, asked.allow) if rules.allow or asked.allow else ()
        refusal = refusal_of(request, allowed, rules.most_temperature)
        seconds = rules.seconds(request, facts)
        if refusal is not None or seconds <= 0:
            return _passed_refused(request, refusal or "no_store")
        try:
            identity = identity_of(request, facts.tenant, facts.profile, facts.workload, facts.models)
        except ValueError:
            return _passed_refused(request, "unreadable")
        leads, lookup = False, None
        if asked.mode == "use":
            since = 0.0 if asked.max_age_seconds is None else facts.now - asked.max_age_seconds
            lead = rules.single_flight and not facts.dry
            deadline = request.options.deadline_seconds
            # The remaining seconds are for a provider.
            within = None if deadline is None else deadline / 2
            reply = yield FindReply(facts.tenant, identity, since, lead, within)
            if isinstance(reply, KeptReply):
                return _answer_outcome(reply, facts.now)
            leads = reply is True
            if self._similar is not None:
                lookup = yield from self._find_similar(self._similar, request, facts)
            if lookup is not None and lookup.serve is not None:
                reply = yield FindReply(facts.tenant, lookup.serve.identity, since, False)
                if isinstance(reply, KeptReply):
                    if leads:
                        yield ReleaseWaitingCalls(facts.tenant, identity, "similar")
                    return _answer_outcome(reply, facts.now, lookup)
                yield ForgetSimilar(lookup.scope, lookup.serve.identity)
        place = Place(facts.tenant, identity, request.model, asked.tags, facts.now + seconds, rules.most_bytes)
        result = _MISS if asked.mode == "use" else CacheResult(outcome="miss", reason=asked.mode)
        receipt = _MISS_RECEIPT if lookup is None else Receipt(layer=NAME, saw={"cache": "miss", **lookup.saw})
        return Passed(
            request=request, receipt=receipt, found=result, reply=ReplyStoringPart(place, leads=leads, lookup=lookup)
        )

    def _find_similar(
        self, similar: Similar, request: Request, facts: LayerFacts
    ) -> Generator[Effect, Any, SimilarLookup | None]:
        """Look for a similar question, or None if that fails, which is no reason to fail the call."""
        try:
            return (yield from similar.look(request, facts))
        except EffectFailed:
            return None


class Place(NamedTuple):
    """Where the reply to one call is kept, and until when. A reply may have `most_bytes`."""

    tenant: str
    identity: bytes
    model: str
    tags: tuple[str, ...]
    expires: float
    most_bytes: int


class ReplyStoringPart:
    """Stores the reply to one call. `leads`: equal calls wait for it. `lookup` is what a lookup for similar questions gave."""

    def __init__(self, place: Place, *, leads: bool, lookup: SimilarLookup | None = None) -> None:
        self._lookup = lookup
        self.most_bytes = place.most_bytes
        self._place = place
        self._leads = leads

    def stage(self) -> Stage[Event, Event] | None:
        """Return None: the reply passes as it is."""
        return None

    def ended(self, request: Request, response: Response, reply: KeptReply | None) -> Iterable[Effect]:
        """Keep a reply that is whole, and tell those who wait for it."""
        place, refusal = self._place, refusal_of_reply(response, reply)
        if refusal is not None or reply is None:
            return self._release_waiting(refusal or "too_large")
        lookup, index = self._lookup, b""
        compared: Iterable[Effect] = ()
        if lookup is not None:
            index, compared = lookup.index(response.text), after_reply(lookup, response.text)
        keep = StoreReply(place.tenant, place.identity, reply, place.expires, place.model, place.tags, index)
        return (keep, *compared)

    def failed(self) -> Iterable[Effect]:
        """Release the calls that wait for this one's reply."""
        return self._release_waiting("error")

    def _release_waiting(self, reason: Refusal) -> Iterable[Effect]:
        return (ReleaseWaitingCalls(self._place.tenant, self._place.identity, reason),) if self._leads else ()


def _passed_refused(request: Request, refusal: Refusal) -> Passed:
    receipt = Receipt(layer=NAME, saw={"cache": f"refused:{refusal}"})
    return Passed(request=request, receipt=receipt, found=CacheResult(outcome="refused", reason=refusal))


def _answer_outcome(reply: KeptReply, now: float, lookup: SimilarLookup | None = None) -> Answered:
    age = max(0.0, now - reply.kept_at)
    result = CacheResult(outcome="hit" if lookup is None else "similar", age_seconds=age, saved_nanos=reply.cost_nanos)
    alike = "an equal call" if lookup is None else "a similar question"
    did = f"answered with the reply to {alike} {age:.0f} s ago"
    saw = {"cache": result.word, "saved_nanos": reply.cost_nanos, "age_seconds": round(age, 3)}
    saw |= {} if lookup is None else lookup.saw
    return Answered(reply=reply, receipt=Receipt(layer=NAME, did=did, saw=saw), found=result)


@lru_cache(maxsize=64)
def _allowed(configured: tuple[str, ...], asked: tuple[str, ...]) -> frozenset[str]:
    """Return the reasons that do not count for one call."""
    return frozenset((*configured, *asked))
