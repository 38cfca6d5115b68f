"""Subject `long-bodies`: how long others wait while bodies and replies of 10 to 30 MB are worked at, and beside streams without end.

Another connection asks for the gateway's health all the time. The longest of its answers is the longest stretch in which the event loop did
nothing else, with what the machine itself adds.
"""

from __future__ import annotations

import http.client
import json
import sys
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, contextmanager
from typing import Any

from benchmarks.bench import Bench
from benchmarks.contestants import Contestant, Lane, Place
from benchmarks.figures import Figure, Row, Table, Target
from benchmarks.long_bodies_peer import MILLION
from benchmarks.processes import Started

LIMIT_MS, LIMIT_TIMES = 50, 3
"""The limits: of the longest stretch, and of the 99th percentile of others beside endless streams over theirs without."""
_QUIET_SECONDS = 2.0
_KEY = "KEY_OF_LONG_BODIES"
_PRESETS = {"plain": "openai-compatible", "claude": "anthropic", "google": "gemini"}
_REPLIES = ("plain/m-fields", "plain/m-arguments", "plain/m-text", "claude/m-input", "google/m-parts")
_SETTINGS = """\
[gateway]
max_body_bytes = 40000000
[reasoning]
introspect = false
[refresh]
hours = 0
"""


def _messages(content: Any) -> dict[str, Any]:
    return {"messages": [{"role": "user", "content": content}]}


def _tool(properties: dict[str, Any]) -> list[dict[str, Any]]:
    return [{"type": "function", "function": {"name": "f", "parameters": {"type": "object", "properties": properties}}}]


def _results() -> list[dict[str, Any]]:
    return [{"type": "tool_result", "tool_use_id": f"t{place}", "content": "x"} for place in range(300_000)]


BODIES: dict[str, tuple[str, Callable[[], dict[str, Any]]]] = {
    "a million metadata keys": (
        "/v1/chat/completions",
        lambda: {**_messages("Hi"), "metadata": {f"key{place}": "value" for place in range(MILLION)}},
    ),
    "100,000 messages": (
        "/v1/chat/completions",
        lambda: {"messages": [{"role": ("user", "assistant")[place % 2], "content": "x" * 200} for place in range(99_999)]},
    ),
    "100,000 properties of a tool": (
        "/v1/chat/completions",
        lambda: {
            **_messages("Hi"),
            "tools": _tool({f"p{place}": {"type": "string", "description": "x" * 150} for place in range(100_000)}),
        },
    ),
    "one text of 25 MB": ("/v1/chat/completions", lambda: _messages("a word\n" * 3_500_000)),
    "lists of lists": ("/v1/chat/completions", lambda: {**_messages("Hi"), "x_deep": [[[[1] * 20] * 100] * 100] * 40}),
    "300,000 results of tools": ("/v1/messages", lambda: {**_messages(_results()), "max_tokens": 9}),
}  # fmt: skip
"""Requests by what is long in them, each with its path."""


def run(bench: Bench) -> tuple[list[Table], list[Target]]:
    """Send long requests, ask for long replies, and read streams without end, while another client asks for health."""
    with ExitStack() as stack:
        upstream = _peer(bench, "upstream", stack)
        gateway = bench.start(_contestant(int(upstream.hear())))
        assert gateway is not None
        probe = _peer(bench, f"probe {gateway.port}", stack)
        ask(gateway.port, "/v1/chat/completions", {"model": "plain/m-short", **_messages("Hi")})
        alone = _figures(probe, lambda: time.sleep(_QUIET_SECONDS))
        rows = [_row("nothing else", [alone])]
        for name, (path, body) in BODIES.items():
            rows.append(_longest(bench, probe, gateway.port, name, path, {"model": "plain/m-short", **body()}))
        for model in _REPLIES:
            asked = {"model": model, **_messages("Hi")}
            rows.append(_longest(bench, probe, gateway.port, f"the reply of {model}", "/v1/chat/completions", asked))
        beside = {count: _beside_streams(bench, probe, gateway.port, count) for count in (1, 4)}
    late = [Row(measure="nothing else", unit="ms", figures=_of([alone[1]]))]
    late += [Row(measure=f"{count} streams", unit="ms", figures=_of([value])) for count, value in beside.items()]
    longest = max(row.figures["bardo"].high for row in rows[1:])
    times = max(beside.values()) / max(alone[1], 0.1)
    tables = [
        Table(subject="long-bodies", title="Longest wait of another client", columns=("bardo",), rows=tuple(rows)),
        Table(
            subject="long-bodies", title="99th percentile beside endless streams", columns=("bardo",), rows=tuple(late)
        ),
    ]
    return tables, [
        Target(says="longest wait beside bodies of 10 to 30 MB", limit=LIMIT_MS, unit="ms", found=longest),
        Target(says="99th percentile beside four endless streams", limit=LIMIT_TIMES, unit="×", found=times),
    ]


