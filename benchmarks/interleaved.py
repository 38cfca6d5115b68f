"""Subject `interleaved`: an agent's turn behind 35 calls, by how many conversations take turns, each a call longer every time."""

from __future__ import annotations

from statistics import fmean

from benchmarks.basket import AT_ONCE, BARDO
from benchmarks.basket_contestants import (
    CHAT_CHAT,
    MESSAGES_CHAT,
    MESSAGES_MESSAGES,
    WAYS,
    Participant,
    Way,
    participants,
)
from benchmarks.basket_requests import PROGRAMS, Numbered, agent_turn
from benchmarks.bench import Bench
from benchmarks.contestants import FLOOR, Gateway
from benchmarks.figures import Figure, Row, Table, Target

CALLS = 35
CONVERSATIONS = 1, 20, 200, 2000
QUICK_CONVERSATIONS = 1, 20, 200
_WAYS = MESSAGES_MESSAGES, CHAT_CHAT, MESSAGES_CHAT
_ALONE = 12
"""So many conversations are measured where one is open at a time, one after the other."""
_PLAYED, _TURNS, _TURNS_OF_MANY = 2, 5, 1
_BATCH = 200
"""Bodies are made and sent in batches, since 2,000 of them take 100 MB."""

_NOTES = (
    "Processor time of one turn. In square brackets: times the time of the bare proxy, which reads nothing.",
    f"Of each conversation the last {_PLAYED} turns went through the gateway before, and {_TURNS} are measured, of 2,000 one: "
    "all take one turn, then all the next. One conversation has one caller, many have "
    f"{AT_ONCE} at once. Each turn has 12 tools, signed thinking in each message of the model, and results of 20 to 220 words.",
)


def run(bench: Bench) -> tuple[list[Table], list[Target]]:
    """Measure bardo and the bare proxy, in turn for each number of conversations."""
    wanted = {one.name: one for one in participants() if one.name in (BARDO, FLOOR)}
    running = [(one, gateway) for one in wanted.values() if (gateway := bench.start(one.contestant)) is not None]
    rows = []
    dearest = 0.0
    for way in _WAYS:
        for count in QUICK_CONVERSATIONS if bench.pace.quick else CONVERSATIONS:
            bench.tell(f"interleaved: {way.says}, {count:,} conversations")
            figures = {one.name: measured(bench, one, gateway, way, count) for one, gateway in running}
            dearest = max(dearest, figures[BARDO].median)
            name = f"{way.says}, {count:,} conversation{'s' if count > 1 else ''}"
            rows.append(Row(measure=name, unit="µs", figures=figures))
    for _, gateway in running:
        gateway.stop()
    table = Table(
        subject="interleaved",
        title=f"turns behind {CALLS} calls",
        columns=(BARDO, FLOOR),
        rows=tuple(rows),
        notes=_NOTES,
        floor=FLOOR,
    )
    return [table], [Target(says=f"each turn behind {CALLS} calls, interleaved", limit=600, unit="µs", found=dearest)]


def measured(bench: Bench, one: Participant, gateway: Gateway, way: Way, count: int) -> Figure:
    """Return what a turn takes of a gateway's processor time, the mean of all. Raises ValueError for a reply that is not what was sent."""
    found = []
    for group in range(_ALONE if count == 1 else 1):
        sessions = [f"interleaved-{WAYS.index(way)}-{count}.{group}.{place}" for place in range(count)]
        for place in range(_PLAYED + (_TURNS_OF_MANY if count > QUICK_CONVERSATIONS[-1] else _TURNS)):
            used = _round(bench, one, gateway, way, sessions, CALLS - _PLAYED + place)
            if place >= _PLAYED:
                found.append(used)
    figure = Figure.of([fmean(found)])
    assert figure is not None
    return figure


def _round(bench: Bench, one: Participant, gateway: Gateway, way: Way, sessions: list[str], calls: int) -> float:
    """Let each conversation take its turn behind so many calls; return the microseconds of one."""
    used = 0.0
    for start in range(0, len(sessions), _BATCH):
        asked = []
        for place, session in enumerate(sessions[start : start + _BATCH]):
            turn: Numbered = agent_turn(way.client, session, place % PROGRAMS, calls, "today")
            asked.append(one.asked(way, "agent", *turn))
        sample = bench.send(gateway, tuple(asked), concurrency=min(AT_ONCE, len(asked)), least=len(asked))
        if not sample.usable:
            raise ValueError(f"{one.name}, {way.says}: {sample.result.first_failure}")
        used += sample.cpu * len(asked)
    return used / len(sessions)
