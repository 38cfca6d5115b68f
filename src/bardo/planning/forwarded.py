"""What of a client's request goes on as it came: the bytes of its body with a few fields changed, and its headers."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any

import msgspec

from bardo.catalog.fragments import merge_fields
from bardo.catalog.request_shapes import RequestShape
from bardo.catalog.rows import ProviderRow
from bardo.dialects import dialect
from bardo.dialects.shared.history_repair import is_sound
from bardo.dialects.shared.json_values import JsonObject, encode_json
from bardo.dialects.shared.media import has_known_media, has_plain_sound, holds_document_as_picture
from bardo.dialects.shared.states import holds_seal
from bardo.dialects.shared.turns import holds_fields
from bardo.planning.request_shapes import ShapePlan
from bardo.planning.tools import takes_names
from bardo.reasoning.control import fit_messages
from bardo.values.blocks import DocumentBlock, ImageBlock, ReasoningBlock, ToolResultBlock, UnknownBlock
from bardo.values.request import HistoryFacts, Request
from bardo.values.secrets import NO_SECRETS, Secrets
from bardo.values.wire import WireRequest

_SPACE = ord(" ")
_split = msgspec.json.Decoder(dict[str, msgspec.Raw]).decode
_SPACED_FIELD = b'"%b": %b'.__mod__
_BEFORE_VALUE = re.compile(rb'[\s,{]*"([^"\\]*)"\s*:\s*')
# Sound is a block that only its dialect knows.
_MEDIA = frozenset((ImageBlock, DocumentBlock, UnknownBlock))
# Bytes from which on a copy of a value is not made lightly.
_LONG = 16_384
_END = re.compile(rb"\s*\}\s*")


def keeps_fields(planned: ShapePlan, request: Request, row: ProviderRow, facts: HistoryFacts) -> bool:
    """Whether all that a client's own body says beside its history is what the target is to be told. `facts` are those of its messages."""
    controlled, body, thinking = planned.controlled, request.body, planned.thinking
    if body is None or thinking is None or controlled.request.tool_choice != request.tool_choice:
        return False
    raw = controlled.request.reasoning.raw_fields if controlled.request.reasoning is not None else {}
    if (thinking or raw) and (merge_fields(body, thinking) != body or merge_fields(thinking, raw) != thinking):
        return False
    plan, language = controlled.plan, dialect(row.dialect)
    if plan.system_text or fit_messages(request, plan, facts)[0] is not request or language.mends(request, row, facts):
        return False
    return not (request.tools and language.tool_losses(request).all)


def own_body(request: Request, row: ProviderRow, *, asks_usage: bool) -> WireRequest:
    """Return the client's own body, but for the model's name and the usage that bardo wants to know."""
    language, body = dialect(row.dialect), request.body or {}
    changes: JsonObject = {"model": request.model} if "model" in body and body["model"] != request.model else {}
    if asks_usage and language.usage_option is not None:
        holder, name = language.usage_option
        changes[holder] = {**(body.get(holder) or {}), name: True}
    written = with_fields(request.body_bytes, body, changes) or encode_json({**body, **changes})
    return WireRequest(path=language.request_path(request), body=written)


