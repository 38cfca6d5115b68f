"""Subject `basket`: real work in one figure, what bardo's processor time is beside that of a proxy that reads nothing, and beside peers."""

from __future__ import annotations

import os
import re
from collections import defaultdict
from collections.abc import Mapping, Sequence
from statistics import geometric_mean

import msgspec

from benchmarks.basket_contestants import (
    CHAT_CHAT,
    KEYED,
    MESSAGES_CHAT,
    MESSAGES_MESSAGES,
    WAYS,
    Participant,
    Way,
    participants,
)
from benchmarks.basket_replies import Delivery
from benchmarks.basket_requests import SESSIONS, History, Numbered, agent_turns, short_request
from benchmarks.bench import Bench, Sample
from benchmarks.contestants import FLOOR, Gateway
from benchmarks.figures import Figure, Row, Table, Target, in_digits
from benchmarks.load import Asked

AT_ONCE = 16
CALLS_BEHIND = (3, 30, 120)
BARDO, LITELLM, SGLANG, TENSORZERO = "bardo", "LiteLLM", "sglang-router", "TensorZero"
_KINDS = {"none": "no thinking", "short": "thinking of 200 letters", "long": "signed thinking of 4 kB"}
_DELIVERIES: dict[Delivery, str] = {"whole": "whole", "burst": "200 events in a burst", "paced": "200 events, paced"}
_HISTORIES: dict[History, str] = {"seen": "history seen", "new": "history never seen"}
_AGENT_WAYS = (CHAT_CHAT, MESSAGES_MESSAGES, MESSAGES_CHAT)


class Cell(msgspec.Struct, frozen=True, kw_only=True):
    """One kind of work. With `calls`, an agent's turn behind so many; `keyed`: by a key with limits, a budget and a price."""

    way: Way
    kind: str
    delivery: Delivery = "whole"
    calls: int = 0
    history: History = "seen"
    keyed: bool = False

    def __str__(self) -> str:
        if self.calls:
            return f"{self.way.says}, agent's turn behind {self.calls} calls, {_HISTORIES[self.history]}"
        if self.kind == "typed":
            return f"{self.way.says}, typed answer"
        keyed = ", key with limits, budget and price" if self.keyed else ""
        return f"{self.way.says}, {_KINDS[self.kind]}, {_DELIVERIES[self.delivery]}{keyed}"


def cells() -> tuple[Cell, ...]:
    """Return all cells. A history never seen comes after the same that was seen, on which half of it is built."""
    replies = [
        Cell(way=way, kind=kind, delivery=delivery) for way in WAYS for delivery in _DELIVERIES for kind in _KINDS
    ]
    turns = [
        Cell(way=way, kind="agent", calls=calls, history=history)
        for way in _AGENT_WAYS
        for calls in CALLS_BEHIND
        for history in _HISTORIES
    ]
    return (*replies, *turns, Cell(way=CHAT_CHAT, kind="typed"), Cell(way=CHAT_CHAT, kind="none", keyed=True))


class Requests(msgspec.Struct, frozen=True, kw_only=True):
    """What is sent in a cell, and what is sent before it and not measured."""

    before: list[Numbered]
    measured: list[Numbered]


