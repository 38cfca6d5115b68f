"""A gateway in front of a simulated provider, both in this process and without a socket."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any
from urllib.parse import unquote, urlsplit

from bardo.adapters.net.client import Call
from bardo.adapters.net.fake import FakeReply
from bardo.simulators.delivery import Head, Send
from bardo.simulators.exchange import read_incoming
from support.any_model import Simulator
from support.scripted import Scripted
from support.talk import Answer


class SimulatedGateway:
    """A gateway over one simulated provider with one model; `refusals` are what the provider refused of the latest request."""

    def __init__(self, preset: str, model: str) -> None:
        self.simulator = Simulator(preset)
        self.model = f"p/{model}"
        self.refusals: list[str] = []
        provider = self.simulator.provider
        self.gateway = Scripted(
            provider.dialect,
            self._answer,
            preset=provider.catalog_name,
            base_url=f"http://provider.invalid{provider.base_path}",
            models=(model,),
        )

    def post(self, path: str, body: Any) -> Answer:
        """Send one request."""
        self.refusals.clear()
        return self.gateway.post(unquote(path), body)

    @property
    def sent(self) -> Any:
        """The body that the provider got last."""
        return self.simulator.requests[-1].body

    def _answer(self, call: Call) -> FakeReply:
        parts = urlsplit(call.url)
        headers = {name.lower(): value for name, value in call.headers.items()}
        target = f"{parts.path}?{parts.query}" if parts.query else parts.path
        actions = list(self.simulator.actions(read_incoming(call.method, target, headers, call.body)))
        head = next(one for one in actions if isinstance(one, Head))
        chunks = list(_sent(actions))
        if head.status != 200:
            self.refusals.append(b"".join(chunks).decode())
        return FakeReply(
            status=head.status, headers={name.lower(): value for name, value in head.headers}, chunks=chunks
        )


def _sent(actions: list[Any]) -> Iterator[bytes]:
    return (action.data for action in actions if isinstance(action, Send))
