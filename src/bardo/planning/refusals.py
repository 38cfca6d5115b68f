"""What a provider's refusal means: in its own words, whose fault it is, what follows it, and which field to leave out."""

from __future__ import annotations

import math
import re
from collections.abc import Collection, Iterable, Iterator, Sequence
from datetime import UTC
from email.utils import parsedate_to_datetime
from functools import cached_property
from typing import Any

import msgspec

from bardo.catalog.field_refusals import builtin_field_refusals
from bardo.values.degradation import Degradation
from bardo.values.errors import (
    BardoError,
    BrokenStream,
    EmptyReply,
    MissingKey,
    Unreachable,
    UpstreamRefused,
    UpstreamTimeout,
)
from bardo.values.once import pattern
from bardo.values.wire import WireRequest

Fields = dict[str, msgspec.Raw]
_LONGEST = 4000
_MOST_WORK = 128 * 1024 * 1024
"""How many bytes of a request are looked through for what a refusal may quote of it; what is left then is taken for a quotation."""
_LARGEST_ESCAPED = 4 * 1024 * 1024
_LEAST_QUOTED = 16
"""Letters and digits: what is shorter may stand in any request."""
_KEPT_LETTERS = frozenset(b"abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789") | frozenset(
    range(128, 256)
)
_DROPPED = bytes(letter for letter in range(256) if letter not in _KEPT_LETTERS)
_TAIL = pattern(r": +")
_SENTENCE_END = pattern(r"(?<=[.;!?])\s+|[\r\n]+")
_QUOTE = pattern(r"""(?<![\w'"`])(['"`])(.{8,1000}?)\1(?!\w)""", re.DOTALL)
_NUMBER = pattern(r"(?<![\w.])\d{2,12}(?![\w.]*\w)")
_NAME = pattern(r"[A-Za-z_]\w*")


class ProviderWords:
    """The words of one refusal of the request whose wire form is `body`."""

    def __init__(self, refusal: UpstreamRefused, body: bytes) -> None:
        self._refusal = refusal
        self._body = body
        self._left = _MOST_WORK

    @cached_property
    def text(self) -> str:
        """What the provider says, with an ellipsis in place of each quotation of the request."""
        message = _message_of(self._refusal)[:_LONGEST]
        tails = [
            one[place:]
            for one in _SENTENCE_END.split(message)
            for place in (0, *(tail.end() for tail in _TAIL.finditer(one)))
        ]
        for phrase in dict.fromkeys((*(found[2] for found in _QUOTE.finditer(message)), *tails)):
            if self.quotes(phrase):
                message = message.replace(phrase, "…")
        return message

    def quotes(self, phrase: str) -> bool:
        """Whether some words of the text stand in the request too, so that nobody knows whose they are."""
        if len(phrase.split(None, 2)) < 2 or len(_letters(phrase)) < _LEAST_QUOTED:
            # It is no more than a name or a number.
            return False
        self._left -= len(self._body)
        request = self._request_letters if self._left > 0 else None
        return request is None or _letters(phrase) in request

    def is_about_relation(self, own: Collection[str] = ()) -> bool:
        """Whether the words are about how a field goes with others, and not about the field alone.

        So are words of comparison and of company, and a name or a number of another field than those in `own`.
        """
        text = self.text
        if not text or builtin_field_refusals().is_about_relation(text):
            return True
        names = self.fields.keys() - {*own, *builtin_field_refusals().everywhere}
        if not names.isdisjoint(_NAME.findall(text)):
            return True
        numbers = {
            bytes(value).decode() for name, value in self.fields.items() if name not in own and _is_number(value)
        }
        return not numbers.isdisjoint(_NUMBER.findall(text))

    def is_value(self, name: str) -> bool:
        """Whether the request has a text that is just this name: then nobody knows which of the two a refusal means."""
        quoted = re.escape(msgspec.json.encode(name))
        return re.search(quoted + rb"(?!\s*:)", self._body) is not None

    @cached_property
    def fields(self) -> Fields:
        """The outermost fields of the request, none of them decoded."""
        return fields_of(self._body)

    @cached_property
    def _request_letters(self) -> bytes | None:
        """The letters and digits of the request, small, or None if it is too long to look through."""
        body = self._body
        if b"\\u" in body:
            if len(body) > _LARGEST_ESCAPED:
                return None
            try:
                body = msgspec.json.encode(msgspec.json.decode(body))
            except msgspec.MsgspecError:
                return None
        return body.translate(None, _DROPPED).lower()


