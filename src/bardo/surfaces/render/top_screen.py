"""The screen of `bardo top`: the calls of a gateway as its events tell them, as lines of text for a terminal of a given size.

All text of programs and models is cleaned. Time is an argument.
"""

from __future__ import annotations

import time
from collections import deque
from collections.abc import Iterable, Iterator, Sequence

import msgspec
from rich.cells import cell_len, set_cell_size
from rich.text import Text

from bardo.adapters.stores.log.row import LogRow
from bardo.services.facts.health_report import HealthReport
from bardo.surfaces.render.wording import NOT_REPORTED, count, dollars, printable, seconds
from bardo.values.inference_events import (
    CallFinished,
    CallProgress,
    CallStarted,
    HealthChanged,
    PublishedEvent,
    ReasoningText,
)

_MOST_ENDED = 500
_MOST_RUNNING = 2_000
_MOST_THOUGHT = 40_000
_MOST_NOTES = 50
_MINUTE = 60.0
LOST = "lost sight"
"""The state of a call whose end may be among the events that were missed."""


class TopCall(msgspec.Struct):
    """One call as far as its events have told. `state` is its phase while it runs, and how it ended after that."""

    id: str
    began_at: float
    key: str = ""
    provider: str = ""
    model: str = ""
    asked: str = ""
    dialect: str = ""
    subsystem: str = ""
    streamed: bool = False
    state: str = "waiting"
    running: bool = True
    reasoning_tokens: int | None = None
    output_tokens: int | None = None
    input_tokens: int | None = None
    seconds: float | None = None
    cost_usd: float | None = None
    verdict: str = ""
    error: str = ""
    degraded: tuple[str, ...] = ()
    attempts: deque[str] = msgspec.field(default_factory=lambda: deque(maxlen=_MOST_NOTES))
    thought: str = ""

    def age(self, now: float) -> float:
        """Return how many seconds it has taken."""
        return max(0.0, now - self.began_at) if self.seconds is None else self.seconds

    def matches(self, text: str) -> bool:
        """Whether a filter's text stands in what the list shows of the call."""
        shown = (self.id, self.provider, self.model, self.asked, self.key, self.state, self.subsystem, self.verdict)
        return any(text in one.lower() for one in shown)