def requests_of(cell: Cell, number: int, count: int) -> Requests:
    """Return what is sent in a round of this number: the same to every participant, and in no other round or cell."""
    place = cells().index(cell)
    if cell.calls:
        # Both kinds of history are of the same sessions.
        salt = f"{number}-{WAYS.index(cell.way)}"
        before, turns = agent_turns(cell.way.client, cell.calls, cell.history, max(1, count // SESSIONS), salt)
        return Requests(before=before, measured=turns)
    fields = [
        short_request(cell.way.client, cell.kind, cell.delivery, each, f"{number}-{place}") for each in range(count)
    ]
    return Requests(before=[], measured=fields)


Found = dict[tuple[str, Cell], list[Sample]]
"""What was found, by participant and cell."""
COUNTS: dict[Delivery, int] = {"whole": 192, "burst": 64, "paced": 64}
QUICK_COUNTS: dict[Delivery, int] = {"whole": 32, "burst": 16, "paced": 16}
TURNS, QUICK_TURNS = 3, 2
_MOST_ROUNDS = 3
_FEWER_OF_SLOW = 8


def run(bench: Bench) -> tuple[list[Table], list[Target]]:
    """Measure everyone in every cell, and return the figure, the cells, and how bardo stands to its targets."""
    started = [(one, bench.start(one.contestant)) for one in participants()]
    running = [(one, gateway) for one, gateway in started if gateway is not None]
    found, problems, loads = measure_rounds(bench, running, cells())
    for _, gateway in running:
        gateway.stop()
    columns = tuple(one.name for one, _ in running if one.name != KEYED)
    for reason, where in sorted(problems.items()):
        bench.note(f"{reason}: {len(where)} cells, the first of them {where[0]}")
    note = f"Load average of the machine at the beginning of each round: {', '.join(f'{load:.1f}' for load in loads)}."
    table = Table(
        subject="basket",
        title="basket: cells",
        columns=columns,
        rows=tuple(_row(found, cell, columns) for cell in cells()),
        notes=(*_NOTES, note),
        floor=FLOOR,
    )
    return [summary(table), table], targets(table)


_NOTES = (
    f"Processor time of one request, {AT_ONCE} at once, the median of the rounds; everyone gets the same requests in turn, who is first "
    f"changes with each round. In round brackets: times bardo's figure. In square brackets: times the {FLOOR}'s, which passes a "
    "request of the same client on unread and gets the reply in the client's dialect.",
    "No two requests are equal. What repeats is their shape, as in life: six programs ask, each with its own order of keys, options and "
    "one of three system prompts; words, lengths and histories are new. The upstream has 16 replies of each kind, of other words and "
    "lengths; each turn of an agent has its own.",
    "A history seen: twenty sessions interleaved, each turn one call longer than the one before. The gateway got the turns before it, of a "
    "history of 120 calls the last ten, and looks up what it kept of their replies. A history never seen, as after a restart or at another "
    "worker: every other turn is of a session that the gateway never met, the rest are histories that it knows under a system prompt of "
    "which a word is another.",
    "A reply counts only where its text, its thinking, the signature of it and its calls are those that were sent. Cannot: the gateway has "
    "no such endpoint, needs a database for it, or its replies lack something; the notes at the end say what.",
    "bardo has everything on that is on by default, and its log in SQLite. LiteLLM and TensorZero run without a database and log nothing. "
    f"LiteLLM gets every {_FEWER_OF_SLOW}th of the requests.",
)


def measure_rounds(
    bench: Bench, running: Sequence[tuple[Participant, Gateway]], wanted: Sequence[Cell]
) -> tuple[Found, dict[str, list[str]], list[float]]:
    """Measure everyone in each cell of each round; a peer whose replies are wrong in the first is not asked for them again.

    Returns the samples, in which cells of whom something was wrong, and the load of the machine at each round.
    """
    found: Found = defaultdict(list)
    problems: dict[str, list[str]] = defaultdict(list)
    left_out: set[tuple[str, Cell]] = set()
    loads = []
    rounds = min(_MOST_ROUNDS, bench.pace.rounds)
    for number in range(rounds + 1):
        loads.append(os.getloadavg()[0])
        bench.tell(f"basket: round {number} of {rounds}" if number else "basket: warming up")
        turned = [*running[number % len(running) :], *running[: number % len(running)]]
        for cell in wanted:
            requests = requests_of(cell, number, _count(bench, cell, warm_up=not number))
            for one, gateway in turned:
                key = (one.name, cell)
                if not can(one, cell) or key in left_out:
                    continue
                sample = _measure(bench, one, gateway, cell, requests)
                if sample.result.failed:
                    problems[f"{one.name}: {_short(sample.result.first_failure)}"].append(str(cell))
                    if one.contestant.packages:
                        left_out.add(key)
                if number or sample.result.failed:
                    found[key].append(sample)
    return found, problems, loads


def can(one: Participant, cell: Cell) -> bool:
    """Whether somebody is asked for a cell. bardo with keys is for the cell of a key, which the peers have only with a database."""
    if cell.keyed:
        return one.name in (KEYED, FLOOR)
    return one.name != KEYED and cell.way in one.ways


def _count(bench: Bench, cell: Cell, *, warm_up: bool) -> int:
    if cell.calls:
        return SESSIONS * (1 if warm_up else QUICK_TURNS if bench.pace.quick else TURNS)
    count = (QUICK_COUNTS if bench.pace.quick else COUNTS)[cell.delivery]
    return count // 4 if warm_up else count


def _measure(bench: Bench, one: Participant, gateway: Gateway, cell: Cell, requests: Requests) -> Sample:
    def made(numbered: Sequence[Numbered]) -> tuple[Asked, ...]:
        return tuple(one.asked(cell.way, cell.kind, number, fields) for number, fields in numbered)

    count = len(requests.measured)
    if one.contestant.slow:
        count = max(2, count // _FEWER_OF_SLOW)
    # Of a peer that gets fewer requests the last turn of as many sessions is enough: it keeps nothing of the replies.
    earlier = requests.before[-SESSIONS:][:count] if one.contestant.slow else requests.before
    before, measured = made(earlier), made(requests.measured[:count])
    if before:
        bench.send(gateway, before, concurrency=AT_ONCE, least=len(before))
    return bench.send(gateway, measured, concurrency=AT_ONCE, least=len(measured))


def _short(failure: str) -> str:
    """Return what was wrong without the words and numbers of one reply."""
    return re.sub(r"\d+", "…", failure.partition("; it begins")[0].partition(" that begins")[0])


def _row(found: Found, cell: Cell, columns: Sequence[str]) -> Row:
    figures, failed, cannot = {}, {}, []
    for column in columns:
        samples = found.get((KEYED if cell.keyed and column == BARDO else column, cell), [])
        figure = Figure.of([sample.cpu for sample in samples])
        if figure is not None and all(sample.usable for sample in samples):
            figures[column] = figure
        elif samples and column in (BARDO, FLOOR):
            failed[column] = "its replies were not what they should be"
        else:
            cannot.append(column)
    return Row(measure=str(cell), unit="µs", figures=figures, failed=failed, cannot=tuple(cannot))


def summary(table: Table) -> Table:
    """Return the one figure, the same of groups of cells, and how peers stand to bardo in the cells that they can do."""
    rows = [
        _mean_row(table, f"**basket**: {BARDO}'s time over the {FLOOR}'s", cells(), BARDO, FLOOR),
        *(
            _mean_row(table, f"{BARDO}'s time over the {FLOOR}'s, {says}", group, BARDO, FLOOR)
            for says, group in _groups().items()
        ),
    ]
    for peer in (name for name in table.columns if name not in (BARDO, FLOOR)):
        rows.append(_mean_row(table, f"{peer}'s time over {BARDO}'s, where it can", cells(), peer, BARDO))
        rows.append(_mean_row(table, f"{peer}'s time over {BARDO}'s, agents' turns", _agents(), peer, BARDO))
    notes = ("Geometric means of the ratios of cells.",)
    return Table(subject="basket", title="basket", columns=("found",), rows=tuple(filter(None, rows)), notes=notes)


def _groups() -> dict[str, list[Cell]]:
    replies = [cell for cell in cells() if not cell.calls and cell.kind in _KINDS and not cell.keyed]
    by_kind = {says: [cell for cell in replies if cell.kind == kind] for kind, says in _KINDS.items()}
    by_delivery = {says: [cell for cell in replies if cell.delivery == kind] for kind, says in _DELIVERIES.items()}
    by_way = {
        "forwarded replies": [cell for cell in replies if cell.way.is_forwarded],
        "translated replies": [cell for cell in replies if not cell.way.is_forwarded],
    }
    turns = {
        f"agents' turns, {says}": [cell for cell in _agents() if cell.history == history]
        for history, says in _HISTORIES.items()
    }
    return {**by_kind, **by_delivery, **by_way, **turns}


def _agents(least: int = 0) -> list[Cell]:
    return [cell for cell in cells() if cell.calls and cell.calls >= least]


def _ratios(table: Table, wanted: Sequence[Cell], name: str, base: str) -> dict[str, float]:
    found = {str(cell): table.ratio(str(cell), name, base) for cell in wanted}
    return {says: ratio for says, ratio in found.items() if ratio is not None}


def _mean(table: Table, wanted: Sequence[Cell], name: str, base: str) -> float | None:
    ratios = _ratios(table, wanted, name, base)
    return geometric_mean(ratios.values()) if ratios else None


def _mean_row(table: Table, says: str, wanted: Sequence[Cell], name: str, base: str) -> Row | None:
    ratios = _ratios(table, wanted, name, base)
    if not ratios:
        return None
    figure = Figure(
        median=geometric_mean(ratios.values()), low=min(ratios.values()), high=max(ratios.values()), rounds=1
    )
    more = f"{len(ratios)} cells, {in_digits(figure.low)} to {in_digits(figure.high)}"
    return Row(measure=f"{says} ({more})", unit="×", figures={"found": figure})


def targets(table: Table) -> list[Target]:
    """Return how bardo stands to what it aims at; where a limit holds for each cell, the worst one is named."""
    right = sum(BARDO in row.figures for row in table.rows)
    behind_30 = {
        str(cell): figure.median
        for cell in _agents()
        if cell.calls == 30 and (figure := table.figure(str(cell), BARDO)) is not None
    }
    return [
        Target(
            says=f"basket: {BARDO} over the {FLOOR}, geometric mean",
            limit=2.0,
            unit="×",
            found=_mean(table, cells(), BARDO, FLOOR),
        ),
        _worst(f"each cell over the {FLOOR}", 3.0, "×", _ratios(table, cells(), BARDO, FLOOR)),
        _worst("each agent's turn behind 30 calls", 600, "µs", behind_30),
        _worst("a reply that thinks over the same that does not", 1.2, "×", thinking_ratios(table)),
        _worst(f"each cell over {TENSORZERO}, where it can", 1.0, "×", _ratios(table, cells(), BARDO, TENSORZERO)),
        _worst(f"agents' turns from 30 calls on over {SGLANG}", 1.0, "×", _ratios(table, _agents(30), BARDO, SGLANG)),
        *(
            Target(
                says=f"{LITELLM} over {BARDO}, {says}",
                limit=25,
                unit="×",
                found=_mean(table, wanted, LITELLM, BARDO),
                better="higher",
            )
            for says, wanted in (("where it can", cells()), ("agents' turns", _agents()))
        ),
        Target(says="cells in which every reply was right", limit=len(cells()), unit="", found=right, better="higher"),
    ]


def thinking_ratios(table: Table) -> dict[str, float]:
    """Return what a reply that thinks takes over the same that does not."""
    found = {}
    for cell in cells():
        if cell.kind not in ("short", "long"):
            continue
        plain = table.figure(str(msgspec.structs.replace(cell, kind="none")), BARDO)
        own = table.figure(str(cell), BARDO)
        if plain is not None and own is not None and plain.median > 0:
            found[str(cell)] = own.median / plain.median
    return found


def _worst(says: str, limit: float, unit: str, found: Mapping[str, float]) -> Target:
    worst = max(found, key=lambda name: found[name], default="")
    return Target(says=f"{says} ({worst})" if worst else says, limit=limit, unit=unit, found=found.get(worst))