def fields_of(body: bytes | msgspec.Raw) -> Fields:
    """Return the fields of a JSON object, none of them decoded; none where it is no object."""
    try:
        return msgspec.json.decode(body, type=Fields)
    except (msgspec.MsgspecError, RecursionError):
        return {}


def _message_of(refusal: UpstreamRefused) -> str:
    """Return the message, what the server behind a router said, and the places of fields in lists of errors."""
    parts = [*_texts(_parsed(refusal.message)), refusal.hint]
    detail = refusal.detail
    if isinstance(detail, dict) and not isinstance(detail.get("detail"), str):
        parts += _texts(detail.get("detail"))
    elif isinstance(detail, list):
        parts += _texts(detail)
    return "\n".join(dict.fromkeys(filter(None, parts)))


def _parsed(message: str) -> Any:
    if not message.startswith(("[", "{")):
        return message
    try:
        return msgspec.json.decode(message)
    except (msgspec.MsgspecError, RecursionError):
        return message


def _texts(value: Any) -> list[str]:
    """Return what errors in a list say, as FastAPI's servers write them: `loc`, `msg` and `type`. Their `input` is the caller's."""
    if isinstance(value, str):
        return [value]
    if isinstance(value, dict):
        if "loc" not in value and "msg" not in value:
            inner = value.get("detail") or value.get("message") or value.get("error")
            return [] if inner is None else _texts(inner)
        loc = value.get("loc")
        place = [part for part in loc if isinstance(part, str | int)] if isinstance(loc, list) else []
        said = [f'"loc": {msgspec.json.encode(place).decode()}'] if place else []
        return [*said, *(text for text in (value.get("msg"), value.get("type")) if isinstance(text, str))]
    return [text for one in value[:16] for text in _texts(one)] if isinstance(value, list) else []


def _letters(text: str) -> bytes:
    return text.encode("utf-8", "replace").translate(None, _DROPPED).lower()


def _is_number(value: msgspec.Raw) -> bool:
    held = memoryview(value)
    return 1 < len(held) < 13 and bytes(held).isdigit()


_STATUSES = frozenset({400, 422, 501})
_DEEPEST = 4
_INDEX = pattern(r"\[\d+\]|\.\d+(?=\.)")
_HUMP = pattern(r"(?<=[a-z0-9])([A-Z])")


class RefusedField(msgspec.Struct, frozen=True):
    """A field of the provider's body, by its dotted path, that is not taken there; `instead` is its other name, empty for none.

    `messages[].name` is a field of every message. `for_good`: whatever its value is, and whatever else the request has, so that it may
    be left out of the next call, once this one was answered without it.
    """

    path: str
    instead: str = ""
    for_good: bool = False


def refused_field(words: ProviderWords, refusal: UpstreamRefused) -> RefusedField | None:
    """Return the field that a refusal is about, exactly as it is written, or None if it names none that the request could go without."""
    if refusal.status not in _STATUSES:
        return None
    rows = builtin_field_refusals()
    named = rows.named(words.text, refusal.param or "", words.quotes)
    if not named:
        return None
    fields = [*_paths(words.fields), *_message_paths(words.fields, rows.of_messages)]
    for one in named:
        name = _INDEX.sub("[]", one.name)
        path = _path_named(name, fields) or next(
            (path for root in rows.roots if (path := _path_named(name.removeprefix(f"{root}."), fields))), ""
        )
        if not path and one.camel:
            path = _path_named(_HUMP.sub(lambda hump: f"_{hump[1].lower()}", one.name), fields)
        name = path.rpartition(".")[2]
        if path and name not in rows.keep:
            lasts = one.for_good and (one.instead or name not in rows.never_learned)
            own = {*path.replace("[]", "").split("."), one.instead}
            return RefusedField(
                path, one.instead, bool(lasts) and not words.is_value(name) and not words.is_about_relation(own)
            )
    return None


