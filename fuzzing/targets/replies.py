"""Targets `whole` and `streamed`: the replies of every dialect to events, and the events to what each client gets."""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Sequence
from functools import cache

import msgspec

from bardo.catalog.load import builtin
from bardo.catalog.rows import ProviderRow
from bardo.dialects import DIALECTS, dialect
from bardo.replies.forwarding import Forwarding
from bardo.replies.reply_reader import ReplyHandling, row_reader
from bardo.surfaces.library.decoding import provider_row
from bardo.values.errors import ProviderError
from bardo.values.events import Event, Failed
from bardo.values.request import Request
from bardo.values.response import Response
from bardo.values.wire import Arrival
from fuzzing.inputs import Input, kept_replies
from fuzzing.laws import Laws, hold, same
from fuzzing.target import Target

_CLIENTS = ("openai_chat", "openai_responses", "anthropic_messages", "gemini")
_MADE = {
    # Dialects without a reply among the fixtures get a plain one, in the shape of their page.
    "gemini_interactions": b'{"id":"i","status":"completed","outputs":[{"type":"text","text":"Ebb"}],"usage":{"total_tokens":3}}',
    "watsonx_text": b'{"model_id":"m","results":[{"generated_text":"Ebb","generated_token_count":1,"stop_reason":"eos_token"}]}',
}


@cache
def _row(name: str) -> ProviderRow:
    try:
        return provider_row(name)
    except ValueError:
        return next(row for row in map(builtin().provider, builtin().names()) if row is not None and row.id == name)


@cache
def _all_seeds() -> Sequence[tuple[bool, Input]]:
    kept = [(one.framing != "json", Input(one.provider, one.body)) for one in kept_replies()]
    met = {_row(one.variant).dialect for _, one in kept}
    rows = [row for row in map(builtin().provider, builtin().names()) if row is not None]
    others = [next((row for row in rows if row.dialect == name), None) for name in DIALECTS if name not in met]
    return (*kept, *((False, Input(row.id, _MADE.get(row.dialect, b"{}"))) for row in others if row is not None))


@cache
def _words(variant: str) -> Sequence[bytes]:
    """Return the names of fields and the short texts of the replies that a dialect has."""
    found: set[bytes] = set()
    for _, one in _all_seeds():
        if _row(one.variant).dialect == _row(variant).dialect:
            found |= {part for part in one.body.split(b'"') if 0 < len(part) < 40}
    return sorted(found)


def _read(one: Input, pieces: Iterable[bytes], *, streamed: bool) -> tuple[list[Event], Response]:
    reader = row_reader(_row(one.variant), streamed=streamed)
    events = [event for piece in pieces for event in reader.feed(piece)] + reader.finish()
    same(reader.finish() if reader.failure is not None else [], [], "a failed reply gives nothing twice")
    return events, reader.fold.response()


def _check(one: Input, laws: Laws, *, streamed: bool) -> None:
    events, reply = _read(one, [one.body], streamed=streamed)
    failures = [event for event in events if type(event) is Failed]
    hold(
        reply.error is None or isinstance(reply.error, ProviderError),
        f"a reply's error is a provider's: {reply.error!r}",
    )
    hold(len(failures) == (reply.error is not None), "a failure is told once")
    hold(not failures or events[-1] is failures[0], "nothing follows a failure")
    for pieces in laws.cuts_of(one.body):
        same(_comparable(_read(one, pieces, streamed=streamed)[1]), _comparable(reply), "any cut gives the same reply")
    for name in laws.some(_CLIENTS):
        _write(name, events, reply)
    if streamed and "forwarded" in laws.some(("forwarded", "translated")):
        frames = re.split(rb"(?<=\n\n)", one.body)
        usual, direct = (_forwarded(one, frames, directly=directly) for directly in (False, True))
        same(direct, usual, "a piece that is passed on at once says what one says that wakes a task")


def _forwarded(one: Input, pieces: Iterable[bytes], *, directly: bool) -> tuple[bytes, tuple[Response, type | None]]:
    """Return what a client gets of a stream that is forwarded, and the reply."""
    reader = row_reader(_row(one.variant), streamed=True, handling=ReplyHandling(forward=True))
    forwarding = Forwarding(reader, forward=True, withhold_usage=False, hold_end=False)
    updates = []
    for piece in filter(None, pieces):
        quick = forwarding.repeated(piece) if directly else None
        updates.append(forwarding.update(piece) if quick is None else quick)
    return b"".join([update.raw for update in (*updates, forwarding.rest())]), _comparable(reader.response())


def _comparable(reply: Response) -> tuple[Response, type | None]:
    """Return a reply and the kind of its error: how much an error quotes depends on how much had come."""
    return msgspec.structs.replace(reply, error=None), type(reply.error)


def _write(name: str, events: Sequence[Event], reply: Response) -> None:
    client, request = dialect(name), Request(model="m", messages=(), dialect=name)
    encoder = client.open_encoder(request, Arrival())
    b"".join([piece for event in events for piece in encoder.feed(event)] + list(encoder.finish())).decode()
    if reply.error is None:
        json.loads(client.encode_response(reply, request))
    else:
        json.loads(client.encode_error(reply.error))


def _target(name: str, says: str, *, streamed: bool) -> Target:
    return Target(
        name=name,
        says=says,
        seeds=lambda: [one for kind, one in _all_seeds() if kind is streamed],
        check=lambda one, laws: _check(one, laws, streamed=streamed),
        work=lambda one: _read(
            one, [one.body[at : at + 100] for at in range(0, len(one.body), 100)], streamed=streamed
        ),
        words=_words,
        per_byte=150,
        beside=60_000,
    )


WHOLE = _target("whole", "whole replies of every dialect", streamed=False)
STREAMED = _target("streamed", "streamed replies of every dialect", streamed=True)
