"""Subject `pipeline`: what layers that change nothing add to a call, and what a call without layers pays for there being any."""

from __future__ import annotations

import asyncio
import sys
import time
from collections.abc import AsyncIterator, Awaitable, Callable, Sequence
from contextlib import asynccontextmanager
from pathlib import Path
from tempfile import TemporaryDirectory
from types import FrameType
from typing import Any

import msgspec

from bardo.adapters.config.settings import parse_settings
from bardo.adapters.net.client import HttpTransport
from bardo.adapters.net.keys import Keyring
from bardo.dialects import dialect
from bardo.services.facts.directory import ProviderDirectory
from bardo.services.pipeline.pipeline import Pipeline
from bardo.values.request import Request
from bardo.values.wire import Arrival
from bardo.wiring import make_services, model_facts
from benchmarks.bench import Bench
from benchmarks.figures import Figure, Row, Table
from benchmarks.figures import Target as Aim

LIMIT = 30
TOGETHER = "prefilter, cache, affinity"
_ROWS: dict[str, tuple[str, ...]] = {
    "no profile": (),
    "prefilter": ("prefilter",),
    "cache, exact, nothing found": ("cache",),
    "affinity": ("affinity",),
    TOGETHER: ("prefilter", "cache", "affinity"),
}
_TOML = """
[inference.pipeline.profiles.measured]
layers = {layers}
[inference.pipeline.cache]
semantic = "off"
[[providers]]
id = "lab"
preset = "deepseek"
models = ["m"]
[[models]]
provider = "lab"
match = ["m"]
context = 100000
"""
_WARM = 20
_SAID = "Explain to me how the garbage collector of Python finds cycles, and when a long running server should do without it. "
_BODY = {
    "model": "m",
    "messages": [{"role": "system", "content": "You are helpful. " * 60}, {"role": "user", "content": _SAID * 3}],
}


def run(bench: Bench) -> tuple[list[Table], list[Aim]]:
    """Time each row of layers, over a prompt of about 350 tokens and one target."""
    count = 300 if bench.pace.quick else 3000
    rows = []
    for name, layers in _ROWS.items():
        figures = Figure.of(asyncio.run(_times(layers, count, bench.pace.rounds)))
        rows.append(Row(measure=name, unit="µs", figures={"bardo": figures} if figures else {}))
    taken = {name: asyncio.run(instructions(layers)) for name, layers in _ROWS.items()}
    notes = (
        "Time of the processor for each call, from the choice of the layers to the end of the call without a reply.",
        f"Instructions of Python: {'; '.join(f'{name} {steps:,}' for name, steps in taken.items())}.",
    )
    table = Table(subject="pipeline", title="Layers around a call", columns=("bardo",), rows=tuple(rows), notes=notes)
    figure = table.figure(TOGETHER, "bardo")
    return [table], [Aim(says=TOGETHER, limit=LIMIT, unit="µs", found=figure.median if figure else None)]


async def _times(layers: Sequence[str], count: int, repeats: int) -> list[float]:
    """Return the mean microseconds of `count` calls, `repeats` times."""
    found = []
    async with _calls(layers) as call:
        for _ in range(repeats + 1):
            began = time.process_time_ns()
            for _ in range(count):
                await call()
            found.append((time.process_time_ns() - began) / count / 1000)
    return found[1:]


async def instructions(layers: Sequence[str]) -> int:
    """Return how many instructions of Python one call takes after others: no load of the machine changes it.

    It is the least of three calls: what the garbage collector ends during one is not the call's.
    """
    taken, least = 0, sys.maxsize

    def trace(frame: FrameType, event: str, _: object) -> Any:
        nonlocal taken
        frame.f_trace_opcodes, frame.f_trace_lines = True, False
        taken += event == "opcode"
        return trace

    async with _calls(layers) as call:
        for _ in range(_WARM):
            await call()
        before = sys.gettrace()
        for _ in range(3):
            taken = 0
            sys.settrace(trace)
            try:
                await call()
            finally:
                sys.settrace(before)
            least = min(least, taken)
    return least


@asynccontextmanager
async def _calls(layers: Sequence[str]) -> AsyncIterator[Callable[[], Awaitable[None]]]:
    """Give what makes one call with these layers."""
    settings = parse_settings(_TOML.format(layers=msgspec.json.encode(layers).decode()))
    transport, keyring = HttpTransport(), Keyring({})
    directory = ProviderDirectory.of(settings, transport, keyring, clock=time.monotonic)
    options = {"bardo": {"pipeline": "measured"}} if layers else {}
    request = dialect("openai_chat").decode_request(msgspec.json.encode({**_BODY, **options}), Arrival(model=""))
    with TemporaryDirectory() as folder:
        services = make_services(
            directory,
            transport,
            keyring,
            facts=model_facts(settings),
            pipeline=lambda host: Pipeline.of(settings, host, Path(folder), {}),
        )
        pipeline = services.pipeline
        assert pipeline is not None
        yield await _call(pipeline, directory, request)
        await pipeline.close()
    await transport.close()


async def _call(pipeline: Pipeline, directory: ProviderDirectory, request: Request) -> Callable[[], Awaitable[None]]:
    targets = (await directory.placement("m")).targets

    async def never(*_: object) -> None:
        raise AssertionError("nothing is kept here")

    async def call() -> None:
        layers = await pipeline.of_call(request, tenant="t")
        if layers is not None:
            changed = await pipeline.before_route(layers, request, never)
            await pipeline.after_route(layers, changed, targets)
            await layers.fail()

    return call
