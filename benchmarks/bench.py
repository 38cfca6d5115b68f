"""One run's surroundings: the upstream, the load generator, the gateways, and what one measurement of them gives."""

from __future__ import annotations

import sys
import tempfile
from collections.abc import Callable
from contextlib import ExitStack
from pathlib import Path
from types import TracebackType
from typing import Self

import msgspec

from benchmarks.contestants import CannotStart, Contestant, Gateway, bardo, bare_proxy, place_for, start
from benchmarks.load import Asked, Job, Result
from benchmarks.peers import PEERS, python_of, version_of
from benchmarks.processes import Cores, Started


class Pace(msgspec.Struct, frozen=True, kw_only=True):
    """How long a run measures: `rounds` of cells, each of `seconds`, after one that is thrown away."""

    rounds: int
    seconds: float
    starts: int
    soak_requests: int
    quick: bool

    @property
    def warm_up_seconds(self) -> float:
        """How long each cell of the round that is thrown away takes."""
        return self.seconds / 3


FULL = Pace(rounds=5, seconds=0.6, starts=3, soak_requests=100_000, quick=False)
QUICK = Pace(rounds=2, seconds=0.12, starts=1, soak_requests=5_000, quick=True)


class Sample(msgspec.Struct, frozen=True, kw_only=True):
    """One cell of one round. Processor time is the gateway's own, in microseconds for each request; 0 for no gateway."""

    cpu: float
    result: Result

    @property
    def usable(self) -> bool:
        """Whether every reply was what it should be."""
        return self.result.requests > 0 and not self.result.failed


class Bench:
    """Runs jobs against gateways. Leaving it ends every process it started."""

    def __init__(
        self,
        pace: Pace,
        tell: Callable[[str], None],
        *,
        eval_folder: Path | None = None,
        held_out_folder: Path | None = None,
        model_folder: Path | None = None,
    ) -> None:
        self.pace = pace
        self.eval_folder = eval_folder
        self.held_out_folder = held_out_folder
        self.model_folder = model_folder
        self.tell = tell
        self.cores = Cores.of_this_machine()
        self.soak_requests = 0
        self.soak_minutes = 0.0
        self.plot_file: Path | None = None
        self.notes: list[str] = []
        self.versions: dict[str, str] = {}
        self._left_out: set[str] = set()
        self._ending = ExitStack()

    def __enter__(self) -> Self:
        self.folder = Path(self._ending.enter_context(tempfile.TemporaryDirectory(prefix="bardo-bench-")))
        self._upstream = self._helper("benchmarks.upstream")
        self.upstream_port = int(self._upstream.hear())
        self._generator = self._helper("benchmarks.load")
        return self

    def __exit__(
        self, kind: type[BaseException] | None, value: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._ending.close()

    def _helper(self, module: str) -> Started:
        started = Started([sys.executable, "-m", module], self.cores.rest, talks=True)
        self._ending.callback(started.stop)
        return started

    def contestants(self) -> tuple[Contestant, ...]:
        """Return bardo, the bare proxy and the peers; a quick run has one variant of each."""
        return (bardo(), bare_proxy(), *(peer for peer in PEERS if not (peer.variant and self.pace.quick)))

    def start(self, contestant: Contestant, cores: Cores | None = None) -> Gateway | None:
        """Start a gateway, or note why it cannot be started and return None."""
        if contestant.name in self._left_out:
            return None
        try:
            python = python_of(contestant, self.tell)
            place = place_for(contestant.name, self.folder, self.upstream_port, python)
            gateway = start(contestant, place, cores or self.cores)
        except CannotStart as problem:
            if not contestant.packages:
                raise
            self._left_out.add(contestant.name)
            self.note(f"{contestant.name} is left out: {problem}")
            return None
        if contestant.packages and contestant.name not in self.versions:
            self.versions[contestant.name] = version_of(contestant, python)
        self._ending.callback(gateway.stop)
        return gateway

    def note(self, text: str) -> None:
        """Keep a note for the reader, once."""
        if text not in self.notes:
            self.notes.append(text)
            self.tell(text)

    def measure(
        self,
        gateway: Gateway | None,
        asked: tuple[Asked, ...],
        *,
        concurrency: int,
        seconds: float,
        least: int = 1,
        rate: float = 0.0,
    ) -> Sample:
        """Send requests to a gateway, or to the upstream itself, and return what one of them cost. What failed is noted."""
        sample = self.send(gateway, asked, concurrency=concurrency, seconds=seconds, least=least, rate=rate)
        result = sample.result
        if result.failed:
            name = gateway.contestant.name if gateway else "the upstream"
            self.note(f"{name}: {result.failed} failed of {result.requests + result.failed}: {result.first_failure}")
        return sample

    def send(
        self,
        gateway: Gateway | None,
        asked: tuple[Asked, ...],
        *,
        concurrency: int,
        seconds: float = 0.0,
        least: int = 1,
        rate: float = 0.0,
        pace: float = 0.0,
    ) -> Sample:
        """Send requests as `measure` does, and note nothing."""
        port = self.upstream_port if gateway is None else gateway.port
        job = Job(port=port, asked=asked, concurrency=concurrency, seconds=seconds, least=least, rate=rate, pace=pace)
        before = gateway.started.cpu_seconds() if gateway else 0.0
        result = msgspec.json.decode(self._generator.tell(msgspec.json.encode(job).decode()), type=Result)
        used = gateway.started.cpu_seconds() - before if gateway else 0.0
        return Sample(cpu=used * 1e6 / max(1, result.requests), result=result)