def _path_named(name: str, paths: list[str]) -> str:
    """Return the path that a refusal names: the whole of it, or its last name where one field alone is called so; empty for none."""
    if name in paths:
        return name
    ends = [path for path in paths if path.endswith(f".{name}")]
    return ends[0] if len(ends) == 1 else ""


def without_fields(
    wire: WireRequest, refused: Iterable[RefusedField]
) -> tuple[WireRequest, dict[str, Any], tuple[Degradation, ...]]:
    """Return the request without the fields that are refused, those fields by their paths, and the differences."""
    body = fields_of(wire.body)
    taken: dict[str, Any] = {}
    for field in refused:
        value = _take(body, field.path)
        if value is None:
            continue
        taken[field.path] = msgspec.json.decode(value)
        if field.instead and field.instead not in body:
            body[field.instead] = value
    if not taken:
        return wire, {}, ()
    names = {field.path: field.instead for field in refused}
    degraded = tuple(
        Degradation(path, asked=value, sent=names[path] or None, why="the provider refuses this field")
        for path, value in taken.items()
    )
    return msgspec.structs.replace(wire, body=msgspec.json.encode(body)), taken, degraded


def has_field(body: bytes, path: str) -> bool:
    """Whether a body has a field, by its dotted path."""
    # Without its name in it nothing is decoded.
    name = path.rpartition(".")[2].removesuffix("[]")
    return msgspec.json.encode(name) in body and _take(fields_of(body), path) is not None


def _paths(fields: Fields, prefix: str = "", depth: int = 0) -> Iterator[str]:
    """Yield the paths of all fields of objects, the outermost first."""
    yield from (f"{prefix}{name}" for name in fields)
    if depth < _DEEPEST:
        for name, value in fields.items():
            if bytes(memoryview(value)[:1]) == b"{":
                yield from _paths(fields_of(value), f"{prefix}{name}.", depth + 1)


def _message_paths(fields: Fields, names: Iterable[str]) -> Iterator[str]:
    """Yield the paths of those fields of Chat's messages, and of their calls, that are called so."""
    messages = _objects(fields.get("messages"))
    calls = [call for message in messages for call in _objects(message.get("tool_calls"))]
    for name in names:
        if any(name in message for message in messages):
            yield f"messages[].{name}"
        if any(name in call for call in calls):
            yield f"messages[].tool_calls[].{name}"


def _objects(value: msgspec.Raw | None) -> list[Fields]:
    """Return the objects of a list, as far as it holds nothing else."""
    try:
        return [] if value is None else msgspec.json.decode(value, type=list[Fields])
    except (msgspec.MsgspecError, RecursionError):
        return []


def _take(fields: Fields, path: str) -> msgspec.Raw | None:
    """Take a field out of its object, and every object that is empty without it; return its value, the first of a list's."""
    name, _, rest = path.partition(".")
    if name.endswith("[]"):
        return _take_of_each(fields, name[:-2], rest)
    if name not in fields:
        return None
    if not rest:
        return fields.pop(name)
    inner = fields_of(fields[name])
    value = _take(inner, rest)
    if value is not None and inner:
        fields[name] = msgspec.Raw(msgspec.json.encode(inner))
    elif value is not None:
        del fields[name]
    return value


def _take_of_each(fields: Fields, name: str, path: str) -> msgspec.Raw | None:
    """Take a field out of each object of a list; return the first value."""
    objects = _objects(fields.get(name))
    found = [value for value in (_take(one, path) for one in objects) if value is not None]
    if not found:
        return None
    fields[name] = msgspec.Raw(msgspec.json.encode(objects))
    return found[0]


