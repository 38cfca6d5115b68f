"""Whatever bytes a provider sends, they end in a reply or in an error of bardo's, and what is held of them is bounded by them."""

from __future__ import annotations

from typing import Any

import msgspec
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from bardo.catalog.load import builtin
from bardo.catalog.rows import ProviderRow
from bardo.replies.reply_reader import ReplyReader, row_reader
from bardo.values.errors import ProviderError
from bardo.values.events import Event, Failed
from conformance.replies import ALL, CLIENTS, reply_of, row_of, written_stream, written_whole

ROWS = {row.id: row for name in builtin().names() if (row := builtin().provider(name)) is not None}
SMALL = [one for one in ALL if len(one.body) <= 6000]
BY_DIALECT: dict[str, list[bytes]] = {}
for _recording in SMALL:
    BY_DIALECT.setdefault(row_of(_recording).dialect, []).append(_recording.body)

# What a byte of a reply may weigh once it is read: a short frame makes several events, and each has fields of its own.
PER_BYTE, AT_MOST = 30, 20_000

mutations = st.one_of(
    st.tuples(st.just("flip"), st.integers(0, 6000), st.integers(0, 255)),
    st.tuples(st.just("truncate"), st.integers(0, 6000), st.just(0)),
    st.tuples(st.just("drop"), st.integers(0, 6000), st.integers(1, 200)),
    st.tuples(st.just("repeat"), st.integers(0, 6000), st.integers(1, 400)),
    st.tuples(st.just("nest"), st.integers(0, 6000), st.integers(1, 2000)),
)


def mutated(body: bytes, mutation: tuple[str, int, int]) -> bytes:
    kind, at, value = mutation
    at = at % (len(body) + 1)
    match kind:
        case "flip":
            return body[:at] + bytes([value]) + body[at + 1 :]
        case "truncate":
            return body[:at]
        case "drop":
            return body[:at] + body[at + value :]
        case "repeat":
            return body[: at + value] + body[at:]
        case _:
            return body[:at] + b"[" * value + body[at:]


@st.composite
def hostile(draw: st.DrawFn, dialect: str) -> bytes:
    """Return bytes that look like a reply, or do not."""
    known = BY_DIALECT.get(dialect)
    if known is None or draw(st.integers(0, 4)) == 0:
        return draw(st.binary(max_size=300))
    body = draw(st.sampled_from(known))
    if draw(st.booleans()):
        other = draw(st.sampled_from(known))
        body = body[: draw(st.integers(0, len(body)))] + other[draw(st.integers(0, len(other))) :]
    for mutation in draw(st.lists(mutations, max_size=4)):
        body = mutated(body, mutation)
    return body


def read(row: ProviderRow, body: bytes, *, streamed: bool, step: int) -> tuple[ReplyReader, list[Event]]:
    reader = row_reader(row, streamed=streamed)
    events: list[Event] = []
    for begin in range(0, len(body), step):
        events += reader.feed(body[begin : begin + step])
    return reader, events + reader.finish()


@pytest.mark.parametrize("dialect", sorted({row.dialect for row in ROWS.values()}))
@settings(max_examples=40, deadline=None, suppress_health_check=[HealthCheck.too_slow, HealthCheck.data_too_large])
@given(data=st.data())
def test_no_bytes_do_harm(dialect: str, data: st.DataObject) -> None:
    row = data.draw(st.sampled_from([row for row in ROWS.values() if row.dialect == dialect]), label="row")
    body = data.draw(hostile(dialect), label="body")
    streamed, step = (
        data.draw(st.booleans(), label="streamed"),
        data.draw(st.sampled_from([1000, 100, 7]), label="step"),
    )
    empty = weight(row_reader(row, streamed=streamed))
    reader, events = read(row, body, streamed=streamed, step=step)
    response = reader.fold.response()
    assert response.error is None or isinstance(response.error, ProviderError)
    assert [type(event) for event in events].count(Failed) == (1 if response.error else 0)
    assert not response.error or isinstance(events[-1], Failed)
    bound = PER_BYTE * len(body) + AT_MOST
    assert weight(reader) - empty <= bound
    assert weight(events) <= bound
    for client in CLIENTS:
        assert len(written_stream(events, client)) <= 2 * bound
        if response.error is None:
            written_whole(response, client)


def test_a_real_reply_weighs_little_more_than_its_bytes() -> None:
    for recording in SMALL:
        reader, events = read(row_of(recording), recording.body, streamed=recording.framing != "json", step=1000)
        assert reader.fold.response() == reply_of(recording).response
        assert 0 < weight(events) <= 4 * len(recording.body) + 1000, recording.file


def weight(value: Any) -> int:
    """Return how much text and how many values can be reached from one. What is shared is counted once."""
    seen: set[int] = set()
    waiting, total = [value], 0
    while waiting:
        one = waiting.pop()
        if one is None or isinstance(one, type) or callable(one) or id(one) in seen:
            continue
        total += 1 + (len(one) if isinstance(one, str | bytes | bytearray) else 0)
        if isinstance(one, str | bytes | bytearray | int | float):
            continue
        seen.add(id(one))
        waiting += _parts(one)
    return total


def _parts(one: Any) -> list[Any]:
    if isinstance(one, dict):
        return [*one.keys(), *one.values()]
    if isinstance(one, list | tuple | set | frozenset):
        return list(one)
    if isinstance(one, msgspec.Struct):
        return [getattr(one, name) for name in one.__struct_fields__]
    names = [name for kind in type(one).__mro__ for name in getattr(kind, "__slots__", ())]
    return [*vars(one).values()] if hasattr(one, "__dict__") else [getattr(one, name, None) for name in names]
