"""Sampling parameters and the fields for thinking, by the names that dialects and servers have for them."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Any, Literal, NamedTuple

import msgspec

from bardo.catalog.fragments import at_path, merge_fields
from bardo.dialects.shared.json_values import JsonObject, number, optional, take
from bardo.values.blocks import Carried, fields_for
from bardo.values.errors import InvalidRequest
from bardo.values.request import EFFORTS, Effort, ReasoningPolicy, Request, Sampling

_WHOLE = frozenset(field.name for field in msgspec.structs.fields(Sampling) if field.type == int | None)
"""The parameters that are whole numbers."""
_NO_SAMPLING = Sampling()


def encode_sampling(sampling: Sampling, names: Mapping[str, str]) -> JsonObject:
    """Return the parameters that are set and have a name in `names`, under that name."""
    if sampling == _NO_SAMPLING:
        return {}
    written = {wire: value for field, wire in names.items() if (value := getattr(sampling, field)) is not None}
    stop = names.get("stop", "")
    if written.pop(stop, ()):
        written[stop] = list(sampling.stop)
    return written


def decode_sampling(fields: JsonObject, names: Mapping[str, str], at: str = "", *, one_stop: bool = False) -> Sampling:
    """Return the parameters that stand in `fields` under the `names` of a dialect. Raises InvalidRequest, naming the field.

    `one_stop`: a single stop sequence may stand there without a list.
    """
    if fields.keys().isdisjoint(names.values()):
        return Sampling()
    values: JsonObject = {
        field: whole_number(fields, wire, at) if field in _WHOLE else number(fields, wire, at)
        for field, wire in names.items()
        if field != "stop" and wire in fields
    }
    return Sampling(stop=_stops(fields, names.get("stop", ""), at, single_text=one_stop), **values)


def whole_number(fields: JsonObject, name: str, at: str = "") -> int | None:
    """Return a whole number; 40.0 is one too, as clients in some languages write it."""
    return as_whole_number(number(fields, name, at), f"{at}{name}")


def as_whole_number(value: float | None, param: str) -> int | None:
    """Return a number as a whole one. Raises InvalidRequest naming `param` where it is none."""
    if isinstance(value, float) and not (math.isfinite(value) and value.is_integer()):
        raise InvalidRequest(f"{param} must be a whole number", param=param)
    return None if value is None else int(value)


def _stops(fields: JsonObject, wire: str, at: str, *, single_text: bool) -> tuple[str, ...]:
    value: Sequence[object] | None = optional(fields, wire, (str, list) if single_text else list, at)
    stops = [value] if isinstance(value, str) else value or []
    return tuple(take(text, str, f"{at}{wire}[{place}]") for place, text in enumerate(stops))


OPENAI_SAMPLING = {
    "temperature": "temperature",
    "top_p": "top_p",
    "top_k": "top_k",
    "min_p": "min_p",
    "repetition_penalty": "repetition_penalty",
    "frequency_penalty": "frequency_penalty",
    "presence_penalty": "presence_penalty",
    "seed": "seed",
    "stop": "stop",
}
"""The sampling parameters by their names in Chat and Responses."""


TEMPLATE = "chat_template_kwargs"
_SWITCHES = ("enable_thinking", "thinking")
_OBJECTS = {
    "reasoning": frozenset({"effort", "max_tokens", "enabled", "exclude"}),
    "thinking": frozenset({"type", "budget_tokens"}),
    "output_config": frozenset({"effort"}),
    TEMPLATE: frozenset({*_SWITCHES, "thinking_budget", "reasoning_effort"}),
}
_READ_ELSEWHERE = {"output_config": frozenset({"format"})}
"""The fields of these objects that are not about thinking."""
FIELDS = frozenset(
    {
        "reasoning_effort", "reasoning", "include_reasoning", "thinking", "enable_thinking", "thinking_budget", "thinking_token_budget",
        "think", "output_config",
    }
)  # fmt: skip
"""The top-level fields that are read here, and stay in no request's `extra`."""
_PLACES = FIELDS | {TEMPLATE}