_OPERATOR_STATUSES = frozenset({401, 402, 403, 404})
# Providers that say one of these with another status, as seen in 2026.
_OPERATOR_WORDS = pattern(
    r"API key not valid|API_KEY_INVALID|api key expired"  # Gemini: 400
    r"|incorrect api key|invalid api key|invalid x-api-key"  # xAI: 400
    r"|credit balance is too low"  # Anthropic: 400
    r"|insufficient (?:balance|credits?|funds|quota)|insufficient_quota|billing_hard_limit"  # OpenAI, DeepSeek
    r"|unknown model|model not exist|is not a valid model|invalid model\b"  # Z.ai, DeepSeek, OpenRouter, Mistral: 400
    r"|model identifier is invalid|model_not_found|model_not_supported"  # Bedrock: 400; OpenAI and those like it
    r"|not been granted access|don't have access to the model",  # Bedrock: 400 and 403
    re.IGNORECASE,
)
_MODEL_WORDS = pattern(
    r"unknown model|model not exist|is not a valid model|invalid model\b|model identifier is invalid"
    r"|model_not_found|model_not_supported|not supported model|model .{0,200}(?:does not exist|not found)",
    re.IGNORECASE,
)
_NOT_FOUND, _FAILED = 404, 500
_CONTENT_WORDS = pattern(
    r"content[ _]filter|content[ _](?:management )?policy|content_policy_violation|responsible ?ai ?policy"  # OpenAI, Azure
    r"|requires moderation|input was flagged|flagged_input"  # OpenRouter: 403
    r"|data_inspection_failed|inappropriate content|content exists risk"  # Qwen, DeepSeek
    r"|sensitive (?:information|content)|moderation_blocked|safety (?:system|filter)",  # Z.ai, OpenAI
    re.IGNORECASE,
)
_LOOKED_AT = 600
"""Characters of a message that are looked at."""
_MODERATED = ("flagged_input", "reasons")
"""Names in the metadata of OpenRouter's refusal of a prompt that was flagged."""


def is_operators(refusal: UpstreamRefused) -> bool:
    """Whether a provider refuses because of its key, its account or its models: another one may take the same request."""
    if is_about_content(refusal) or refusal.overflow is not None:
        return False
    if refusal.status in _OPERATOR_STATUSES:
        return True
    return 400 <= refusal.status < 500 and _says(refusal, _OPERATOR_WORDS)


def is_about_model(refusal: UpstreamRefused) -> bool:
    """Whether a provider refuses a model that it does not have."""
    return refusal.status == _NOT_FOUND or (refusal.status < _FAILED and _says(refusal, _MODEL_WORDS))


def is_about_content(refusal: UpstreamRefused) -> bool:
    """Whether a provider refuses what the prompt says."""
    if refusal.status >= 500 or refusal.status == 429:
        return False
    metadata = refusal.detail.get("metadata") if isinstance(refusal.detail, dict) else None
    is_moderated = isinstance(metadata, dict) and any(metadata.get(name) for name in _MODERATED)
    return is_moderated or _says(refusal, _CONTENT_WORDS)


def _says(refusal: UpstreamRefused, words: re.Pattern[str]) -> bool:
    named = (refusal.said[:_LOOKED_AT], refusal.upstream_code, refusal.upstream_type, _reason(refusal.detail))
    return any(word and words.search(word) for word in named)


def _reason(detail: Any) -> str:
    """Return the reason that Google's error details give; empty where there is none."""
    details = detail.get("details") if isinstance(detail, dict) else None
    for one in details if isinstance(details, list) else ():
        reason = one.get("reason") if isinstance(one, dict) else None
        if isinstance(reason, str):
            return reason
    return ""


_TRANSIENT = frozenset({409, 425, 500, 502, 503, 504, 520, 521, 522, 523, 525, 527, 529, 530})
"""Statuses after which the same server often answers a moment later. 520 to 530 are Cloudflare's, in front of many providers."""
_TOO_SLOW = frozenset({408, 524})
_LATER = 429
_MOST_DOUBLED = 6


