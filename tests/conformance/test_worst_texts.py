"""Requests and replies are read, written and counted in time that grows with the text in them, in every dialect, whatever the text is."""

from __future__ import annotations

from collections.abc import Callable

import msgspec
import pytest

from bardo.dialects import dialect
from bardo.dialects.shared.losses import Losses
from bardo.planning.token_counting import estimate_request
from bardo.replies.reply_reader import row_reader
from bardo.surfaces.library.decoding import provider_row
from bardo.values.blocks import ReasoningBlock, TextBlock, ToolCallBlock
from bardo.values.events import Finish
from bardo.values.request import Request, Tool
from bardo.values.response import Response
from bardo.values.wire import Arrival
from conformance.test_hostile_replies import PROVIDERS
from services.pipeline.test_worst_texts_of_layers import PLACES, SIZE, TEXTS
from support.growth import check_growth
from support.sampling import sample

BELOW = 24
BY_DAY = 2
TOOLS = (Tool(name="read"), Tool(name="write"))
CLIENTS = [name for name in PROVIDERS if name != "gemini_interactions"]
ARRIVAL = Arrival(model="m")


def check_each(law: str, works: dict[str, Callable[[str], Callable[[], object]]]) -> None:
    """Check the growth of each work at the texts of a law. A work takes a text, and returns what is measured."""
    for name, prepared in works.items():
        for text in sample(TEXTS, BY_DAY, law=f"{law} {name}"):
            small, large = (prepared(TEXTS[text](size)) for size in (SIZE, 8 * SIZE))
            try:
                check_growth(lambda one: one(), small, large, below=BELOW)
            except AssertionError as problem:
                raise AssertionError(f"{name}, {text}: {problem}") from problem


def request_of(place: str, text: str) -> Request:
    return Request(model="m", messages=PLACES[place](text), tools=TOOLS)


def body_of(request: Request, spoken: str) -> bytes:
    losses = Losses(dialect(spoken).declaration)
    return msgspec.json.encode(dialect(spoken).encode_body(request, provider_row(PROVIDERS[spoken]), losses))


@pytest.mark.timeout(3_600)
@pytest.mark.parametrize("spoken", PROVIDERS)
def test_requests_are_written(spoken: str) -> None:
    def writing(place: str) -> Callable[[str], Callable[[], object]]:
        return lambda text: lambda: body_of(request_of(place, text), spoken)

    check_each(f"requests {spoken}", {place: writing(place) for place in PLACES})


@pytest.mark.timeout(3_600)
@pytest.mark.parametrize("place", PLACES)
def test_requests_are_counted(place: str) -> None:
    check_each("estimates", {place: lambda text: lambda: estimate_request(request_of(place, text))})


@pytest.mark.timeout(3_600)
@pytest.mark.parametrize("spoken", CLIENTS)
def test_requests_are_read(spoken: str) -> None:
    def reading(place: str) -> Callable[[str], Callable[[], object]]:
        def prepared(text: str) -> Callable[[], object]:
            body = body_of(request_of(place, text), spoken)
            return lambda: dialect(spoken).decode_request(body, ARRIVAL)

        return prepared

    check_each(f"read requests {spoken}", {place: reading(place) for place in PLACES})


def reply_of(kind: str, text: str) -> Response:
    match kind:
        case "text":
            block: TextBlock | ReasoningBlock | ToolCallBlock = TextBlock(text)
        case "thinking":
            block = ReasoningBlock(text=text)
        case "arguments":
            block = ToolCallBlock(id="c", name="write", arguments=msgspec.json.encode({"text": text}).decode())
        case _:
            block = ToolCallBlock(id="c", name="write", arguments=text)
    return Response(id="r", model="m", blocks=(block,), finish=Finish("stop"))


@pytest.mark.timeout(3_600)
@pytest.mark.parametrize("spoken", CLIENTS)
def test_replies_are_written_and_read(spoken: str) -> None:
    row = provider_row(PROVIDERS[spoken])

    def written(kind: str) -> Callable[[str], Callable[[], object]]:
        def prepared(text: str) -> Callable[[], object]:
            response, asked = reply_of(kind, text), Request(model="m", messages=(), dialect=spoken)
            return lambda: row_reader(row, streamed=False).read_whole(dialect(spoken).encode_response(response, asked))

        return prepared

    check_each(f"replies {spoken}", {kind: written(kind) for kind in ("text", "thinking", "arguments", "no arguments")})