class RequestedReasoning(NamedTuple):
    """A policy (None: nothing was said), and whether the reply is to leave the thinking out."""

    policy: ReasoningPolicy | None
    omit: bool


class _RequestedReasoning:
    """The fields about one request's thinking. A value may stand in several places, but not with different values."""

    def __init__(self) -> None:
        self._by_what: dict[str, tuple[object, str]] = {}

    def take(self, what: str, value: object, place: str) -> None:
        """Take a word. Raises InvalidRequest where another place says otherwise."""
        if value is None:
            return
        before, where = self._by_what.setdefault(what, (value, place))
        if before != value:
            message = f"{where} and {place} say different things of the model's thinking"
            raise InvalidRequest(message, hint="say it in one of them", param=place)

    def effort(self, word: str | None, place: str) -> None:
        """Take a level, or one of the words that stand in its place."""
        if word in ("none", "default"):
            self.take("on", word == "default", place)
        elif word is not None:
            self.take("effort", _level(word, place), place)

    def budget(self, tokens: int | None, place: str) -> None:
        """Take a budget in tokens."""
        if tokens is not None and tokens < 0:
            raise InvalidRequest(f"{place} must not be negative", hint="give a number of tokens", param=place)
        self.take("budget", tokens, place)

    def get(self, what: str) -> Any:
        """Return what was said, or None."""
        return self._by_what.get(what, (None,))[0]

    @property
    def mode(self) -> Literal["off", "effort", "budget", "auto"]:
        """The mode by all fields: a budget goes before a level, and off before both."""
        if self.get("on") is False:
            return "off"
        if self.get("budget") is not None:
            return "budget"
        return "auto" if self.get("effort") is None else "effort"


def read_thinking(fields: JsonObject, dialect: str) -> RequestedReasoning:
    """Return the policy of a request body. Raises InvalidRequest, naming the field, for an unknown level, a negative budget, or fields that
    contradict each other. A level beside a budget, and either beside off, is kept in the policy, and reported by who writes it."""
    if _PLACES.isdisjoint(fields):
        return RequestedReasoning(None, omit=False)
    requested = _RequestedReasoning()
    requested.effort(optional(fields, "reasoning_effort", str), "reasoning_effort")
    requested.take("on", optional(fields, "enable_thinking", bool), "enable_thinking")
    for name in ("thinking_budget", "thinking_token_budget"):
        requested.budget(optional(fields, name, int), name)
    think: Any = optional(fields, "think", (bool, str))
    if isinstance(think, bool):
        requested.take("on", think, "think")
    else:
        requested.effort(think, "think")
    shown = _read_reasoning(fields, requested)
    _read_object(fields, requested)
    config = optional(fields, "output_config", dict) or {}
    requested.effort(optional(config, "effort", str, "output_config."), "output_config.effort")
    nested, at = optional(fields, TEMPLATE, dict) or {}, f"{TEMPLATE}."
    for switch in _SWITCHES:
        requested.take("on", optional(nested, switch, bool, at), at + switch)
    requested.budget(optional(nested, "thinking_budget", int, at), f"{at}thinking_budget")
    requested.effort(optional(nested, "reasoning_effort", str, at), f"{at}reasoning_effort")
    told, rest = _read_fields(fields)
    amount = any(requested.get(what) is not None for what in ("on", "effort", "budget"))
    if not amount and shown is None and not rest:
        return RequestedReasoning(None, omit=False)
    policy = ReasoningPolicy(
        mode=requested.mode,
        effort=requested.get("effort"),
        budget=requested.get("budget"),
        visible=shown,
        # Anthropic's field for the effort does not enable thinking.
        enables_thinking=amount and told.keys() != {"output_config"},
        carried=Carried(dialect, rest) if rest else None,
        raw_fields=told,
    )
    return RequestedReasoning(policy, omit=shown is False)


