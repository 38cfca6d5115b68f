"""The `bardo` object of a request body, and the headers that say the same: what a client asks of bardo itself, in any dialect."""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from difflib import get_close_matches
from typing import TypeVar, get_args, get_type_hints

import msgspec

from bardo.dialects.shared.bounded_json import decode_bounded
from bardo.dialects.shared.json_values import JsonObject, optional, take
from bardo.values.agent import Signal, Tick
from bardo.values.errors import InvalidRequest
from bardo.values.profile import InferenceProfile
from bardo.values.request import (
    EFFORTS,
    BardoOptions,
    CacheAllowance,
    CacheOptions,
    Intent,
    OnImpossible,
    ReasoningPolicy,
    StructuredOptions,
)

LONGEST_HEADER = 4_000
"""Characters of `X-Bardo-Intent`."""
_KINDS = {
    "str": "a string",
    "int": "a whole number",
    "float": "a number",
    "bool": "true or false",
    "array": "a list of strings",
    "object": "an object",
}
_AT = re.compile(r" - at `\$\.?([^`]*)`$")
_EXPECTED = re.compile(r"Expected `([a-z]+)[^`]*`(?: (?:of length )?(<=|>=) (\S+))?")
_BOUNDS = {"<=": "at most", ">=": "at least"}
_LISTS = ("require", "prefer")
_MOST_SIGNALS, _LONGEST_SIGNAL = 64, 200
_LARGEST_CYCLE = 1_000_000
_QUIET = "quiet"
"""A tick in a header that says that nothing happened."""

T = TypeVar("T", bound=msgspec.Struct)


def without_own(fields: JsonObject) -> JsonObject:
    """Return the fields of a body without bardo's own: what a provider of its dialect may get."""
    return {name: value for name, value in fields.items() if name != "bardo"} if "bardo" in fields else fields


def read_intent(value: object, at: str) -> tuple[Intent | None, tuple[str, ...]]:
    """Return what a call needs, and which fields of it the caller gave. Raises InvalidRequest naming the field."""
    if value is None:
        return None, ()
    intent = _convert(value, Intent, at)
    return intent, tuple(value) if isinstance(value, dict) else ()


def read_profile(value: object, at: str) -> InferenceProfile | None:
    """Return how a call shall be answered, or None if nothing is said of it. Raises InvalidRequest naming the field."""
    return None if value is None else _convert(value, InferenceProfile, at)


def read_vitality(value: object, at: str) -> float | None:
    """Return the vitality of the agent that asks, from 0 to 1, or None if nothing is said of it. Raises InvalidRequest naming `at`."""
    if value is None:
        return None
    if isinstance(value, bool) or not isinstance(value, int | float) or not 0 <= value <= 1:
        hint = "give a number from 0 (dying) to 1 (healthy)"
        raise InvalidRequest(f"{at} is {value!r}"[:200], hint=hint, param=at)
    return float(value)


def read_vitality_header(value: str, name: str) -> float | None:
    """Return the vitality that a header gives; None for an empty one. Raises InvalidRequest for anything but a number from 0 to 1."""
    text = value.strip()
    if not text:
        return None
    try:
        return read_vitality(float(text), name)
    except ValueError:
        return read_vitality(text, name)


def read_tick(value: object, at: str) -> Tick | None:
    """Return what an agent says of its tick, or None if it says nothing. Raises InvalidRequest naming the field.

    `type`, `cycle`, `sustainability` and `diem` are the fields of a Tick; every other key is a signal, as are those of `signals`.
    """
    if value is None:
        return None
    if not isinstance(value, Mapping):
        raise InvalidRequest(f"{at} must be an object", hint='write {"anomaly": 0.4}, or {} for a quiet tick', param=at)
    signals_read = {str(name): inner for name, inner in value.items()}
    own = {name: signals_read.pop(name) for name in ("type", "cycle", "sustainability", "diem") if name in signals_read}
    nested = signals_read.pop("signals", None)
    if nested is not None and not isinstance(nested, Mapping):
        hint = "give signals by their names, with numbers, texts, true or false"
        raise InvalidRequest(f"{at}.signals must be an object", hint=hint, param=f"{at}.signals")
    signals = {**signals_read, **{str(name): value for name, value in (nested or {}).items()}}
    if len(signals) > _MOST_SIGNALS:
        hint = f"it may have {_MOST_SIGNALS}"
        raise InvalidRequest(f"{at} has {len(signals)} signals", hint=hint, param=at)
    kind, cycle = own.get("type"), own.get("cycle")
    if kind is not None and (not isinstance(kind, str) or not kind or len(kind) > _LONGEST_SIGNAL):
        raise InvalidRequest(f"{at}.type is {kind!r}"[:200], hint="name a kind of tick", param=f"{at}.type")
    if cycle is not None and (type(cycle) is not int or not 0 <= cycle <= _LARGEST_CYCLE):
        hint = f"count dream cycles from 0, up to {_LARGEST_CYCLE}"
        raise InvalidRequest(f"{at}.cycle is {cycle!r}"[:200], hint=hint, param=f"{at}.cycle")
    return Tick(
        signals={
            name[:_LONGEST_SIGNAL]: _signal(value, f"{at}.{name[:_LONGEST_SIGNAL]}") for name, value in signals.items()
        },
        type=kind or "",
        cycle=cycle,
        sustainability=_amount(own.get("sustainability"), f"{at}.sustainability"),
        diem=_amount(own.get("diem"), f"{at}.diem"),
    )


