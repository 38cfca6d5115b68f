"""Sampling parameters by the names that dialects have for them."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any

import msgspec

from bardo.dialects.jsonfield import number, optional, take
from bardo.values.errors import InvalidRequest
from bardo.values.request import Sampling

_WHOLE = frozenset(field.name for field in msgspec.structs.fields(Sampling) if field.type == int | None)
"""The parameters that are whole numbers."""
_NO_SAMPLING = Sampling()


def encode_sampling(sampling: Sampling, names: Mapping[str, str]) -> dict[str, Any]:
    """Return the parameters that are set and have a name in `names`, under that name."""
    if sampling == _NO_SAMPLING:
        return {}
    written = {wire: value for field, wire in names.items() if (value := getattr(sampling, field)) is not None}
    stop = names.get("stop", "")
    if written.pop(stop, ()):
        written[stop] = list(sampling.stop)
    return written


def decode_sampling(
    fields: dict[str, Any], names: Mapping[str, str], at: str = "", *, one_stop: bool = False
) -> Sampling:
    """Return the parameters that stand in `fields` under the `names` of a dialect. Raises InvalidRequest, naming the field.

    `one_stop`: a single stop sequence may stand there without a list.
    """
    if fields.keys().isdisjoint(names.values()):
        return Sampling()
    values: dict[str, Any] = {
        field: whole_number(fields, wire, at) if field in _WHOLE else number(fields, wire, at)
        for field, wire in names.items()
        if field != "stop" and wire in fields
    }
    return Sampling(stop=_stops(fields, names.get("stop", ""), at, single_text=one_stop), **values)


def whole_number(fields: dict[str, Any], name: str, at: str = "") -> int | None:
    """Return a whole number; 40.0 is one too, as clients in some languages write it."""
    value = number(fields, name, at)
    if isinstance(value, float) and not (math.isfinite(value) and value.is_integer()):
        raise InvalidRequest(f"{at}{name} must be a whole number", param=f"{at}{name}")
    return None if value is None else int(value)


def _stops(fields: dict[str, Any], wire: str, at: str, *, single_text: bool) -> tuple[str, ...]:
    value: Any = optional(fields, wire, (str, list) if single_text else list, at)
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