def _read_reasoning(fields: JsonObject, requested: _RequestedReasoning) -> bool | None:
    """Read `reasoning`, and return whether the client wants to read the thinking, or None if it does not say."""
    nested = optional(fields, "reasoning", dict) or {}
    requested.effort(optional(nested, "effort", str, "reasoning."), "reasoning.effort")
    requested.budget(optional(nested, "max_tokens", int, "reasoning."), "reasoning.max_tokens")
    requested.take("on", optional(nested, "enabled", bool, "reasoning."), "reasoning.enabled")
    included = optional(fields, "include_reasoning", bool)
    excluded = optional(nested, "exclude", bool, "reasoning.")
    if excluded is not None:
        return not excluded
    summary = optional(nested, "summary", str, "reasoning.") or optional(nested, "generate_summary", str, "reasoning.")
    return summary != "none" if summary and included is None else included


def _read_object(fields: JsonObject, requested: _RequestedReasoning) -> None:
    thinking: Any = optional(fields, "thinking", (bool, dict))
    if isinstance(thinking, bool):
        requested.take("on", thinking, "thinking")
        return
    nested = thinking or {}
    kind = optional(nested, "type", str, "thinking.")
    if kind not in (None, "enabled", "adaptive", "auto", "disabled"):
        hint = "use enabled, adaptive, auto or disabled"
        raise InvalidRequest(f"thinking.type is {kind!r}", hint=hint, param="thinking.type")
    requested.take("on", None if kind is None else kind != "disabled", "thinking.type")
    requested.budget(optional(nested, "budget_tokens", int, "thinking."), "thinking.budget_tokens")


def _level(word: str, place: str) -> Effort:
    for level in EFFORTS:
        if word == level:
            return level
    raise InvalidRequest(f"{place} is {word!r}", hint=f"use one of {', '.join(('none', *EFFORTS))}", param=place)


def _read_fields(fields: JsonObject) -> tuple[JsonObject, JsonObject]:
    """Return the words that were read, as a fragment of the body; and by their paths those beside them that bardo has no word for."""
    told: JsonObject = {}
    rest: JsonObject = {}
    for name in (*sorted(FIELDS), TEMPLATE):
        value = fields.get(name)
        if not isinstance(value, dict):
            told |= {} if value is None else {name: value}
            continue
        read = {inner: part for inner, part in value.items() if inner in _OBJECTS[name] and part is not None}
        told |= {name: read} if read else {}
        if name != TEMPLATE:
            others = value.keys() - _OBJECTS[name] - _READ_ELSEWHERE.get(name, frozenset())
            rest |= {f"{name}.{inner}": value[inner] for inner in value if inner in others and value[inner] is not None}
    return told, rest


def without_thinking(extra: JsonObject) -> JsonObject:
    """Return a request's further fields without what was read here: the chat template's other arguments stay."""
    fields = {name: value for name, value in extra.items() if name not in FIELDS}
    arguments = fields.get(TEMPLATE)
    if isinstance(arguments, dict):
        others = {name: value for name, value in arguments.items() if name not in _OBJECTS[TEMPLATE]}
        fields |= {TEMPLATE: others}
        return fields if others else {name: value for name, value in fields.items() if name != TEMPLATE}
    return fields


def with_own_words(fields: Mapping[str, object], request: Request, dialect: str) -> tuple[JsonObject, JsonObject]:
    """Return the fields for thinking: the control's and the caller's own words beside them; and the words left out, by path.

    Words stay with their object. They are left out where the target is told how to think without that object.
    """
    policy = request.reasoning
    own = fields_for(dialect, policy.carried) if policy is not None else {}
    written, left = dict(fields), {}
    for path, value in own.items():
        name = path.partition(".")[0]
        requested = policy.raw_fields if policy is not None else {}
        if isinstance(fields.get(name), Mapping) or (not fields and name not in requested):
            written = merge_fields(written, at_path(path, value))
        else:
            left[path] = value
    return written, left