def read_tick_header(value: str, name: str) -> Tick | None:
    """Return the tick that a header gives: as JSON, or as `anomaly=0.4; conflict=true`; `quiet` says that nothing happened.

    None for an empty one. Raises InvalidRequest for anything else.
    """
    text = value.strip()
    if not text:
        return None
    given = {} if text == _QUIET else _header_fields(text, name, "anomaly=0.4; conflict=true", "bardo.tick", _signal_of)
    return read_tick(given, name)


def _signal_of(key: str, text: str) -> object:
    """Return what a text says for a field of a tick: a number, true or false, or itself."""
    if text in ("true", "false"):
        return text == "true"
    try:
        return int(text) if key == "cycle" else float(text)
    except ValueError:
        return text


def _signal(value: object, at: str) -> Signal:
    if isinstance(value, bool) or (isinstance(value, str) and len(value) <= _LONGEST_SIGNAL):
        return value
    if isinstance(value, int | float) and math.isfinite(value):
        return float(value)
    hint = f"give a finite number, true, false, or a text of at most {_LONGEST_SIGNAL} characters"
    raise InvalidRequest(f"{at} is {value!r}"[:200], hint=hint, param=at)


def _amount(value: object, at: str) -> float | None:
    if value is None:
        return None
    if isinstance(value, bool) or not isinstance(value, int | float) or not 0 <= value < math.inf:
        raise InvalidRequest(f"{at} is {value!r}"[:200], hint="give a number from 0 up", param=at)
    return float(value)


def read_intent_header(value: str, name: str) -> JsonObject:
    """Return the fields of an intent that a header gives: as JSON, or as `quality=high; require=vision, citations`.

    Raises InvalidRequest for anything else.
    """
    return _header_fields(value, name, "quality=high; require=vision, citations", "bardo.intent", _value)


def _header_fields(value: str, name: str, example: str, in_body: str, read: Callable[[str, str], object]) -> JsonObject:
    """Return the fields that a header gives: as JSON, or as names with values, each taken by `read`. Raises InvalidRequest."""
    if len(value) > LONGEST_HEADER:
        hint = f"it may have {LONGEST_HEADER}; put more into the body, as {in_body}"
        raise InvalidRequest(f"{name} has {len(value)} characters", hint=hint, param=name)
    if value.lstrip().startswith("{"):
        return _from_json(value, name, in_body)
    pairs = [pair.partition("=") for pair in value.split(";") if pair.strip()]
    fields: JsonObject = {}
    for key, sign, text in ((key.strip(), sign, text.strip()) for key, sign, text in pairs):
        if not sign or key in fields:
            problem = "is there twice" if key in fields else "has no value"
            hint = f"write it as {example}, or as a JSON object"
            raise InvalidRequest(f"{name}: {key[:100]!r} {problem}", hint=hint, param=name)
        fields[key] = read(key, text)
    return fields


def _from_json(value: str, name: str, in_body: str) -> JsonObject:
    try:
        values = decode_bounded(value.encode())
    except (msgspec.DecodeError, UnicodeError, RecursionError) as problem:
        raise InvalidRequest(f"{name} is not valid JSON: {str(problem)[:200]}", param=name) from problem
    if not isinstance(values, dict):
        hint = f"write a JSON object, as {in_body} in a body"
        raise InvalidRequest(f"{name} holds no JSON object", hint=hint, param=name)
    return values


