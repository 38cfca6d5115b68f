"""What a gateway takes to be there: its start, its memory, the import of its package."""

from __future__ import annotations

import subprocess
from collections import defaultdict
from collections.abc import Iterator, Sequence

from benchmarks.bench import Bench
from benchmarks.contestants import CannotStart, Contestant, Gateway, bardo
from benchmarks.figures import Figure, Row
from benchmarks.peers import PEERS, python_of


def cold_starts(bench: Bench, contestants: Sequence[Contestant]) -> dict[str, list[float]]:
    """Return milliseconds from start to first good answer, several times in turn."""
    starts: dict[str, list[float]] = defaultdict(list)
    for _ in range(bench.pace.starts):
        for contestant in contestants:
            if contestant.slow and bench.pace.quick:
                continue  # Its one start for the rounds must do.
            gateway = bench.start(contestant)
            if gateway is not None:
                starts[contestant.name].append(gateway.ready_seconds * 1000)
                gateway.stop()
    return starts


def memory(gateway: Gateway) -> tuple[float, float]:
    """Return resident and proportional memory, in MB."""
    return gateway.started.resident_bytes() / 1e6, gateway.started.proportional_bytes() / 1e6


def there_rows(
    starts: dict[str, list[float]], idle: dict[str, tuple[float, float]], loaded: dict[str, tuple[float, float]]
) -> Iterator[Row]:
    """Return the rows of being there: start and memory."""
    ready = {name: figure for name in idle if (figure := Figure.of(starts[name])) is not None}
    yield Row(measure="cold start to the first good answer", unit="ms", figures=ready)
    kinds = (("resident memory", 0), ("memory, shared pages counted once", 1))
    for when, sizes in (("when idle", idle), ("after the load", loaded)):
        for kind, place in kinds:
            figures = {name: figure for name, both in sizes.items() if (figure := Figure.of([both[place]])) is not None}
            yield Row(measure=f"{kind} {when}", unit="MB", figures=figures)


_IMPORTS = {"bardo": "import bardo", "LiteLLM": "import litellm", "TensorZero": "import tensorzero"}
_CLIENTS = {
    "bardo": "from bardo import AsyncClient",
    "LiteLLM": "from litellm import acompletion",
    "TensorZero": "from tensorzero import AsyncTensorZeroGateway",
}


def import_rows(bench: Bench) -> list[Row]:
    """Return how long the Python packages take to import, each time in a new process."""
    contestants = {"bardo": bardo(), **{peer.name: peer for peer in PEERS}}
    rows = []
    for measure, statements in (("import of the package", _IMPORTS), ("import of its client", _CLIENTS)):
        figures = {}
        for name, statement in statements.items():
            figure = Figure.of(_import_milliseconds(bench, contestants[name], statement))
            if figure is not None:
                figures[name] = figure
        rows.append(Row(measure=measure, unit="ms", figures=figures))
    return rows


def _import_milliseconds(bench: Bench, contestant: Contestant, statement: str) -> list[float]:
    try:
        python = python_of(contestant, bench.tell)
    except CannotStart as problem:
        bench.note(f"{contestant.name} is left out of the imports: {problem}")
        return []
    code = f"import time; begun = time.perf_counter(); {statement}; print((time.perf_counter() - begun) * 1000)"
    times = 3 if bench.pace.quick else 9
    if contestant.slow:
        times = 1 if bench.pace.quick else 3
    environment = {"LITELLM_LOCAL_MODEL_COST_MAP": "True", "PATH": "/usr/bin:/bin"}
    values = []
    for _ in range(times + 1):
        said = subprocess.run([python, "-c", code], capture_output=True, text=True, env=environment, check=False)
        if said.returncode:
            bench.note(f"{statement} failed: {said.stderr[-200:]}")
            return []
        values.append(float(said.stdout.split()[-1]))
    return values[1:]
