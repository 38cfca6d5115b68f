"""Several servers behind one provider of a gateway."""

from __future__ import annotations

import json
import urllib.request
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from typing import Any

from bardo.adapters.config.settings import ProviderEntry
from bardo.simulators import Running
from support.any_model import Simulator
from support.gateway import House, house

MODEL = "Qwen/Qwen3-0.6B"


@dataclass
class Servers:
    """A gateway over several servers of one provider, called `pods`."""

    house: House
    running: Sequence[Running]

    @property
    def names(self) -> list[str]:
        """What the servers are called: host and port."""
        return [one.root.removeprefix("http://") for one in self.running]

    def asked(self) -> list[int]:
        """Return how many calls each server got."""
        return [sum(one.method == "POST" for one in server.requests) for server in self.running]

    def ask(self, *said: str, system: str = "", **fields: Any) -> tuple[dict[str, str], dict[str, Any]]:
        """Ask with the turns of a conversation, the user's first, and return headers and body of the answer."""
        turns = [{"role": "assistant" if place % 2 else "user", "content": text} for place, text in enumerate(said)]
        before = [{"role": "system", "content": system}] if system else []
        body = {"model": MODEL, "messages": [*before, *turns], **fields}
        asked = urllib.request.Request(
            f"{self.house.address}/v1/chat/completions",
            json.dumps(body).encode(),
            {"content-type": "application/json"},
        )
        with urllib.request.urlopen(asked) as reply:
            return {name.lower(): value for name, value in reply.headers.items()}, json.load(reply)

    def health(self) -> dict[str, Any]:
        """Return what the gateway says of the provider's health."""
        with urllib.request.urlopen(f"{self.house.address}/v1/bardo/health") as reply:
            (found,) = [one for one in json.load(reply)["providers"] if one["provider"] == "pods"]
        return dict(found)


@contextmanager
def servers(simulators: Sequence[Simulator], *, lost: int = 0, **options: Any) -> Iterator[Servers]:
    """Run a gateway over `simulators` and over `lost` addresses where nothing listens; `options` are those of `house`."""
    with ExitStack() as stack:
        gone = []
        for _ in range(lost):
            with Simulator("vllm").running() as server:
                gone.append(server.base_url)
        running = [stack.enter_context(one.running()) for one in simulators]
        urls = (*gone, *(one.base_url for one in running))
        entry = ProviderEntry(id="pods", preset="vllm", base_urls=urls, models=(MODEL,))
        yield Servers(stack.enter_context(house(before=[entry], **options)), running)
