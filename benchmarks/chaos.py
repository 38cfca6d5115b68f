"""Subject `chaos`: under mixed load a worker, the provider and the database are killed again and again; the log must be right.

Each call that a client saw answered has one row, none has two, costs are the sums of their parts, and no call is left open. A client gets
a whole reply, an error that says so, or a connection that breaks: never a reply that ends as if it were whole.
"""

from __future__ import annotations

import tempfile
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

import msgspec

from benchmarks.bench import Bench
from benchmarks.contestants import CannotStart
from benchmarks.figures import Figure, Row, Table, Target
from benchmarks.ledger import Ledger, read_ledger
from benchmarks.mixed_client import MixedJob, MixedResult
from benchmarks.mixed_place import CannotRun, MixedPlace, mixed_place
from benchmarks.throwaway_postgres import Postgres, can_run_postgres, postgres

_CONCURRENCY = 12
_PAUSE_SECONDS = 1.0


class Chaos(msgspec.Struct, frozen=True, kw_only=True):
    """What a run gave. `mistakes` are the rules that did not hold."""

    kills: dict[str, int]
    clients: MixedResult
    ledger: Ledger
    mistakes: tuple[str, ...]


def run(bench: Bench) -> tuple[list[Table], list[Target]]:
    """Kill what a gateway needs, with its log in SQLite and, where it can run here, in PostgreSQL."""
    seconds = 12.0 if bench.pace.quick else 60.0
    tables, targets = [], []
    for name in ("SQLite", "PostgreSQL"):
        if name == "PostgreSQL" and not can_run_postgres():
            bench.note("chaos: PostgreSQL is not here, so only a log in SQLite was tried")
            continue
        try:
            found = chaos(seconds, with_postgres=name == "PostgreSQL")
        except CannotRun as problem:
            raise CannotStart(str(problem)) from problem
        tables.append(_table(name, found, seconds))
        targets.append(
            Target(says=f"chaos: broken rules, log in {name}", limit=0, unit="", found=float(len(found.mistakes)))
        )
    return tables, targets


def chaos(seconds: float, *, with_postgres: bool = False, pause: float = _PAUSE_SECONDS) -> Chaos:
    """Run mixed load for some seconds, kill one thing after another meanwhile, and judge what is left."""
    with (
        tempfile.TemporaryDirectory(prefix="bardo-chaos-", ignore_cleanup_errors=True) as name,
        _database(with_postgres) as database,
    ):
        folder = Path(name)
        log = f'url = "{database.address}"' if database is not None else ""
        with mixed_place(folder, workers=2, log=log) as place:
            kinds: dict[str, Callable[[int], None]] = {
                "worker": place.kill_worker,
                "provider": lambda _: _kill_provider(place),
            }
            if database is not None:
                kinds["database"] = lambda _: database.kill_and_restart()
            clients, kills = _under_load(place, kinds, seconds, pause)
            place.stop_gateway()
            # What a killed worker left in its journal is stored by the next start at the latest.
            place.start_gateway()
            place.stop_gateway()
            ledger = read_ledger(database.libpq if database is not None else folder / "log.db")
            mistakes = ledger.mistakes(clients.answered, place.journals())
    quiet = [f"a reply that ended quietly: {one}" for one in clients.quiet]
    return Chaos(kills=kills, clients=clients, ledger=ledger, mistakes=(*mistakes, *quiet))


@contextmanager
def _database(wanted: bool) -> Iterator[Postgres | None]:
    if not wanted:
        yield None
        return
    with postgres() as database:
        yield database


def _kill_provider(place: MixedPlace) -> None:
    place.kill_simulator()
    place.restart_simulator()


def _under_load(
    place: MixedPlace, kinds: dict[str, Callable[[int], None]], seconds: float, pause: float
) -> tuple[MixedResult, dict[str, int]]:
    """Kill in turn while clients ask; the load goes on for a while after the last kill."""
    job = MixedJob(port=place.port, requests=10**9, concurrency=_CONCURRENCY, seconds=seconds, keep_ids=True)
    heard: list[str] = []
    load = threading.Thread(target=lambda: heard.append(place.clients.tell(msgspec.json.encode(job).decode())))
    load.start()
    kills = dict.fromkeys(kinds, 0)
    until, number = time.monotonic() + 0.85 * seconds, 0
    while time.monotonic() + pause < until:
        time.sleep(pause)
        kind = list(kinds)[number % len(kinds)]
        kinds[kind](number)
        kills[kind] += 1
        number += 1
    load.join()
    return msgspec.json.decode(heard[0], type=MixedResult), kills


def _table(name: str, found: Chaos, seconds: float) -> Table:
    counts = {
        "requests": found.clients.sent,
        "answered with a whole reply or an error of a call": len(found.clients.answered),
        "rows in the log": found.ledger.rows,
        "of these marked as ended with their process": found.ledger.lost,
        "replies that ended quietly": len(found.clients.quiet),
        **{f"kills: {kind}": count for kind, count in found.kills.items()},
    }
    rows = [Row(measure=measure, unit="number", figures=_one(value)) for measure, value in counts.items()]
    ends = "; ".join(f"{end} {count:,}" for end, count in sorted(found.clients.ends.items()))
    notes = (
        f"{seconds:.0f} s, {_CONCURRENCY} requests at a time. What clients saw: {ends}",
        f"Mistakes: {'; '.join(found.mistakes) or 'none'}",
    )
    return Table(
        subject="chaos",
        title=f"chaos: killed under load, log in {name}",
        columns=("bardo",),
        rows=tuple(rows),
        notes=notes,
    )


def _one(value: float) -> dict[str, Figure]:
    figure = Figure.of([value])
    return {} if figure is None else {"bardo": figure}
