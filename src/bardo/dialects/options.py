"""The `bardo` object of a request body: what a client asks of bardo itself, in any dialect."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from difflib import get_close_matches
from typing import Any, get_args

import msgspec

from bardo.dialects.intents import read_intent, read_profile, read_tick, read_vitality
from bardo.dialects.jsonfield import optional, take
from bardo.values.errors import InvalidRequest
from bardo.values.request import (
    EFFORTS,
    BardoOptions,
    CacheAllowance,
    CacheOptions,
    OnImpossible,
    ReasoningPolicy,
    StructuredOptions,
)

INCLUDABLE = ("reasoning_chain", "receipt", "structured", "partials", "route")
REASONING_WORDS = ("include", "omit", "tags")
"""How thinking is shown: as the dialect does, not at all, or in the text between tags."""
KEYS = (
    *("include", "reasoning", "on_impossible", "structured", "allow_loss", "intent", "profile", "private", "vitality"),
    *("tick", "deadline_seconds", "allow_stale", "verify", "pipeline", "layers", "session", "cache"),
)
_MOST_SECONDS = 31_536_000
_LONGEST_NAME = 500
_MOST_LAYERS = 64
ON_IMPOSSIBLE: tuple[OnImpossible, ...] = ("fail", "floor", "reroute")


def read_options(fields: dict[str, Any]) -> BardoOptions:
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
        cache=read_cache(value.get("cache"), "bardo.cache"),
    )


def refuse_unknown(value: dict[str, Any], known: Iterable[str], at: str) -> None:
    """Raise InvalidRequest for a key that is not `known`, naming it and the nearest known one; `at` is where the keys stand."""
    names = tuple(known)
    for name in value:
        if name not in names:
            near = get_close_matches(name[:100], names, n=1)
            hint = f"did you mean {at}{near[0]}?" if near else f"use {', '.join(names)}"
            shown = name if len(name) <= 100 else f"{name[:100]}…"
            raise InvalidRequest(f"bardo knows no {at}{shown}", hint=hint, param=f"{at}{shown}")


def read_verify(value: Any, at: str) -> str | None:
    """Return the name of the model that judges an answer; None where nothing is said. Raises InvalidRequest naming `at`."""
    if value is None:
        return None
    if not isinstance(value, str) or not value.strip() or len(value) > _LONGEST_NAME:
        raise InvalidRequest(f"{at} is {value!r}"[:200], hint="name a model, as provider/model", param=at)
    return value.strip()


def read_pipeline(value: Any, at: str) -> str | None:
    """Return the name of a profile of layers; None where nothing is said. Raises InvalidRequest naming `at`."""
    if value is None:
        return None
    if not isinstance(value, str) or not value.strip() or len(value) > _LONGEST_NAME:
        raise InvalidRequest(f"{at} is {value!r}"[:200], hint="name a profile of layers, or off", param=at)
    return value.strip()


def read_session(value: Any, at: str) -> str:
    """Return the caller's id of a conversation; empty where nothing is said. Raises InvalidRequest naming `at`."""
    if value is None:
        return ""
    if not isinstance(value, str) or not value.strip() or len(value) > _LONGEST_NAME:
        hint = f"give any text that names the conversation, of at most {_LONGEST_NAME} characters"
        raise InvalidRequest(f"{at} is {value!r}"[:200], hint=hint, param=at)
    return value.strip()


def read_layers(value: Any, at: str) -> tuple[tuple[str, bool], ...]:
    """Return which layers are turned on and off by name. Raises InvalidRequest naming `at`."""
    if value is None:
        return ()
    if not isinstance(value, dict) or len(value) > _MOST_LAYERS or not all(type(on) is bool for on in value.values()):
        hint = 'give the names of layers with true or false: {"cache": false}'
        raise InvalidRequest(f"{at} is {value!r}"[:200], hint=hint, param=at)
    return tuple(value.items())


def read_seconds(value: Any, at: str) -> float | None:
    """Return a number of seconds over 0; None where nothing is said. Raises InvalidRequest naming `at`."""
    if value is None:
        return None
    number = isinstance(value, int | float) and not isinstance(value, bool)
    if not number or not 0 < value <= _MOST_SECONDS:
        hint = f"give seconds, over 0 and at most {_MOST_SECONDS}"
        raise InvalidRequest(f"{at} is {value!r}"[:200], hint=hint, param=at)
    return float(value)


def read_seconds_header(value: str, name: str) -> float | None:
    """Return the seconds that a header gives; None for an empty one. Raises InvalidRequest."""
    text = value.strip()
    try:
        return read_seconds(float(text) if text else None, name)
    except ValueError:
        return read_seconds(text, name)


def _allowed(value: dict[str, Any]) -> tuple[str, ...]:
    listed = optional(value, "allow_loss", list, "bardo.") or []
    return tuple(take(name, str, f"bardo.allow_loss[{place}]") for place, name in enumerate(listed))


def read_structured(value: Any, at: str) -> StructuredOptions | None:
    """Return how an answer in a schema is asked for, None where nothing is said of it. Raises InvalidRequest."""
    if value is None or isinstance(value, StructuredOptions):
        return value
    if isinstance(value, dict):
        refuse_unknown(value, StructuredOptions.__struct_fields__, f"{at}.")
    try:
        return msgspec.convert(value, StructuredOptions)
    except msgspec.ValidationError as problem:
        hint = "it takes mode (schema_enforced, tool_use_workaround, prompt_guided, none) and retries (0 to 5)"
        raise InvalidRequest(f"{at}: {problem}", hint=hint, param=at) from problem


def read_cache(value: Any, at: str) -> CacheOptions | None:
    """Return how a call uses kept replies, None where nothing is said of it. Raises InvalidRequest naming `at`."""
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
    said = [part.strip().lower().partition("=") for part in value.split(",")]
    names = {name.strip(): number.strip().strip('"') for name, _, number in said}
    changed: dict[str, Any] = {}
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


def policy_of(value: Any, at: str, *, also: Sequence[str] = ()) -> ReasoningPolicy:
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
    for known in ON_IMPOSSIBLE:
        if (value or "floor") == known:
            return known
    raise InvalidRequest(f"{at} is {value!r}", hint=f"use one of {', '.join(ON_IMPOSSIBLE)}", param=at)


def includable(name: Any, at: str) -> str:
    """Return a part of the reply that may be asked for. Raises InvalidRequest for any other."""
    if take(name, str, at) not in INCLUDABLE:
        raise InvalidRequest(f"{at} is {name!r}", hint=f"use {' or '.join(INCLUDABLE)}", param=at)
    return str(name)
