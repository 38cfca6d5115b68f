"""Target `requests`: what clients send in every dialect, read, and written for providers of every other one."""

from __future__ import annotations

import json
from collections.abc import Sequence
from functools import cache

from bardo.catalog.load import builtin
from bardo.catalog.rows import ProviderRow
from bardo.dialects import dialect
from bardo.values.errors import CallerError
from bardo.values.request import Request
from bardo.values.wire import Arrival
from fuzzing.inputs import Input, corpus_of, kept_replies
from fuzzing.laws import Laws, hold
from fuzzing.target import Target

_ARRIVAL = Arrival(model="m")
_READ_BACK = ("openai_chat", "openai_responses", "anthropic_messages", "gemini", "ollama", "cohere", "bedrock_converse")


@cache
def _rows() -> dict[str, ProviderRow]:
    rows = [row for row in map(builtin().provider, builtin().names()) if row is not None]
    return {row.dialect: row for row in reversed(rows)}


@cache
def _seeds() -> Sequence[Input]:
    """Return the full requests of the corpus, and the requests of the kept replies in a dialect that clients use."""
    rows = {row.id: row for row in map(builtin().provider, builtin().names()) if row is not None}
    found = {
        Input(rows[one.provider].dialect, json.dumps(one.request).encode())
        for one in kept_replies()
        if one.request and one.provider in rows and rows[one.provider].dialect in _READ_BACK
    }
    return (*(one for _, one in corpus_of("requests")), *sorted(found, key=lambda one: one.name))


@cache
def _words(variant: str) -> Sequence[bytes]:
    bodies = [one.body for one in _seeds() if one.variant == variant]
    return sorted({part for body in bodies for part in body.split(b'"') if 0 < len(part) < 40})


def _read(one: Input) -> Request | None:
    try:
        return dialect(one.variant).decode_request(one.body, _ARRIVAL)
    except CallerError:
        return None


def _check(one: Input, laws: Laws) -> None:
    request = _read(one)
    if request is None:
        return
    for name, row in laws.some(tuple(_rows().items())):
        language = dialect(name)
        try:
            wire = language.encode_request(request, row)
        except CallerError:
            continue
        hold(isinstance(json.loads(wire.body), dict), "a request is a JSON object")


TARGET = Target(
    name="requests",
    says="requests of every dialect, read and written for every other one",
    seeds=_seeds,
    check=_check,
    work=_read,
    words=_words,
    per_byte=100,
)