def _value(key: str, text: str) -> object:
    """Return what a text says for a field; what it does not fit is left as text, for the check of the whole intent."""
    if key in _LISTS:
        return [name.strip() for name in text.split(",") if name.strip()]
    if text in ("true", "false"):
        return text == "true"
    try:
        return int(text) if key == "max_latency_ms" else float(text) if key == "cost_sensitivity" else text
    except ValueError:
        return text


def _convert(value: object, kind: type[T], at: str) -> T:
    if not isinstance(value, Mapping):
        raise InvalidRequest(f"{at} must be an object", hint=f"its keys are {_field_names(kind)}", param=at)
    for name in value:
        if name not in kind.__struct_fields__:
            raise _unknown(str(name), kind, at)
    try:
        return msgspec.convert(value, kind)
    except msgspec.ValidationError as problem:
        raise _wrong(problem, kind, at) from problem


def _unknown(name: str, kind: type[msgspec.Struct], at: str) -> InvalidRequest:
    near = get_close_matches(name[:100], kind.__struct_fields__, n=1)
    hint = f"did you mean {at}.{near[0]}?" if near else f"use {_field_names(kind)}"
    return InvalidRequest(f"bardo knows no {at}.{name[:100]}", hint=hint, param=f"{at}.{name[:100]}")


def _wrong(problem: msgspec.ValidationError, kind: type[msgspec.Struct], at: str) -> InvalidRequest:
    """Return the error for a field of the wrong kind, in a caller's words."""
    text = str(problem)
    place = _AT.search(text)
    path = place[1] if place else ""
    param = f"{at}.{path}" if path else at
    field = re.split(r"[.\[]", path, maxsplit=1)[0]
    words = _allowed_values(kind, field)
    if words:
        return InvalidRequest(f"{param} is none of its words", hint=f"use one of {', '.join(words)}", param=param)
    expected = _EXPECTED.search(text)
    if expected is None:
        return InvalidRequest(f"{param}: {_AT.sub('', text)}", hint=f"its keys are {_field_names(kind)}", param=param)
    wanted, sign, bound = expected.groups()
    if sign and wanted in ("int", "float"):
        fix = f"give {_KINDS[wanted]} of {_BOUNDS[sign]} {bound.removesuffix('.0')}"
    elif sign:
        fix = f"its length is {_BOUNDS[sign]} {bound}"
    else:
        fix = f"give {_KINDS.get(wanted, wanted)}"
    return InvalidRequest(f"{param} is not as it should be", hint=fix, param=param)


def _allowed_values(kind: type[msgspec.Struct], field: str) -> list[str]:
    """Return the words that a field takes, where it takes some only."""
    hint = get_type_hints(kind).get(field)
    words: list[str] = []
    waiting = [hint]
    while waiting:
        for argument in get_args(waiting.pop()):
            if isinstance(argument, str):
                words.append(argument)
            else:
                waiting.append(argument)
    return words


def _field_names(kind: type[msgspec.Struct]) -> str:
    return ", ".join(kind.__struct_fields__)


INCLUDABLE = ("reasoning_chain", "receipt", "structured", "partials", "route")
REASONING_WORDS = ("include", "omit", "tags")
"""How thinking is shown: as the dialect does, not at all, or in the text between tags."""
KEYS = (
    *("include", "reasoning", "on_impossible", "structured", "allow_loss", "intent", "profile", "private", "vitality"),
    *("tick", "deadline_seconds", "allow_stale", "verify", "pipeline", "layers", "session", "cache"),
    *("agent", "repository"),
)
_MOST_SECONDS = 31_536_000
_LONGEST_NAME = 500
_MOST_LAYERS = 64
ON_IMPOSSIBLE: tuple[OnImpossible, ...] = ("fail", "floor", "reroute")


