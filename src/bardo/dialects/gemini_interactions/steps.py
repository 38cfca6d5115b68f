"""The steps of one reply, found by their index on the wire."""

from __future__ import annotations

from typing import Any

from bardo.dialects.gemini_interactions.block_reader import Call, HostedStep, Numbers, OpenStep, Output, Thought
from bardo.dialects.lenient import as_text
from bardo.values.events import Event

_KINDS: dict[str, type[OpenStep]] = {"thought": Thought, "model_output": Output, "function_call": Call}
_BEGUN_BY = {"thought_summary": "thought", "thought_signature": "thought", "arguments_delta": "function_call"}


class Steps:
    """The steps of one reply, by their index on the wire."""

    def __init__(self) -> None:
        self._numbers = Numbers()
        self._last: OpenStep | None = None
        self.by_index: dict[int, OpenStep] = {}

    @property
    def end_with_a_call(self) -> bool:
        """Whether the last step is a call, which waits for its result."""
        return self._last is not None and self._last.call

    def open(self, index: int, raw: dict[str, Any], out: list[Event]) -> OpenStep:
        """Begin a step; one that still has its index is over."""
        self.close(index, out)
        kind = raw.get("type")
        step = _KINDS.get(kind if isinstance(kind, str) else "", HostedStep)(self._numbers)
        self.by_index[index] = self._last = step
        step.open(raw, out)
        return step

    def add(self, index: int, delta: dict[str, Any], out: list[Event]) -> None:
        """Take a piece; one that nobody announced begins its step."""
        step = self.by_index.get(index)
        if step is None:
            step = self.open(index, {"type": _BEGUN_BY.get(as_text(delta.get("type")), "model_output")}, out)
        step.add(delta, out)

    def close(self, index: int, out: list[Event]) -> None:
        """End a step, if there is one."""
        if step := self.by_index.get(index):
            step.close(out)

    def close_all(self, out: list[Event], *, complete: bool = True) -> None:
        """End all steps that are open. `complete` False: the reply broke off, and no call is ended."""
        for step in self.by_index.values():
            if complete or not step.call:
                step.close(out)