class TopCalls:
    """All calls that are known. Events may come twice, or not at all."""

    def __init__(self) -> None:
        self._running: dict[str, TopCall] = {}
        self._ended: dict[str, TopCall] = {}
        self._costs: deque[tuple[float, float, int]] = deque(maxlen=100_000)
        self.finished = 0
        self.failed = 0
        self.spent_usd = 0.0
        self.unpriced = 0
        self.missed = 0
        self.health_changes = 0

    def seed(self, rows: Iterable[LogRow]) -> None:
        """Add calls from the log that have already ended, oldest first."""
        for row in rows:
            call = TopCall(row.request_id, row.started_at, row.key_id or "", row.provider, row.model, row.model_asked)
            call.dialect, call.streamed, call.subsystem = row.client_dialect, row.streamed, row.subsystem or ""
            call.state, call.running, call.seconds, call.cost_usd = row.outcome, False, row.seconds, row.cost_usd
            call.reasoning_tokens, call.output_tokens = row.reasoning_tokens, row.output_tokens
            call.input_tokens, call.verdict, call.error = (
                row.input_tokens,
                row.reasoning_verdict or "",
                row.error_class or "",
            )
            call.degraded = tuple(str(one.get("what", "")) for one in row.degraded)
            self._end(call)

    def take(self, published: PublishedEvent) -> None:
        """Process one event."""
        event = published.event
        if isinstance(event, HealthChanged):
            self.health_changes += 1
        if not published.request_id or (published.request_id in self._ended and not self._is_resumed(published)):
            return
        match event:
            case CallStarted():
                self._start(published, event)
            case CallProgress():
                call = self._call(published)
                call.state = event.phase
                call.reasoning_tokens = event.reasoning_tokens
                call.output_tokens = event.reasoning_tokens + event.answer_tokens
            case ReasoningText():
                call = self._call(published)
                call.thought = (call.thought + event.text)[-_MOST_THOUGHT:]
            case CallFinished():
                self._finish(published, event)
            case _:
                return

    def miss(self) -> None:
        """Note that events were missed: what runs may have ended."""
        self.missed += 1
        for call in list(self._running.values()):
            call.state, call.running = LOST, False
            self._end(self._running.pop(call.id))

    def shown(self, wanted: str = "") -> list[TopCall]:
        """Return the calls that a filter lets through: those that run, then those that ended, the newest first."""
        text = wanted.lower()
        every = [*reversed(self._running.values()), *reversed(self._ended.values())]
        return [call for call in every if call.matches(text)] if text else every

    @property
    def running(self) -> int:
        """How many calls run."""
        return len(self._running)

    def last_minute(self, now: float) -> tuple[float, int]:
        """Return the US dollars and the tokens of the calls that ended in the last minute."""
        while self._costs and self._costs[0][0] < now - _MINUTE:
            self._costs.popleft()
        return sum(cost[1] for cost in self._costs), sum(cost[2] for cost in self._costs)

    def _is_resumed(self, published: PublishedEvent) -> bool:
        """Whether a call that was thought to have ended goes on."""
        call = self._ended[published.request_id]
        if call.state != LOST:
            return False
        del self._ended[call.id]
        call.running, call.seconds = True, None
        self._running[call.id] = call
        return True

    def _call(self, published: PublishedEvent) -> TopCall:
        """Return the call of an event, whose beginning may not have been seen."""
        call = self._running.get(published.request_id)
        if call is None:
            call = TopCall(published.request_id, published.at, published.key_id or "")
            call.subsystem = published.event.subsystem
            self._running[call.id] = call
            if len(self._running) > _MOST_RUNNING:
                del self._running[next(iter(self._running))]
        return call

    def _start(self, published: PublishedEvent, event: CallStarted) -> None:
        call = self._call(published)
        call.provider, call.model, call.asked = event.provider, event.model, event.model_asked
        call.dialect, call.streamed, call.state = event.client_dialect, event.streamed, "waiting"
        call.attempts.append(f"{event.cause}: {event.provider}/{event.model}")

    def _finish(self, published: PublishedEvent, event: CallFinished) -> None:
        call = self._call(published)
        call.provider, call.model = event.provider or call.provider, event.model or call.model
        call.asked, call.dialect = event.model_asked or call.asked, event.client_dialect or call.dialect
        call.state, call.running, call.seconds = event.outcome, False, event.seconds
        call.input_tokens, call.output_tokens = event.input_tokens, event.output_tokens
        call.reasoning_tokens, call.cost_usd = event.reasoning_tokens, event.cost_usd
        call.verdict, call.error, call.degraded = event.verdict or "", event.error or "", event.degraded
        self._running.pop(call.id, None)
        self._end(call)
        self.finished += 1
        self.failed += event.outcome not in ("ok", "cancelled")
        self.spent_usd += event.cost_usd or 0.0
        self.unpriced += event.cost_usd is None
        self._costs.append(
            (published.at, event.cost_usd or 0.0, (event.input_tokens or 0) + (event.output_tokens or 0))
        )

    def _end(self, call: TopCall) -> None:
        self._ended[call.id] = call
        if len(self._ended) > _MOST_ENDED:
            del self._ended[next(iter(self._ended))]


_STYLES = {
    "ok": "green", "error": "red", "broken": "red", "cancelled": "yellow", "waiting": "dim", "thinking": "magenta",
    "answering": "cyan", "tools": "blue", "healthy": "green", "degraded": "yellow", "down": "red", "unknown": "dim", LOST: "yellow",
}  # fmt: skip
_KEYS = "q quit  p pause  ↑↓ select  Enter details  r reasoning  / filter"
_HEAD = 5
_LEAST_CALLS = 3
_MOST_SHOWN = 1_000
_LONGEST_NAME = 120
"""Letters of a model's name that are shown whole, whatever it takes: a client may have sent any name."""


class TopView(msgspec.Struct):
    """What the reader of the screen has chosen, and the facts about the gateway beside its calls."""

    address: str
    calls: TopCalls = msgspec.field(default_factory=TopCalls)
    health: HealthReport | None = None
    connection: str = "connecting"
    today_usd: float | None = None
    today_of: str = ""
    today_estimated: bool = False
    reserved_usd: float = 0.0
    paused: bool = False
    pane: str = ""
    wanted: str = ""
    typing: bool = False
    selected: str = ""

    def move(self, step: int) -> None:
        """Select the call so many lines below."""
        shown = self.calls.shown(self.wanted)
        if shown:
            place = next((at for at, call in enumerate(shown) if call.id == self.selected), -1 if step > 0 else 0)
            self.selected = shown[max(0, min(len(shown) - 1, place + step))].id

    def open(self, pane: str) -> None:
        """Open a pane about the selected call, which stays selected while others come; close it where it is open."""
        chosen = self.chosen()
        self.selected = "" if chosen is None else chosen.id
        self.pane = "" if self.pane == pane else pane

    def chosen(self) -> TopCall | None:
        """Return the selected call; where none is, the first."""
        shown = self.calls.shown(self.wanted)
        return next((call for call in shown if call.id == self.selected), shown[0] if shown else None)


