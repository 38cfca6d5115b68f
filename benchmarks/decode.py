"""Subject `decode`: what reading and writing one delta costs in process, for each dialect and each pair of them, without any socket."""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Sequence
from functools import partial

import msgspec

from bardo.catalog.load import builtin
from bardo.catalog.rows import ProviderRow
from bardo.dialects import dialect
from bardo.replies.reply_reader import ReplyHandling, ReplyReader, open_framing, row_reader
from bardo.values.events import Event, ReplyStart
from bardo.values.request import Request
from bardo.values.wire import Arrival
from benchmarks.bench import Bench
from benchmarks.canned import stream_body
from benchmarks.figures import Figure, Row, Table
from benchmarks.openai_reader import openai_reader

# A provider of each dialect, and one more of Chat whose text is looked through for thinking.
_PROVIDERS = {
    "openai_chat": "deepseek",
    "openai_chat with tags": "vllm",
    "openai_responses": "openai",
    "anthropic_messages": "anthropic",
    "gemini": "gemini",
    "gemini_interactions": "gemini-interactions",
    "ollama": "ollama",
    "cohere": "cohere",
    "bedrock_converse": "bedrock",
}
_CLIENTS = ("openai_chat", "openai_responses", "anthropic_messages", "gemini")
_STAMP = ReplyStart(id="req_bench", model="bench", created=1)


class Stream(msgspec.Struct, frozen=True, kw_only=True):
    """One reply in one dialect: a piece for each event, as the network would bring them, and its number of deltas."""

    row: ProviderRow
    pieces: tuple[bytes, ...]
    deltas: int


def run(bench: Bench) -> Table:
    """Time every decoder, encoder and pair, in turn."""
    deltas = 1000 if bench.pace.quick else 2000
    streams = {name: stream_in(name, deltas) for name in _PROVIDERS}
    works = {**_works(streams), **_pairs(streams)}
    reader = openai_reader(b"".join(streams["openai_chat"].pieces), bench.note)
    if reader is not None:
        works[("read openai_chat, with stages and fold", "openai's SDK")] = reader
    before = os.sched_getaffinity(0)
    os.sched_setaffinity(0, bench.cores.measured)
    try:
        found = _timed(bench, works, deltas)
    finally:
        os.sched_setaffinity(0, before)
    return _table(found)


def stream_in(name: str, deltas: int) -> Stream:
    """Return a reply in the dialect of a provider, half thinking and half answer, made by bardo's own encoder."""
    body = stream_body(f"burst-{deltas}")
    events = [piece + b"\n\n" for piece in body.split(b"\n\n") if piece]
    middle = 1 + deltas // 2  # The role goes first.
    thinking = [event.replace(b'"content":', b'"reasoning_content":') for event in events[:middle]]
    chat = (*thinking, *events[middle:])
    row = _row(name)
    if row.dialect == "openai_chat":
        return Stream(row=row, pieces=chat, deltas=deltas)
    reader = _reader(_row("openai_chat"))
    encoder = dialect(row.dialect).open_encoder(_request(row.dialect), _arrival())
    read = [*(reader.feed(piece) for piece in chat), reader.finish()]
    pieces = [b"".join(written for event in given for written in encoder.feed(event)) for given in read]
    pieces.append(b"".join(encoder.finish()))
    return Stream(row=row, pieces=tuple(piece for piece in pieces if piece), deltas=deltas)


def decode(stream: Stream) -> list[Event]:
    """Read bytes to events, nothing more."""
    language = dialect(stream.row.dialect)
    framing, decoder = open_framing(language.stream_framing, streamed=True), language.open_decoder(stream.row)
    events: list[Event] = []
    for piece in stream.pieces:
        for frame in framing.feed(piece):
            events += decoder.feed(frame)
    return [*events, *decoder.finish()]


def read(stream: Stream) -> ReplyReader:
    """Read bytes through every stage, and fold them."""
    reader = _reader(stream.row)
    for piece in stream.pieces:
        reader.feed(piece)
    reader.finish()
    return reader


def encode(events: Sequence[Event], client: str) -> int:
    """Write events for a client; return how many bytes came of it."""
    encoder = dialect(client).open_encoder(_request(client), _arrival())
    written = sum(len(piece) for event in events for piece in encoder.feed(event))
    return written + sum(map(len, encoder.finish()))


def translate(stream: Stream, client: str) -> int:
    """Read a reply and write it for a client, piece by piece, as the gateway does."""
    reader = _reader(stream.row)
    encoder = dialect(client).open_encoder(_request(client), _arrival())
    written = 0
    for piece in stream.pieces:
        written += len(b"".join([made for event in reader.feed(piece) for made in encoder.feed(event)]))
    written += len(b"".join([made for event in reader.finish() for made in encoder.feed(event)]))
    return written + sum(map(len, encoder.finish()))


def _row(name: str) -> ProviderRow:
    row = builtin().provider(_PROVIDERS[name])
    assert row is not None
    return row


def _reader(row: ProviderRow) -> ReplyReader:
    return row_reader(row, streamed=True, model="bench", handling=ReplyHandling(stamp=_STAMP))


def _request(client: str) -> Request:
    return Request(model="bench", messages=(), stream=True, dialect=client)


def _arrival() -> Arrival:
    return Arrival(model="bench", stream=True)


Work = Callable[[], object]
Place = tuple[str, str]


def _works(streams: dict[str, Stream]) -> dict[Place, Work]:
    events = _events(streams["openai_chat"])
    works: dict[Place, Work] = {}
    for name, stream in streams.items():
        works[(f"decode {name}", "bardo")] = partial(decode, stream)
        works[(f"read {name}, with stages and fold", "bardo")] = partial(read, stream)
    for client in _CLIENTS:
        works[(f"encode {client}", "bardo")] = partial(encode, events, client)
    return works


def _pairs(streams: dict[str, Stream]) -> dict[Place, Work]:
    return {
        (f"{name} → {client}", "bardo"): partial(translate, stream, client)
        for name, stream in streams.items()
        for client in _CLIENTS
    }


def _events(stream: Stream) -> list[Event]:
    """Return the events an encoder gets: those that went through the stages."""
    reader = _reader(stream.row)
    events = [event for piece in stream.pieces for event in reader.feed(piece)]
    return [*events, *reader.finish()]


def _timed(bench: Bench, works: dict[Place, Work], deltas: int) -> dict[Place, list[float]]:
    """Return microseconds for each delta, for every round but the first."""
    found: dict[Place, list[float]] = {place: [] for place in works}
    bench.tell("decode: every dialect and every pair")
    for round_number in range(bench.pace.rounds * 2 + 1):
        for place, work in works.items():
            begun = time.perf_counter()
            work()
            passed = time.perf_counter() - begun
            if round_number:
                found[place].append(passed * 1e6 / deltas)
    return found


def _table(found: dict[Place, list[float]]) -> Table:
    figures: dict[str, dict[str, Figure]] = {}
    for (measure, column), values in found.items():
        figure = Figure.of(values)
        if figure is not None:
            figures.setdefault(measure, {})[column] = figure
    rows = tuple(Row(measure=measure, unit="µs a delta", figures=given) for measure, given in figures.items())
    columns = tuple(dict.fromkeys(column for _, column in found))
    notes = (
        "Half of the deltas are thinking, half answer; each comes as a piece of its own.",
        "openai's SDK reads the same bytes into its own objects, from memory.",
    )
    return Table(subject="decode", title="decode: in process", columns=columns, rows=rows, notes=notes)