class FailoverPolicy(msgspec.Struct, frozen=True, kw_only=True):
    """How often one target is asked again, and how long is waited before.

    The wait doubles from `backoff_seconds` on; a provider that asks for more than `longest_pause_seconds` is not waited for. A target
    that was silent for `patient_seconds` is not asked again.
    """

    retries: int = 1
    backoff_seconds: float = 0.25
    longest_pause_seconds: float = 1.0
    patient_seconds: float = 60.0


class FailedAttempt(msgspec.Struct, frozen=True, kw_only=True):
    """How an attempt failed.

    `retries` were made at this target before, `seconds` is how long this one took, `alone` says that nobody else can be asked.
    """

    error: BardoError
    retries: int = 0
    seconds: float = 0.0
    alone: bool = False


def moves_on(error: BardoError) -> bool:
    """Whether another target may answer a request that failed with this error."""
    if isinstance(error, UpstreamRefused):
        return error.retryable or error.status >= 500 or is_operators(error)
    return error.retryable


def pause_before_retry(
    failed: FailedAttempt, policy: FailoverPolicy, *, now: float, jitter: float = 0.5, time_left: float = math.inf
) -> float | None:
    """Return how many seconds to wait before the same target is asked again, or None if it is not.

    `jitter` is a random number from 0 to 1, `now` is Unix time.
    """
    if failed.retries >= policy.retries or not _may_mend_itself(failed, policy):
        return None
    asked = retry_after_seconds(failed.error, now)
    if asked is None and _is_rate_limit(failed.error):
        return None
    if asked is not None and asked > policy.longest_pause_seconds:
        return None
    doubled = policy.backoff_seconds * 2 ** min(failed.retries, _MOST_DOUBLED)
    pause = max(asked or 0.0, min(doubled, policy.longest_pause_seconds) * (0.5 + 0.5 * jitter))
    return pause if pause < time_left else None


def retry_after_seconds(error: BardoError, now: float) -> float | None:
    """Return how long a provider asks to be left alone, from its `Retry-After` in seconds or as a date, or None if it does not say."""
    said = error.retry_after if isinstance(error, UpstreamRefused) else None
    if not said:
        return None
    try:
        seconds = float(said.strip().removesuffix("s"))
    except ValueError:
        return _until_date(said, now)
    return seconds if 0 <= seconds < math.inf else None


def error_to_tell(errors: Sequence[BardoError]) -> BardoError:
    """Return the error that a caller is told when every target failed: the last that is no fault of the operator's, else the last.

    A wrong key of the second provider would hide that the first one only asks to wait.
    """
    return next((error for error in reversed(errors) if not _is_operators(error)), errors[-1])


def _may_mend_itself(failed: FailedAttempt, policy: FailoverPolicy) -> bool:
    """Whether the same target may answer a moment later. One that was too slow, or asks to wait, is asked again only without others."""
    error = failed.error
    if isinstance(error, UpstreamTimeout) or (isinstance(error, UpstreamRefused) and error.status in _TOO_SLOW):
        return failed.alone and failed.seconds < policy.patient_seconds
    if isinstance(error, UpstreamRefused):
        return error.status in _TRANSIENT or (failed.alone and _is_rate_limit(error))
    return isinstance(error, Unreachable | BrokenStream | EmptyReply)


def _is_rate_limit(error: BardoError) -> bool:
    return isinstance(error, UpstreamRefused) and error.status == _LATER


def _is_operators(error: BardoError) -> bool:
    return isinstance(error, MissingKey) or (isinstance(error, UpstreamRefused) and is_operators(error))


def _until_date(said: str, now: float) -> float | None:
    try:
        date = parsedate_to_datetime(said)
    except (ValueError, TypeError, IndexError, OverflowError):
        return None
    at = date if date.tzinfo is not None else date.replace(tzinfo=UTC)
    return max(0.0, at.timestamp() - now)