def _peer(bench: Bench, role: str, stack: ExitStack) -> Started:
    started = Started(
        [sys.executable, "-m", "benchmarks.long_bodies_peer", *role.split()], bench.cores.rest, talks=True
    )
    stack.callback(started.stop)
    return started


def _contestant(upstream: int) -> Contestant:
    def command(place: Place) -> Sequence[str]:
        config = place.folder / "bardo.toml"
        tables = "".join(
            f'[[providers]]\nid = "{name}"\npreset = "{preset}"\napi_key_env = "{_KEY}"\nbase_url = "http://127.0.0.1:{upstream}"\n'
            for name, preset in _PRESETS.items()
        )
        config.write_text(_SETTINGS + tables)
        return [place.python, "-m", "bardo", "serve", "--config", str(config), "--port", str(place.port)]

    lanes = (Lane(name="forwarded", model="plain/m-{}"),)
    return Contestant(name="bardo", lanes=lanes, command=command, environment={_KEY: "sk-long-bodies"})


def _figures(probe: Started, work: Callable[[], object]) -> tuple[float, float]:
    """Return how long the other client waited at most while something was done, and in all but one of a hundred cases, in ms."""
    probe.tell("")
    work()
    longest, late = probe.tell("").split()
    return float(longest), float(late)


def _longest(bench: Bench, probe: Started, port: int, name: str, path: str, body: dict[str, Any]) -> Row:
    bench.tell(f"long-bodies: {name}")
    raw = json.dumps(body).encode()
    rounds = 1 if bench.pace.quick else 5
    found = [_figures(probe, lambda: ask(port, path, raw)) for _ in range(rounds)]
    return _row(f"{name}, {len(raw) / 1e6:.1f} MB", found)


def _row(name: str, found: Sequence[tuple[float, float]]) -> Row:
    return Row(measure=name, unit="ms", figures=_of([longest for longest, _ in found]))


def _of(values: Sequence[float]) -> dict[str, Figure]:
    figure = Figure.of(values)
    return {} if figure is None else {"bardo": figure}


def ask(port: int, path: str, body: dict[str, Any] | bytes) -> None:
    """Send one request and read its whole reply. Raises RuntimeError where it is not 200."""
    raw = body if isinstance(body, bytes) else json.dumps(body).encode()
    connection = http.client.HTTPConnection("127.0.0.1", port, timeout=300)
    try:
        connection.request("POST", path, raw, {"content-type": "application/json"})
        reply = connection.getresponse()
        said = reply.read()
        if reply.status != 200:
            raise RuntimeError(f"the gateway answered {reply.status}: {said[:300]!r}")
    finally:
        connection.close()


def _beside_streams(bench: Bench, probe: Started, port: int, count: int) -> float:
    bench.tell(f"long-bodies: beside {count} endless streams")
    with _streams(port, count):
        return _figures(probe, lambda: time.sleep(_QUIET_SECONDS))[1]


@contextmanager
def _streams(port: int, count: int) -> Iterator[None]:
    """Read so many endless streams as fast as they come."""
    ends = threading.Event()

    def read() -> None:
        connection = http.client.HTTPConnection("127.0.0.1", port, timeout=300)
        body = json.dumps({"model": "plain/m-endless", "stream": True, **_messages("Hi")})
        connection.request("POST", "/v1/chat/completions", body, {"content-type": "application/json"})
        reply = connection.getresponse()
        while not ends.is_set() and reply.read(1 << 16):
            continue
        connection.close()

    readers = [threading.Thread(target=read) for _ in range(count)]
    for reader in readers:
        reader.start()
    try:
        yield
    finally:
        ends.set()
        for reader in readers:
            reader.join()
