"""Each dialect declares what of a reply it can express, and its encoder does as it declares.

A new event, count or reason to finish fails here for every dialect that does not name it, in the `reply` of its `__init__.py`.
"""

from __future__ import annotations

from typing import Any, get_args

import msgspec
import pytest

from bardo.catalog.rows import ProviderRow
from bardo.dialects import DIALECTS, dialect
from bardo.dialects.shared.declaration import COMMON_REPLY as COMMON
from bardo.dialects.shared.declaration import EVENTS, ReplyDeclaration
from bardo.streams.frames import Frame
from bardo.values import events
from bardo.values.blocks import Carried, ReplyBlock, TextBlock, ToolCallBlock
from bardo.values.events import Event, Finish, FinishReason
from bardo.values.fold import fold
from bardo.values.request import Request
from bardo.values.response import Response
from bardo.values.usage import Usage
from support.offenders import each_case

OWN = tuple(name for name in DIALECTS if dialect(name).wraps is None and dialect(name).reply is not None)
COUNTS = ("reasoning_tokens", "cached_input_tokens", "cache_write_tokens")
FULL = Usage(input_tokens=100, output_tokens=90, reasoning_tokens=50, cached_input_tokens=30, cache_write_tokens=20)
RESPONSE_FIELDS: dict[str, Any] = {
    "id": "r",
    "model": "m",
    "created": 5,
    "blocks": (TextBlock("Ho."),),
    "usage": FULL,
    "finish": Finish("length", "max_tokens"),
    "carried": Carried("openai_chat", {"service_tier": "flex"}),
    "choice_carried": Carried("openai_chat", {"logprobs": {"content": []}}),
    "bardo": {"request_id": "req_1"},
}
"""A value of each field of a response that Chat writes."""
RESPONSE_NOT_GIVEN = {
    "alternatives": "declared as `choices`",
    "provider": "who answered: the caller of `fold` names it",
    "reasoning": "worked out from the blocks",
    "degraded": "reported in headers and in `bardo`, not in the dialect's own fields",
    "error": "a reply that failed is written as the dialect's error",
}
"""The other fields of a response, and why they are not written as fields."""
CALL = ToolCallBlock(id="call_1", name="look", arguments="{}")

EVENTS_NOT_DECLARED: dict[type, str] = {
    events.ReplyStart: "an id and a model stand in every reply, or are named in the request",
    events.ThinkChunk: "belongs to a ThinkStart",
    events.ThinkEnd: "belongs to a ThinkStart",
    events.EmptyThought: "says that nothing was thought",
    events.WithheldThought: "says what the caller did not want",
    events.ToolCallChunk: "belongs to a ToolCallStart",
    events.ToolCallEnd: "belongs to a ToolCallStart",
    events.BlockFields: "fields of one dialect: those of another are reported by their names",
    events.UnknownContent: "a block of one dialect: those of another are reported by their kinds",
    events.ReplyFields: "fields of one dialect: those of another are reported by their names",
    events.UsageUpdate: "declared count by count",
    events.Degraded: "what is reported",
    events.Finish: "declared reason by reason",
    events.Failed: "every dialect has errors",
    events.Extension: "what bardo itself says",
    events.Partial: "what bardo itself says",
}
"""The other events, and why no dialect declares them."""

USAGE_NOT_DECLARED = frozenset({"raw", "cost_usd", "details", "approx"})
"""Counts that bardo itself gives beside the reply, or that are the provider's own."""


def reply_vocabulary() -> frozenset[str]:
    """Return the names of all that a dialect must declare of replies."""
    counts = {f"usage.{name}" for name in Usage.__struct_fields__ if name not in USAGE_NOT_DECLARED}
    reasons = {f"finish.{reason}" for reason in get_args(FinishReason)}
    return frozenset({*EVENTS.values(), *counts, *reasons, "finish.stop_sequence", "choices"})


def events_named_nowhere() -> tuple[type, ...]:
    """Return the kinds of events that are neither declared nor excepted: a new one must be put under one of the two."""
    return tuple(kind for kind in get_args(Event) if kind not in EVENTS and kind not in EVENTS_NOT_DECLARED)


def declared(name: str) -> ReplyDeclaration:
    found = dialect(name).reply
    assert found is not None
    return found


def whole(client: str, **fields: Any) -> bytes:
    """Return a whole reply with these fields."""
    response = Response(**{"id": "r", "model": "m", "blocks": (TextBlock("Hi."),), "finish": Finish("stop"), **fields})
    return dialect(client).encode_response(response, Request(model="m", messages=(), dialect=client))