def with_history_as_it_came(
    written: Request, request: Request, row: ProviderRow, shape: RequestShape, facts: HistoryFacts
) -> WireRequest | None:
    """Return a body whose history has the client's own bytes, beside fields that are written anew, or None if the history must change.

    `written` is the client's `request` with what its target is told of thinking and of parameters; most bytes of a long conversation are
    not looked at for that.
    """
    body, language = request.body, dialect(row.dialect)
    if body is None or language.history not in body or written.messages is not request.messages:
        return None
    if language.mends(written, row, facts) or not takes_history(written, row, shape, facts):
        return None
    form, thoughts = row.quirks.replay, [block for block in facts.blocks if type(block) is ReasoningBlock]
    if form not in ("none", "reasoning_details") and any(block.format != form for block in thoughts):
        # Thinking in another field than its provider's own is written into that.
        return None
    values = _split(request.body_bytes) if request.body_bytes else {}
    if values.keys() != body.keys():
        return None
    # The system prompt may be a field of its own, which is written of the messages that begin the conversation.
    count = next((place for place, turn in enumerate(request.messages) if turn.role != "system"), len(request.messages))
    beginning = request.messages[: count + 1]
    if len(beginning) == count or beginning[-1].role != "user" or ToolResultBlock in beginning[-1].kinds:
        return None
    path, fields, losses = language.encode_fields(msgspec.structs.replace(written, messages=beginning), row)
    if any(request.body_bytes.count(b'"%b"' % name.encode()) > losses.most_of(name) for name in losses.markers):
        return None
    turns, begun = body[language.history], fields.get(language.history)
    # Nothing is sent of a beginning that says nothing, and what the system says in the history may be written into a field of its own.
    if not begun or (isinstance(turns, list) and turns[len(begun) - 1].get("role") in ("system", "developer")):
        return None
    own = {name: value for name, value in values.items() if name in fields}
    changed = {
        name: value for name, value in fields.items() if name != language.history and value != body.get(name, fields)
    }
    return WireRequest(path=path, body=encode_json({**own, **changed}), degraded=losses.all)


def takes_history(request: Request, row: ProviderRow, shape: RequestShape, facts: HistoryFacts) -> bool:
    """Whether a provider takes the history of a client's own body as it is, and its tools by their names.

    `shape` is what the model demands there. State that bardo sealed for the client is opened before it is sent. What is left out of the
    fields of a request only makes this stricter.
    """
    body, parts = request.body or {}, facts.parts
    return not (
        (request.attribution and row.attribution != "whole")
        or row.paths is not None
        or (facts.calls and not takes_names(facts.calls, shape.tool_names))
        or (len(request.messages) > 1 and not is_sound(request, shape, row.dialect))
        or (shape.assistant_fields and holds_fields(body, shape.assistant_fields))
        or (
            not parts.isdisjoint(_MEDIA)
            and not (
                has_known_media(request, parts)
                and has_plain_sound(request, parts)
                and not holds_document_as_picture(request, parts)
            )
        )
        or holds_seal(request)
    )


def with_fields(raw: bytes, fields: dict[str, Any], changes: dict[str, Any]) -> bytes | None:
    """Return the JSON object `raw` with some of its fields changed or added, all other bytes as they are.

    `fields` is what was read of it. None if `raw` is not an object of just these fields, each named once and without escapes.
    """
    if not raw:
        return None
    values = _split(raw)
    if not values or values.keys() != fields.keys():
        return None
    if len(raw) < _LONG:
        # Most clients write no spaces, or one: writing the values as they came gives their own bytes again.
        write = _spaced if raw[raw.find(b":") + 1] == _SPACE else encode_json
        if write(values) == raw:
            if not changes:
                return raw
            first = next(iter(values))
            if len(changes) == 1 and first in changes:
                begin = len(first.encode()) + len('{"": ' if write is _spaced else '{"":')
                return b"".join((raw[:begin], encode_json(changes[first]), raw[begin + _length(values[first]) :]))
            return write({**values, **{name: msgspec.Raw(encode_json(value)) for name, value in changes.items()}})
    spans = _spans(raw, values)
    if spans is None:
        return None
    view, place = memoryview(raw), 0
    pieces: list[bytes | memoryview] = []
    for name, (start, end) in spans.items():
        if name in changes:
            pieces += [view[place:start], encode_json(changes[name])]
            place = end
        last = end
    added = {name: value for name, value in changes.items() if name not in spans}
    if added:
        pieces += [view[place:last], b",", encode_json(added)[1:-1]]
        place = last
    return b"".join([*pieces, view[place:]]) if pieces else raw


