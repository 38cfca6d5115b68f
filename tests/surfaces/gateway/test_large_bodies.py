"""Large bodies that come at once: those that fit are answered, the others get an error that their clients can read."""

from __future__ import annotations

import asyncio
import json
import threading
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import pytest

from bardo.surfaces.gateway.context import HeldValues, count_values
from bardo.surfaces.gateway.generate import MOST_MESSAGES, decoded_request
from bardo.surfaces.gateway.routes import FIXED_ROUTES
from bardo.values.errors import InvalidRequest, Overloaded
from support.any_model import Simulator
from support.gateway import house
from support.patience import PATIENCE
from support.raw import RawClient, post
from support.talk import CLIENTS, Answer, body_for, path_for
from surfaces.gateway.refusals import refusal

BODIES = 4
# More than what the two systems' buffers hold beside the server.
SIZE = 20_000_000


@pytest.mark.sampled(2)
@pytest.mark.parametrize("client", CLIENTS)
def test_every_client_that_sends_first_and_reads_then_reads_its_answer(client: str) -> None:
    gateway = {"max_body_bytes": SIZE + 100_000, "max_total_body_bytes": SIZE + 200_000}
    begin = threading.Barrier(BODIES)

    def ask(address: str) -> Answer:
        with RawClient(address) as raw:
            body: dict[str, Any] = body_for(client, "deepseek/m", stream=False)
            # White space is part of the body, and costs nobody else anything.
            data = json.dumps(body).encode() + b" " * SIZE
            begin.wait(PATIENCE)
            # A client of this kind sees a broken pipe where it is cut off.
            raw.socket.sendall(post(raw.host, path_for(client, "deepseek/m", stream=False), data))
            found = raw.reply()
            return Answer(found.status, found.headers, found.body)

    with house([Simulator("deepseek")], gateway=gateway) as running, ThreadPoolExecutor(BODIES) as threads:
        answers = [one.result(PATIENCE) for one in [threads.submit(ask, running.address) for _ in range(BODIES)]]
    refused = [answer for answer in answers if answer.status != 200]
    assert len(refused) < BODIES
    for answer in refused:
        assert answer.status == 503
        assert "max_total_body_bytes" in refusal(client, answer)
        assert int(answer.headers["retry-after"]) > 0


@pytest.mark.parametrize("client", CLIENTS)
def test_many_small_values_at_once_are_refused_in_the_clients_words(client: str) -> None:
    simulator = Simulator("deepseek")
    data = body_for(client, "deepseek/m", stream=False)
    many = json.dumps({**data, "unread": [{}] * 3_000}).encode()
    path = path_for(client, "deepseek/m", stream=False)
    with house([simulator], gateway={"max_total_values": 5_000}) as running:
        gate = simulator.hold(after=0)
        with RawClient(running.address) as first, RawClient(running.address) as second:
            first.send(post(first.host, path, many))
            gate.wait(PATIENCE)
            second.send(post(second.host, path, many))
            found = second.reply()
            assert found.status == 503
            assert "max_total_values" in refusal(client, Answer(found.status, found.headers, found.body))
            gate.release()
            assert first.reply().status == 200
            with RawClient(running.address) as third:
                third.send(post(third.host, path, many))
                assert third.reply().status == 200


def test_values_are_counted_and_commas_of_prose_are_not() -> None:
    values: list[Any] = [{}] * 500 + [[]] * 500 + ["a"] * 500
    for separators in ((",", ":"), (", ", ": "), (",\n ", ":"), (",  ", ":")):
        assert 1_500 <= count_values(json.dumps(values, separators=separators).encode()) <= 1_501
    assert count_values(json.dumps(["one, two and " * 500]).encode()) == 1


async def _held(most: int, *sizes: int) -> list[bool]:
    held, taken = HeldValues(most), []
    for size in sizes:
        try:
            await held.admit({}, b"[" + b"{}," * size + b"{}]")
            taken.append(True)
        except Overloaded:
            taken.append(False)
    return taken


def test_one_large_body_is_answered_alone_and_small_ones_always() -> None:
    assert asyncio.run(_held(5_000, 9_000, 3_000, 1_500)) == [True, False, True]
    assert asyncio.run(_held(9_000, 3_000, 3_000, 3_000)) == [True, True, False]


@pytest.mark.parametrize("pad", [0, 60_000, 65_530])
@pytest.mark.parametrize(("more", "taken"), [(0, True), (1, False)])
def test_a_request_has_at_most_so_many_messages_wherever_their_roles_stand(pad: int, more: int, *, taken: bool) -> None:
    messages = b",".join([b'{"role":"user","content":"a"}'] * (MOST_MESSAGES + more))
    # Behind a pad that is read first, so that another of the roles lies across the end of a slice.
    body = b'{"pad":"%b","model":"m","messages":[%b]}' % (b"x" * pad, messages)
    route = FIXED_ROUTES["/v1/chat/completions"]
    if taken:
        assert len(decoded_request(body, route).messages) == MOST_MESSAGES
    else:
        with pytest.raises(InvalidRequest, match="the request has 100,001 messages"):
            decoded_request(body, route)
