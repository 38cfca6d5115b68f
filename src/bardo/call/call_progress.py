"""How far a reply has come, told to those who listen to events while it arrives."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from bardo.call.call_context import CallContext
from bardo.values.events import ContentChunk, Event, RefusalChunk, ThinkChunk, ThinkStart, ToolCallChunk, ToolCallStart
from bardo.values.inference_events import CallProgress, ReasoningText
from bardo.values.usage import TokenEstimate

_EVERY_SECONDS = 0.5


class ProgressReporter:
    """What is told of one reply: each change of its phase, and its tokens from time to time."""

    def __init__(self, subsystem: str) -> None:
        self._subsystem = subsystem
        self._phase = ""
        self._told = ("", 0, 0)
        self._told_at = 0.0
        self._reasoning = TokenEstimate()
        self._answer = TokenEstimate()

    def after(self, events: Iterable[Event], now: float) -> CallProgress | None:
        """Take further events of the reply at time `now`. Returns what is due to be told."""
        for event in events:
            self._take(event)
        state = (self._phase, self._reasoning.tokens, self._answer.tokens)
        changed = state[0] != self._told[0]
        if not state[0] or state == self._told or (not changed and now - self._told_at < _EVERY_SECONDS):
            return None
        self._told, self._told_at = state, now
        phase, reasoning, answer = state
        return CallProgress(subsystem=self._subsystem, phase=phase, reasoning_tokens=reasoning, answer_tokens=answer)

    def _take(self, event: Event) -> None:
        match event:
            case ThinkStart():
                self._phase = "thinking"
            case ThinkChunk(text=text):
                self._phase = "thinking"
                self._reasoning.add(text)
            case ContentChunk(text=text) | RefusalChunk(text=text):
                self._phase = "answering"
                self._answer.add(text)
            case ToolCallStart():
                self._phase = "tools"
            case ToolCallChunk(arguments=text):
                self._phase = "tools"
                self._answer.add(text)
            case _:
                return


class ProgressPublisher:
    """Publishes how far the reply of one call has come, and where content is kept what was thought."""

    def __init__(self, context: CallContext, request_id: str, subsystem: str, key_id: str | None) -> None:
        self._context = context
        self._request_id = request_id
        self._subsystem = subsystem
        self._key_id = key_id
        self._reporter = ProgressReporter(subsystem)

    def publish(self, events: Sequence[Event]) -> None:
        """Tell those who listen what is due after further events of the reply."""
        told = self._reporter.after(events, self._context.watch())
        if told is not None:
            self._context.events.publish(self._request_id, (told,), self._key_id)
        text = "".join([event.text for event in events if type(event) is ThinkChunk])
        if text and self._context.limits.keep_content:
            piece = ReasoningText(subsystem=self._subsystem, text=text)
            self._context.events.publish(self._request_id, (piece,), self._key_id)