def _spaced(values: dict[str, Any]) -> bytes:
    """Return an object as Python's own encoder writes it. A name that must be escaped is not, so that this is what no client has sent."""
    # Without a step of Python for each field.
    return b"{%b}" % b", ".join(map(_SPACED_FIELD, zip(map(str.encode, values), values.values(), strict=True)))


def _spans(raw: bytes, values: dict[str, msgspec.Raw]) -> dict[str, tuple[int, int]] | None:
    """Return where the value of each field stands, or None if the object cannot be changed in its place."""
    # Of a name that stands twice, the reader gives the last value. Where all values but one are those that stand behind their names, that
    # one has nothing else in its place: it would be longer than itself. So one long value need not be compared.
    unread = max(values.values(), key=_length) if len(raw) > _LONG else None
    spans, place = {}, 0
    for name, value in values.items():
        before = _BEFORE_VALUE.match(raw, place)
        if before is None or before[1] != name.encode():
            return None
        start = before.end()
        if value is unread:
            place = start + _length(value)
        else:
            written = bytes(value)
            if not raw.startswith(written, start):
                return None
            place = start + len(written)
        spans[name] = (start, place)
    return spans if _END.fullmatch(raw, place) else None


def _length(value: msgspec.Raw) -> int:
    return memoryview(value).nbytes


PassedHeaders = tuple[tuple[str, str], ...]

UPSTREAM_ID = "X-Bardo-Upstream-Request-Id"
_LIMITS = ("anthropic-ratelimit-", "x-ratelimit-", "x-codex-")
# Limits of a login are its owner's, also where the key of this gateway has its own. Codex reads them by these names (codex-api/src/
# rate_limits.rs, 2026-11), and Claude Code's begin with `unified`.
_LIMITS_OF_LOGIN = ("anthropic-ratelimit-unified-", "x-codex-")
# It tells ChatGPT's servers apart within one turn, and is no limit.
_TURN_STATE = "x-codex-turn-state"
_SHOULD_RETRY = "x-should-retry"
_IDS = ("request-id", "x-request-id", "x-amzn-requestid", "apim-request-id", "x-generation-id", "x-goog-request-id")
"""The names under which providers tell the id of a request, by their official SDKs of 2026-11; the first that is there counts."""
_ID_NAMES = frozenset(_IDS)
_MOST = 48
_NAME = re.compile(r"[a-z0-9-]{1,80}")
_VALUE = re.compile(r"[!-~](?:[ -~]{0,126}[!-~])?")


def passed_headers(headers: Mapping[str, str], secrets: Secrets = NO_SECRETS) -> PassedHeaders:
    """Return the headers that a client gets too, names of `headers` in lower case; without those that name a secret, or say too much."""
    passed = [
        (name, value)
        for name, value in headers.items()
        if (name.startswith(_LIMITS) and name != _TURN_STATE) or name == _SHOULD_RETRY
    ]
    if not passed and _ID_NAMES.isdisjoint(headers):
        return ()
    del passed[_MOST:]
    if request_id := next((headers[name] for name in _IDS if headers.get(name)), ""):
        passed.append((UPSTREAM_ID, request_id))
    sound = [(name, value) for name, value in passed if _NAME.fullmatch(name.lower()) and _VALUE.fullmatch(value)]
    values = "\n".join([value for _, value in sound])
    if secrets.in_text(values) == values:
        return tuple(sound)
    return tuple([(name, value) for name, value in sound if secrets.in_text(value) == value])


def without_limits(headers: list[tuple[str, str]], *, keeps_login: bool = False) -> list[tuple[str, str]]:
    """Return headers without a provider's limits, for a client whose key has limits of its own; `keeps_login`: with those of its login."""
    kept = _LIMITS_OF_LOGIN if keeps_login else ()
    return [item for item in headers if not (name := item[0].lower()).startswith(_LIMITS) or name.startswith(kept)]
