"""Adds to a written request what asks a provider to leave out thinking that no longer holds."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import msgspec

from bardo.catalog.replay import Binding
from bardo.values.wire import WireRequest


def amended(wire: WireRequest, binding: Binding | None) -> WireRequest:
    """Return the request with the fields and headers that `binding` asks by; None asks for nothing."""
    if binding is None:
        return wire
    body = _joined(_joined(binding.beside, msgspec.json.decode(wire.body)), binding.ask)
    return msgspec.structs.replace(
        wire, body=msgspec.json.encode(body), headers=_headers(wire.headers, binding.headers)
    )


def _joined(under: Mapping[str, Any], over: Mapping[str, Any]) -> dict[str, Any]:
    """Return both objects as one; where both say something, `over` does."""
    joined = dict(under)
    for name, value in over.items():
        before = joined.get(name)
        both = isinstance(before, Mapping) and isinstance(value, Mapping)
        joined[name] = _joined(before, value) if both else value  # type: ignore[arg-type]
    return joined


def _headers(held: Mapping[str, str], asked: Mapping[str, str]) -> dict[str, str]:
    headers = dict(held)
    for name, value in asked.items():
        named = [one.strip() for one in headers.get(name, "").split(",") if one.strip()]
        headers[name] = ",".join(dict.fromkeys([*named, value]))
    return headers
