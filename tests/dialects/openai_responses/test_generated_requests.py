"""Bodies made from the structs of a request: each is read or refused with its path, and what was read is written again as it came."""

from __future__ import annotations

import random
from typing import Any

import msgspec

from bardo.dialects import dialect
from bardo.dialects.openai_responses import wire
from bardo.values.errors import InvalidRequest
from bardo.values.request import Request
from bardo.values.wire import Arrival
from dialects.openai_responses.replies import TEXT_REPLAYING
from support.generated_wire import GeneratedValues
from support.offenders import each_case

RESPONSES = dialect("openai_responses")
ROLES = ("user", "assistant", "system", "developer")


def generated(seed: int, oddity: float) -> Any:
    """Return a body: any fields, and items and tools of any type."""
    values, chance = GeneratedValues(seed, oddity), random.Random(seed)
    body = values.of(wire.CreateResponse)
    if not isinstance(body, dict):
        return body
    items = [values.of(chance.choice([*wire.ITEMS.values()])) for _ in range(seed % 5)]
    for item in items:
        if isinstance(item, dict) and "role" in item and chance.random() > oddity:
            item["role"] = chance.choice(ROLES)
    functions = [values.of(wire.Function) for _ in range(seed % 3)]
    for place, tool in enumerate(functions):
        if isinstance(tool, dict) and chance.random() > oddity:
            tool |= {"type": "function", "name": f"f{place}"}
    return {**body, "model": "m", "input": items, "tools": functions}


def decode(body: Any) -> Request | None:
    """Read a body; None where it is refused."""
    try:
        return RESPONSES.decode_request(msgspec.json.encode(body), Arrival())
    except InvalidRequest:
        return None


def test_a_body_of_any_shape_is_read_or_refused() -> None:
    read = 0
    for seed in range(400):
        request = decode(generated(seed, (0.0, 0.02, 0.2)[seed % 3]))
        if request is not None:
            read += 1
            RESPONSES.encode_request(RESPONSES.as_functions(request), TEXT_REPLAYING)
    assert read > 40


@each_case("kind", wire.ITEMS)
def test_an_item_of_every_type_that_is_read_becomes_a_part_of_the_conversation(kind: str) -> None:
    for seed in range(10):
        item = GeneratedValues((kind, seed)).of(wire.ITEMS[kind]) | ({"role": "user"} if kind == "message" else {})
        request, without = (decode({"model": "m", "input": items}) for items in ([item], []))
        assert request is not None, item
        assert without is not None
        assert request.messages != without.messages, (
            f"_InputReader.take of request_in.py has no branch for {kind}: {item}"
        )


def test_what_is_written_of_a_body_reads_as_the_same() -> None:
    for seed in range(0, 300, 3):
        request = decode({"model": "m", "input": generated(seed, 0.0)["input"] if seed else []})
        assert request is not None
        once = RESPONSES.encode_request(request, TEXT_REPLAYING).body
        again = RESPONSES.decode_request(once, Arrival())
        assert RESPONSES.encode_request(again, TEXT_REPLAYING).body == once, seed