def read_options(fields: JsonObject) -> BardoOptions:
    """Return the options under `bardo`. Raises InvalidRequest for what bardo does not know."""
    value = optional(fields, "bardo", dict)
    if value is None:
        return BardoOptions()
    refuse_unknown(value, KEYS, "bardo.")
    include = optional(value, "include", list, "bardo.") or []
    reasoning = value.get("reasoning")
    shown = reasoning is None or reasoning in REASONING_WORDS
    intent, intent_fields = read_intent(value.get("intent"), "bardo.intent")
    return BardoOptions(
        include=tuple(includable(name, f"bardo.include[{place}]") for place, name in enumerate(include)),
        omit_reasoning=reasoning == "omit",
        reasoning_tags=reasoning == "tags",
        chose_display=reasoning in REASONING_WORDS,
        on_impossible=read_on_impossible(optional(value, "on_impossible", str, "bardo."), "bardo.on_impossible"),
        reasoning=None if shown else policy_of(reasoning, "bardo.reasoning", also=REASONING_WORDS),
        structured=read_structured(value.get("structured"), "bardo.structured"),
        allow_loss=_allowed(value),
        intent=intent,
        intent_fields=intent_fields,
        profile=read_profile(value.get("profile"), "bardo.profile"),
        vitality=read_vitality(value.get("vitality"), "bardo.vitality"),
        tick=read_tick(value.get("tick"), "bardo.tick"),
        private=optional(value, "private", bool, "bardo.") or False,
        deadline_seconds=read_seconds(value.get("deadline_seconds"), "bardo.deadline_seconds"),
        allow_stale=read_seconds(value.get("allow_stale"), "bardo.allow_stale"),
        verify=read_verify(value.get("verify"), "bardo.verify"),
        pipeline=read_pipeline(value.get("pipeline"), "bardo.pipeline"),
        layers=read_layers(value.get("layers"), "bardo.layers"),
        session=read_session(value.get("session"), "bardo.session"),
        agent=read_label(value.get("agent"), "bardo.agent", "the program that asks"),
        repository=read_label(value.get("repository"), "bardo.repository", "the repository that the call is about"),
        cache=read_cache(value.get("cache"), "bardo.cache"),
    )


def refuse_unknown(value: JsonObject, known: Iterable[str], at: str) -> None:
    """Raise InvalidRequest for a key that is not `known`, naming it and the nearest known one; `at` is where the keys stand."""
    names = tuple(known)
    for name in value:
        if name not in names:
            near = get_close_matches(name[:100], names, n=1)
            hint = f"did you mean {at}{near[0]}?" if near else f"use {', '.join(names)}"
            shown = name if len(name) <= 100 else f"{name[:100]}…"
            raise InvalidRequest(f"bardo knows no {at}{shown}", hint=hint, param=f"{at}{shown}")


def read_verify(value: object, at: str) -> str | None:
    """Return the name of the model that judges an answer, or None if nothing is said. Raises InvalidRequest naming `at`."""
    if value is None:
        return None
    if not isinstance(value, str) or not value.strip() or len(value) > _LONGEST_NAME:
        raise InvalidRequest(f"{at} is {value!r}"[:200], hint="name a model, as provider/model", param=at)
    return value.strip()


def read_pipeline(value: object, at: str) -> str | None:
    """Return the name of a profile of layers, or None if nothing is said. Raises InvalidRequest naming `at`."""
    if value is None:
        return None
    if not isinstance(value, str) or not value.strip() or len(value) > _LONGEST_NAME:
        raise InvalidRequest(f"{at} is {value!r}"[:200], hint="name a profile of layers, or off", param=at)
    return value.strip()


def read_session(value: object, at: str) -> str:
    """Return the caller's id of a conversation; empty where nothing is said. Raises InvalidRequest naming `at`."""
    return read_label(value, at, "the conversation")


def read_label(value: object, at: str, what: str) -> str:
    """Return a name that the caller gives to `what`; empty where nothing is said. Raises InvalidRequest naming `at`."""
    if value is None:
        return ""
    if not isinstance(value, str) or not value.strip() or len(value) > _LONGEST_NAME:
        hint = f"give any text that names {what}, of at most {_LONGEST_NAME} characters"
        raise InvalidRequest(f"{at} is {value!r}"[:200], hint=hint, param=at)
    return value.strip()


def read_layers(value: object, at: str) -> tuple[tuple[str, bool], ...]:
    """Return which layers are turned on and off by name. Raises InvalidRequest naming `at`."""
    if value is None:
        return ()
    if not isinstance(value, dict) or len(value) > _MOST_LAYERS or not all(type(on) is bool for on in value.values()):
        hint = 'give the names of layers with true or false: {"cache": false}'
        raise InvalidRequest(f"{at} is {value!r}"[:200], hint=hint, param=at)
    return tuple(value.items())


def read_seconds(value: object, at: str) -> float | None:
    """Return a number of seconds over 0, or None if nothing is said. Raises InvalidRequest naming `at`."""
    if value is None:
        return None
    if isinstance(value, int | float) and not isinstance(value, bool) and 0 < value <= _MOST_SECONDS:
        return float(value)
    hint = f"give seconds, over 0 and at most {_MOST_SECONDS}"
    raise InvalidRequest(f"{at} is {value!r}"[:200], hint=hint, param=at)


