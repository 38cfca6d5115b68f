"""A provider that breaks off its reply, anywhere and in any way, over a gateway in a process of its own: the official libraries of all
clients find no call that was broken off, and every one of them is told that the reply did not come to its end."""

from __future__ import annotations

import os
import subprocess
import sys
import threading
from collections.abc import Iterator
from contextlib import ExitStack, closing, contextmanager
from dataclasses import dataclass
from pathlib import Path

import pytest

from support.calls_heard import CLIENTS, HeardCalls, Listener, arguments_of
from support.cut_upstream import CALLS, ENDINGS, CutUpstream
from support.patience import read_line
from support.sampling import sample

UPSTREAMS = {
    "openai_chat": ("deepseek", "deepseek-v4-pro"),
    "openai_responses": ("openai_responses", "gpt-5"),
    "anthropic_messages": ("anthropic", "claude-opus-4-6"),
    "gemini": ("gemini", "gemini-2.5-flash"),
    "ollama": ("ollama_native", "m1"),
    "cohere": ("cohere", "m1"),
    "bedrock_converse": ("bedrock", "us.anthropic.claude-sonnet-4-5-20250929-v1:0"),
}
"""Of each dialect the preset of a simulator, and a model."""
SAYS_WHY = {
    "openai_chat": b'"finish_reason":"',
    "openai_responses": b"response.completed",
    "anthropic_messages": b'"stop_reason":"',
    "gemini": b'"finishReason"',
    "ollama": b'"done":true',
    "cohere": b"message-end",
    "bedrock_converse": b"messageStop",
}
"""What stands in the event that tells why a reply ended."""
SIXTEENTHS = 16
BY_DAY = 8


@dataclass(frozen=True)
class Cell:
    """A reply of `upstream` to `client` that ends behind so many events, of a whole one so many sixteenths, in one of the `ENDINGS`."""

    upstream: str
    client: str
    stream: bool
    place: int
    ending: str


@dataclass
class Served:
    """A running gateway over all upstreams, and the clients that ask it."""

    upstreams: dict[str, CutUpstream]
    clients: dict[str, Listener]

    def hear(self, upstream: str, client: str, *, stream: bool, cut: str = "") -> HeardCalls:
        """Return what a client hears of a reply, of a whole one unless it is `cut`."""
        return self.clients[client].ask(f"{upstream}/{UPSTREAMS[upstream][1]}{cut}", stream=stream)


@contextmanager
def gateway(folder: Path, upstreams: dict[str, CutUpstream]) -> Iterator[str]:
    """Run `bardo serve` over these upstreams, which it goes on asking however often they fail; gives its address."""
    config = folder / "bardo.toml"
    lines = [f'[log]\npath = "{folder / "log.db"}"\n[failover]\nretries = 0\n[health]\nleast_calls = 100000\n']
    for name, upstream in upstreams.items():
        lines.append(f'[[providers]]\nid = "{name}"\npreset = "{upstream.preset}"\nbase_url = "{upstream.address}"\n')
        lines.append('api_key_env = "KEY_OF_UPSTREAMS"\n')
    config.write_text("\n".join(lines), encoding="utf-8")
    command = [sys.executable, "-m", "bardo", "serve", "--port", "0", "--config", str(config)]
    environment = {**os.environ, "KEY_OF_UPSTREAMS": "sk-upstream-0123456789abcdef"}
    with subprocess.Popen(
        command, stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, env=environment
    ) as process:
        try:
            while "listens on" not in (line := read_line(process.stderr)):
                assert line, "the gateway did not start"
            assert process.stderr is not None
            # It must not wait for somebody who reads what it says of its calls.
            reading = threading.Thread(target=process.stderr.read, daemon=True)
            reading.start()
            yield line.split("listens on ")[1].split()[0]
        finally:
            process.kill()
            reading.join()


@pytest.fixture(scope="module")
def served(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Served]:
    with ExitStack() as stack:
        upstreams = {
            name: stack.enter_context(CutUpstream(preset).running()) for name, (preset, _) in UPSTREAMS.items()
        }
        address = stack.enter_context(gateway(tmp_path_factory.mktemp("gateway"), upstreams))
        clients = {client: stack.enter_context(closing(Listener(client, address))) for client in CLIENTS}
        yield Served(upstreams, clients)


def check(served: Served, cell: Cell) -> None:
    """Hold one cell against what its client must hear."""
    cut = f"-cut-{cell.place}-{ENDINGS.index(cell.ending)}"
    heard = served.hear(cell.upstream, cell.client, stream=cell.stream, cut=cut)
    for name, arguments in heard.calls:
        read = arguments_of(arguments)
        assert read == CALLS[name] or (read is None and heard.failure is not None), f"{cell}: {heard}"
    said = b"".join(served.upstreams[cell.upstream].sent) if cell.stream else b""
    if SAYS_WHY[cell.upstream] not in said:
        assert heard.failure is not None, f"{cell}: {heard}"


@pytest.mark.parametrize("upstream", UPSTREAMS)
def test_no_client_finds_a_call_that_was_broken_off_or_takes_a_part_for_the_whole(
    served: Served, upstream: str
) -> None:
    events: dict[str, int] = {}
    for client in CLIENTS:
        for stream in (True, False):
            heard = served.hear(upstream, client, stream=stream)
            assert heard.failure is None
            assert [(name, arguments_of(one)) for name, one in heard.calls] == [*CALLS.items()]
            events[client] = events.get(client) or len(served.upstreams[upstream].sent)
    cells = [
        Cell(upstream, client, stream, place, ending)
        for client in CLIENTS
        for stream in (True, False)
        for place in range(events[client] if stream else SIXTEENTHS)
        for ending in ENDINGS
    ]
    for cell in sample(cells, BY_DAY, law=f"cut streams of {upstream}"):
        check(served, cell)
