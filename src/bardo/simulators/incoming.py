"""An HTTP request as the simulator received it; tests inspect it afterwards."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from urllib.parse import parse_qs, unquote, urlsplit

from bardo.simulators.fields import Fields, fields


@dataclass(frozen=True, slots=True, kw_only=True)
class Incoming:
    """One HTTP request. Header names are lower case; `body` is the parsed JSON, None where there is none."""

    method: str
    path: str
    query: Mapping[str, str]
    headers: Mapping[str, str]
    raw: bytes
    body: object

    @property
    def fields(self) -> Fields:
        """The body as an object; empty where it is not one."""
        return fields(self.body)

    @property
    def bearer(self) -> str:
        """The key of the Authorization header."""
        scheme, _, key = self.headers.get("authorization", "").partition(" ")
        return key.strip() if scheme.lower() == "bearer" else ""


def read_incoming(method: str, target: str, headers: Mapping[str, str], raw: bytes) -> Incoming:
    """Read a request line's target, headers and body."""
    parts = urlsplit(target)
    query = {name: values[-1] for name, values in parse_qs(parts.query, keep_blank_values=True).items()}
    return Incoming(method=method, path=unquote(parts.path), query=query, headers=headers, raw=raw, body=_parsed(raw))


def _parsed(raw: bytes) -> object:
    try:
        value: object = json.loads(raw) if raw else None
    except (ValueError, RecursionError):
        return None
    return value