def read_seconds_header(value: str, name: str) -> float | None:
    """Return the seconds that a header gives; None for an empty one. Raises InvalidRequest."""
    text = value.strip()
    try:
        return read_seconds(float(text) if text else None, name)
    except ValueError:
        return read_seconds(text, name)


def _allowed(value: JsonObject) -> tuple[str, ...]:
    listed = optional(value, "allow_loss", list, "bardo.") or []
    return tuple(take(name, str, f"bardo.allow_loss[{place}]") for place, name in enumerate(listed))


def read_structured(value: object, at: str) -> StructuredOptions | None:
    """Return how an answer in a schema is asked for, or None if nothing is said of it. Raises InvalidRequest."""
    if value is None or isinstance(value, StructuredOptions):
        return value
    if isinstance(value, dict):
        refuse_unknown(value, StructuredOptions.__struct_fields__, f"{at}.")
    try:
        return msgspec.convert(value, StructuredOptions)
    except msgspec.ValidationError as problem:
        hint = "it takes mode (schema_enforced, tool_use_workaround, prompt_guided, none) and retries (0 to 5)"
        raise InvalidRequest(f"{at}: {problem}", hint=hint, param=at) from problem


def read_cache(value: object, at: str) -> CacheOptions | None:
    """Return how a call uses kept replies, or None if nothing is said of it. Raises InvalidRequest naming `at`."""
    if value is None or isinstance(value, CacheOptions):
        return value
    if isinstance(value, dict):
        refuse_unknown(value, CacheOptions.__struct_fields__, f"{at}.")
    try:
        return msgspec.convert(value, CacheOptions)
    except msgspec.ValidationError as problem:
        reasons = ", ".join(get_args(CacheAllowance))
        hint = (
            f"it takes mode (use, refresh, off), max_age_seconds, ttl_seconds, tags (at most 16) and allow ({reasons})"
        )
        raise InvalidRequest(f"{at}: {problem}", hint=hint, param=at) from problem


def read_cache_control(value: str, options: CacheOptions | None) -> CacheOptions | None:
    """Return the options with what a `Cache-Control` header says of this request; what it says to others does not count.

    Source: RFC 9111, section 5.2.1: `no-store`, `no-cache`, and `max-age`, of which a number that cannot be read is 0.
    """
    directives = [part.strip().lower().partition("=") for part in value.split(",")]
    names = {name.strip(): number.strip().strip('"') for name, _, number in directives}
    changed: JsonObject = {}
    if "no-store" in names:
        changed["mode"] = "off"
    elif "no-cache" in names:
        changed["mode"] = "refresh"
    if "max-age" in names:
        number = names["max-age"]
        changed["max_age_seconds"] = (
            float(number) if number.isascii() and number.isdigit() and len(number) < 10 else 0.0
        )
    return msgspec.structs.replace(options or CacheOptions(), **changed) if changed else options


def policy_of(value: object, at: str, *, also: Sequence[str] = ()) -> ReasoningPolicy:
    """Return the policy that is meant: a level, a budget in tokens, `off` or `auto`.

    Raises InvalidRequest for anything else, naming `at`; `also` are further words that are known there.
    """
    if isinstance(value, int) and not isinstance(value, bool) and value >= 0:
        return ReasoningPolicy(mode="budget", budget=value)
    if value in ("off", "none"):
        return ReasoningPolicy(mode="off")
    if value == "auto":
        return ReasoningPolicy(mode="auto")
    for level in EFFORTS:
        if value == level:
            return ReasoningPolicy(mode="effort", effort=level)
    hint = f"use {', '.join(('off', 'auto', *EFFORTS, *also))}, or a number of tokens"
    raise InvalidRequest(f"{at} is {value!r}", hint=hint, param=at)


def read_on_impossible(value: str | None, at: str) -> OnImpossible:
    """Return what becomes of a call that asks for no thinking where there is always some. Raises InvalidRequest."""
    for choice in ON_IMPOSSIBLE:
        if (value or "floor") == choice:
            return choice
    raise InvalidRequest(f"{at} is {value!r}", hint=f"use one of {', '.join(ON_IMPOSSIBLE)}", param=at)


def includable(name: object, at: str) -> str:
    """Return a part of the reply that may be asked for. Raises InvalidRequest for any other."""
    if take(name, str, at) not in INCLUDABLE:
        raise InvalidRequest(f"{at} is {name!r}", hint=f"use {' or '.join(INCLUDABLE)}", param=at)
    return str(name)
