"""The calls of a gateway as its events tell them: what runs, what has ended, and what it cost. Time is an argument."""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable
from dataclasses import dataclass, field

from bardo.adapters.stores.log.row import LogRow
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


@dataclass(slots=True)
class TopCall:
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
    attempts: deque[str] = field(default_factory=lambda: deque(maxlen=_MOST_NOTES))
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
        return sum(one[1] for one in self._costs), sum(one[2] for one in self._costs)

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
