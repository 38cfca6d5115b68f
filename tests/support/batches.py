"""A whole gateway with batches over simulated providers: its own log, its own state database, and how to wait for a batch's end."""

from __future__ import annotations

import json
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any, TypeVar

import msgspec

from bardo.adapters.config.settings import parse_settings
from bardo.adapters.stores.log import LogReader, LogRow
from bardo.server.serving import BackgroundServer
from bardo.simulators.batches.files import BatchServer
from bardo.surfaces.gateway.main import gateway_of
from support.any_model import Simulator
from support.gateway import KEY_VARIABLE, SECRET, entry
from support.patience import PATIENCE

Thing = TypeVar("Thing")
QUICK = "poll_seconds = 0.05\nmax_poll_seconds = 0.2\nsettling_seconds = 0.3\n"


@dataclass
class BatchHouse:
    """A running gateway, its address, its providers and its files."""

    address: str
    simulators: Mapping[str, Simulator]
    log_path: Path
    state: str

    def batches(self, provider: str) -> BatchServer:
        """Return the batch API of a simulated provider."""
        server = self.simulators[provider].batches
        assert server is not None
        return server

    def rows(self) -> list[LogRow]:
        """Return the rows of the log that are stored."""
        with LogReader(self.log_path) as reader:
            return list(reader.recent(limit=1000))


def settings_text(state: str, log: Path, batches: str = "", more: str = "") -> str:
    """Return a bardo.toml without providers."""
    return (
        f"[log]\npath = {json.dumps(str(log))}\n[state]\nurl = {json.dumps(state)}\n[batches]\n{QUICK}{batches}\n{more}"
    )


@contextmanager
def batch_house(
    folder: Path,
    simulators: Sequence[Simulator],
    *,
    batches: str = "",
    more: str = "",
    state: str = "",
    each: Mapping[str, Any] | None = None,
    environment: Mapping[str, str] | None = None,
) -> Iterator[BatchHouse]:
    """Run a gateway in this process, with further variables of its `environment`."""
    with ExitStack() as stack:
        servers = {one.provider.name: stack.enter_context(one.running()) for one in simulators}
        own = [entry(one, servers[one.provider.name].base_url, **(each or {})) for one in simulators]
        log, kept = folder / "log.db", state or str(folder / "state.db")
        settings = msgspec.structs.replace(
            parse_settings(settings_text(kept, log, batches, more)), providers=tuple(own)
        )
        server = stack.enter_context(
            BackgroundServer(gateway_of(settings, {KEY_VARIABLE: SECRET, **(environment or {})}), grace=5.0)
        )
        yield BatchHouse(server.address, {one.provider.name: one for one in simulators}, log, kept)


def wait_for(look: Callable[[], Thing], done: Callable[[Thing], bool]) -> Thing:
    """Return what `look` gives, once it is `done`."""
    until = time.monotonic() + PATIENCE
    while True:
        found = look()
        if done(found):
            return found
        assert time.monotonic() < until, f"it did not come: {found}"
        time.sleep(0.02)


def jsonl(lines: Sequence[Mapping[str, Any]]) -> bytes:
    """Return lines of JSON."""
    return b"".join(json.dumps(line).encode() + b"\n" for line in lines)


def chat_line(custom_id: str, model: str, text: str = "hello", **fields: Any) -> dict[str, Any]:
    """Return a request of a batch over chat completions."""
    body = {"model": model, "messages": [{"role": "user", "content": text}], **fields}
    return {"custom_id": custom_id, "method": "POST", "url": "/v1/chat/completions", "body": body}