def heard(client: str, **fields: Any) -> Response:
    """Return what a client makes of a reply with these fields."""
    language, body = dialect(client), whole(client, **fields)
    row = msgspec.convert({"id": client, "name": client, "dialect": client}, ProviderRow)
    decoder = language.open_decoder(row)
    return fold([*decoder.feed(Frame(body)), *decoder.finish()])


def test_every_kind_of_event_is_declared_or_excepted() -> None:
    missing = [kind.__name__ for kind in events_named_nowhere()]
    if missing:
        pytest.fail(
            f"src/bardo/dialects/shared/declaration.py does not name the events {', '.join(missing)}. Name each in EVENTS, then each "
            "dialect is asked for it; or in EVENTS_NOT_DECLARED, with the reason",
            pytrace=False,
        )


def test_every_field_of_a_response_is_known_here() -> None:
    missing = [name for name in Response.__struct_fields__ if name not in RESPONSE_FIELDS | RESPONSE_NOT_GIVEN]
    if missing:
        pytest.fail(
            f"nothing says how a client gets the field {', '.join(missing)} of Response. Make `fold` (src/bardo/values/fold.py) set it "
            "from an event, `encode_response` of each dialect that declares the event write it, and RESPONSE_FIELDS here have a value "
            "of it",
            pytrace=False,
        )
    assert RESPONSE_FIELDS.keys() | RESPONSE_NOT_GIVEN.keys() <= set(Response.__struct_fields__)


@pytest.mark.parametrize("field", sorted(RESPONSE_FIELDS))
def test_a_field_of_a_response_is_written(field: str) -> None:
    other = {**RESPONSE_FIELDS, "id": "other", "model": "other"}
    assert whole("openai_chat", **{field: other[field]}) != whole("openai_chat"), (
        f"`encode_response` in src/bardo/dialects/openai_chat/reply_out.py loses the field {field} of Response"
    )


@each_case("name", OWN)
def test_everything_is_declared(name: str) -> None:
    missing = sorted(reply_vocabulary() - declared(name).declared)
    if missing:
        pytest.fail(
            f"the dialect {name} does not declare {', '.join(missing)} of replies. In the ReplyDeclaration of "
            f"src/bardo/dialects/{name}/ put each under `expresses` (and write it in its encoder) or under `lacks` with the reason",
            pytrace=False,
        )
    assert declared(name).declared <= reply_vocabulary()
    assert not declared(name).expresses & declared(name).lacks.keys()


@each_case("name", OWN)
@each_case("reason", get_args(FinishReason))
def test_a_reason_to_finish_is_read_as_it_is_declared(name: str, reason: FinishReason) -> None:
    called: tuple[ReplyBlock, ...] = (
        (CALL,) if reason == "tool_calls" and "tool_call" not in declared(name).lacks else ()
    )
    if reason == "tool_calls" and not called:
        return
    lack = declared(name).lacks.get(f"finish.{reason}")
    found = heard(name, finish=Finish(reason, "a word of another dialect"), blocks=(TextBlock("Hi."), *called))
    assert found.finish.reason == (reason if lack is None else lack.sent)


@each_case("name", OWN)
def test_a_count_is_given_where_it_is_declared(name: str) -> None:
    usage = heard(name, usage=FULL).usage
    for count in COUNTS:
        lacks = f"usage.{count}" in declared(name).lacks
        assert getattr(usage, count) == (None if lacks else getattr(FULL, count)) or (
            lacks and not getattr(usage, count)
        )


@each_case("name", OWN)
@each_case("count", ["input_tokens", "output_tokens", "reasoning_tokens"])
def test_a_count_that_clients_must_get_is_declared(name: str, count: str) -> None:
    some: dict[str, Any] = {"input_tokens": 3, "output_tokens": 4, "reasoning_tokens": 2}
    some.pop(count)
    usage = heard(name, usage=Usage(**some)).usage
    instead = declared(name).counts_instead.get(count)
    assert (getattr(usage, count) is not None) is (count in declared(name).counts or instead is not None)
    assert instead is None or getattr(usage, count) == some[instead]
    assert heard(name).usage.reported is declared(name).counts_always


@each_case("name", OWN)
def test_several_answers_and_stop_sequences_are_given_where_they_are_declared(name: str) -> None:
    other = Response(blocks=(TextBlock("Ho."),), finish=Finish("stop"))
    assert bool(heard(name, alternatives=(other,)).alternatives) is ("choices" not in declared(name).lacks)
    found = heard(name, finish=Finish("stop", "stop_sequence", "END")).finish.stop_sequence
    assert (found == "END") is ("finish.stop_sequence" not in declared(name).lacks)


def test_what_all_can_express_is_known() -> None:
    assert reply_vocabulary() >= COMMON
