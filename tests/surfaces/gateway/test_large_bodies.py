"""Large bodies that come at once: those that fit are answered, the others get an error that their clients can read."""

from __future__ import annotations

import json
import threading
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import pytest

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