def screen_of(view: TopView, now: float, width: int, height: int) -> list[Text]:
    """Return the lines of the screen: no more than `height`, none wider than `width`."""
    chosen = view.chosen()
    pane = _pane(view, chosen, now, width) if view.pane else []
    room = max(1, height - _HEAD - 1)
    pane_height = min(len(pane) + 1, max(0, room - _LEAST_CALLS), max(room // 2, 12)) if pane else 0
    lines = [*_head(view, now), Text(), *_calls(view, chosen, now, width, room - pane_height)]
    lines += [Text()] * (height - 1 - pane_height - len(lines))
    pane = pane[: pane_height - 1] if view.pane != "reasoning" else pane[:1] + pane[1:][-(pane_height - 2) :]
    lines += [Text("─" * width, style="dim"), *pane][:pane_height] if pane_height else []
    if view.typing:
        foot = Text.assemble(("/", "bold"), _line(view.wanted), ("▏", "bold"))
    else:
        wanted = f"  filter: {_line(view.wanted)}" if view.wanted else ""
        foot = Text(_KEYS + wanted, style="dim")
    lines = [*lines[: height - 1], foot]
    for line in lines:
        line.no_wrap = True
        line.truncate(width, overflow="ellipsis")
    return lines[-height:] if height > 0 else []


def _head(view: TopView, now: float) -> Iterator[Text]:
    calls = view.calls
    state = "paused" if view.paused else view.connection
    clock = time.strftime("%H:%M:%S", time.localtime(now))
    style = "green" if state == "connected" else "yellow"
    yield Text.assemble(("bardo top ", "bold"), _line(view.address), "  ", (_line(state), style), "  ", (clock, "dim"))
    money, tokens = calls.last_minute(now)
    today = calls.spent_usd if view.today_usd is None else view.today_usd
    of = view.today_of or "since this began"
    failed = (f"  {calls.failed:,} failed", "red") if calls.failed else ""
    missed = ("  some events were missed", "yellow") if calls.missed else ""
    yield Text.assemble(f"{calls.running:,} running  {calls.finished:,} finished", failed, missed)
    unpriced = f"  {calls.unpriced:,} of unknown cost" if calls.unpriced else ""
    spent = dollars(today, estimated=view.today_estimated)
    held = f"spent and {dollars(view.reserved_usd)} reserved " if view.reserved_usd else ""
    yield Text(f"{dollars(money)} and {tokens:,} tokens in the last minute  {spent} {held}{of}{unpriced}")
    yield _health(view.health)


def _health(report: HealthReport | None) -> Text:
    if report is None:
        return Text("health is not known", style="dim")
    line = Text()
    for provider in sorted(report.providers, key=lambda one: one.connection.state in ("healthy", "unknown")):
        one = provider.connection
        ill = next((model for model in provider.models if model.state in ("down", "degraded")), None)
        if one.state in ("healthy", "unknown") and ill is not None:
            state, why = ill.state, f"{ill.model}: {ill.why}"
        else:
            state, why = one.state, one.why
        told = f" ({_line(why)})" if why and state not in ("healthy", "unknown") else ""
        line.append(f"{_line(provider.provider)} ").append(f"{state}{told}", style=_STYLES.get(state, "")).append("  ")
    return line


def _calls(view: TopView, chosen: TopCall | None, now: float, width: int, height: int) -> Iterator[Text]:
    shown = view.calls.shown(view.wanted)
    longest = max((min(cell_len(_line(_served(call))), _LONGEST_NAME) for call in shown), default=0)
    kept = _kept_columns(width, longest)
    heads = ("state", "model", "key", "thinking", "out", "took", "cost", "verdict")
    yield Text(_row(heads, width, kept), style="bold")
    place = next((at for at, call in enumerate(shown) if chosen is not None and call.id == chosen.id), 0)
    # A name that has no room even alone goes on in the next lines.
    room = max(8, width - sum(_WIDTHS[one] + 1 for one in kept))
    each = max(1, -(-longest // room))
    most = max(1, max(0, height - 1) // each)
    first = max(0, place - most + 1)
    for call in shown[first : first + most]:
        style = "reverse" if call is chosen else ""
        line = Text(_row(_cells(call, now), width, kept), style=style)
        line.stylize(_STYLES.get(call.state, ""), 0, 10)
        yield line
        for piece in list(_wrap(_line(_served(call)), room))[1:each]:
            yield Text(f"{' ' * (_WIDTHS[0] + 1)}{piece}", style=style)
    if not shown:
        yield Text("no calls that match" if view.wanted else "no calls yet", style="dim")


def _served(call: TopCall) -> str:
    """Return who serves which model; where nobody does yet, what was asked for."""
    return f"{call.provider}/{call.model}" if call.provider else call.asked or call.id


def _cells(call: TopCall, now: float) -> tuple[str, ...]:
    estimated = call.running
    return (
        call.state,
        _served(call),
        call.key,
        count(call.reasoning_tokens, estimated=estimated and call.reasoning_tokens is not None),
        count(call.output_tokens, estimated=estimated and call.output_tokens is not None),
        seconds(call.age(now)),
        NOT_REPORTED if call.running else dollars(call.cost_usd),
        call.verdict or call.error,
    )


_WIDTHS = (10, 0, 8, 9, 8, 8, 9, 12)
_RIGHT = (3, 4, 5, 6)


def _kept_columns(width: int, longest: int) -> list[int]:
    """Return the columns that there is room for beside the longest name of a model. What is not needed goes first: verdict, then key."""
    kept = list(range(len(_WIDTHS)))
    for place, least in ((7, 96), (2, 84), (3, 56), (6, 44), (5, 0), (4, 0)):
        if width < least or width - sum(_WIDTHS[one] + 1 for one in kept) < longest:
            kept.remove(place)
    return kept


def _row(cells: Sequence[str], width: int, kept: Sequence[int]) -> str:
    """Write one line of the list."""
    model = max(8, width - sum(_WIDTHS[place] + 1 for place in kept))
    parts = []
    for place in kept:
        size = _WIDTHS[place] or model
        text = _line(cells[place])
        if place in _RIGHT:
            text = " " * max(0, size - cell_len(text)) + text
        elif cell_len(text) > size:
            text = next(_wrap(text, size)) if place == 1 else set_cell_size(text, size - 1) + "…"
        parts.append(set_cell_size(text, size))
    return " ".join(parts)


def _pane(view: TopView, call: TopCall | None, now: float, width: int) -> list[Text]:
    """Return the lines about the selected call: its details, or what it has thought so far."""
    if call is None:
        return [Text("no call is selected", style="dim")]
    if view.pane == "details":
        return [Text.assemble((f"{name:<10}", "bold"), _line(value)) for name, value in _details(call, now) if value]
    head = Text(
        f"thinking of {_line(call.id)}: {count(call.reasoning_tokens, estimated=call.running)} tokens", style="bold"
    )
    if not call.thought:
        hint = "its text is not told: it is where the gateway has [log] content = true, from when this began"
        return [head, Text(hint, style="dim")]
    lines = [head]
    for line in printable(call.thought, prose=True).expandtabs(4).split("\n"):
        lines += [Text(piece, style="dim") for piece in _wrap(line, width)]
    return lines


def _wrap(line: str, width: int) -> Iterator[str]:
    """Cut a line into pieces of a width."""
    size = max(1, width)
    while cell_len(line) > size:
        # A wide letter may not fit any more: half as many always do.
        piece = line[:size] if cell_len(line[:size]) <= size else line[: max(1, size // 2)]
        yield piece
        line = line[len(piece) :]
    yield line


def _details(call: TopCall, now: float) -> tuple[tuple[str, str], ...]:
    return (
        ("id", call.id),
        ("state", f"{call.state}, {seconds(call.age(now))}"),
        (
            "asked for",
            f"{call.asked} in {call.dialect or 'python'}{', streamed' if call.streamed else ''}" if call.asked else "",
        ),
        ("served by", f"{call.provider}/{call.model}" if call.provider else ""),
        ("key", call.key),
        ("subsystem", call.subsystem),
        ("attempts", ", then ".join(call.attempts) if len(call.attempts) > 1 else ""),
        (
            "tokens",
            f"input {count(call.input_tokens)}, output {count(call.output_tokens)}, thinking {count(call.reasoning_tokens)}",
        ),
        ("cost", "" if call.running else dollars(call.cost_usd)),
        ("verdict", call.verdict),
        ("error", call.error),
        ("degraded", ", ".join(call.degraded)),
    )


def _line(text: str) -> str:
    """Return a text on one line; no line shows more than its beginning."""
    return printable(text[:_MOST_SHOWN]).replace("\n", " ").replace("\t", " ")
