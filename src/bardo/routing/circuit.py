"""The circuit breaker of one target: down when too many calls fail, and up again when one call that is let through is answered.

Time is an argument, of a clock that may jump: a target that went down later than now is due at once.
"""

from __future__ import annotations

from collections.abc import Mapping

import msgspec

from bardo.routing.health_window import Fault, HealthWindow, wilson_lower_bound

TRIAL_SECONDS = 30.0
"""How long the call that is let through has before another one may be."""


class HealthPolicy(msgspec.Struct, frozen=True, kw_only=True):
    """When a target is down: of `least_calls` within `window_seconds` more than `error_rate` fail, as sure as Wilson's interval of 95 %.

    It is tried again after `rest_seconds`, then after twice that, up to `most_rest_seconds`.
    """

    error_rate: float = 0.05
    window_seconds: float = 300.0
    least_calls: int = 5
    rest_seconds: float = 15.0
    most_rest_seconds: float = 300.0


class Circuit:
    """One target: its window, and since when it is down. Closed while `down_since` is None."""

    __slots__ = (
        "_closed_at",
        "_rest",
        "_trial_until",
        "consecutive_failures",
        "down_since",
        "due_at",
        "last_fault",
        "policy",
        "window",
    )

    def __init__(self, policy: HealthPolicy) -> None:
        self.policy = policy
        self.window = HealthWindow(policy.window_seconds)
        self.down_since: float | None = None
        self.due_at = 0.0
        self.consecutive_failures = 0
        self.last_fault: Fault | None = None
        self._closed_at: float | None = None
        self._rest = policy.rest_seconds
        self._trial_until: float | None = None

    def note_success(self, now: float) -> bool:
        """Note an answer. Returns whether the target is up again: it was down, and due."""
        self.consecutive_failures = 0
        if self.down_since is None:
            self.window.note_success(now)
            return False
        if not self.is_due(now):
            return False
        self._close(now)
        self.window.note_success(now)
        return True

    def note_fault(self, fault: Fault, now: float) -> bool:
        """Note a failure. Returns whether the target went down by it."""
        self.consecutive_failures += 1
        self.last_fault = fault
        self.window.note_fault(fault, now)
        if self.down_since is not None:
            if self.is_due(now):
                self._open(now, min(2 * self._rest, self.policy.most_rest_seconds))
            return False
        if not self.fails_too_often():
            return False
        self._open(now, self._next_rest(now))
        return True

    def note_counts(self, answered: int, faults: Mapping[Fault, int], now: float) -> bool:
        """Note calls that others made, which tried nothing that is down. Returns whether the target went down by them."""
        self.window.note_counts(answered, faults, now)
        if faults:
            self.last_fault = list(faults)[-1]
        if self.down_since is not None or not faults or not self.fails_too_often():
            return False
        self._open(now, self._next_rest(now))
        return True

    @property
    def rest_seconds(self) -> float:
        """For how long the target rests, or rested last."""
        return self._rest

    def open_as_others(self, rest_seconds: float, due_at: float, fault: Fault | None, now: float) -> bool:
        """Take over that the target is down for others, who try it again at `due_at`. Returns whether it was not down here."""
        was_up = self.down_since is None
        if due_at > now and (was_up or rest_seconds > self._rest or self.is_due(now)):
            self._open(now, rest_seconds)
            self.due_at, self.last_fault = due_at, fault or self.last_fault
        return was_up and self.down_since is not None

    def close_as_others(self, closed_at: float, now: float) -> bool:
        """Take over that the target answered others again at `closed_at`. Returns whether it was down here, and since before that."""
        if self.down_since is None or closed_at < self.down_since <= now:
            return False
        self._close(now)
        return True

    def end_trial(self) -> None:
        """Let another call be tried: the one that was let through said nothing."""
        self._trial_until = None

    def fails_too_often(self) -> bool:
        """Whether it is certain that more of its calls fail than may, as of the last look at the window."""
        calls = self.window.calls
        if calls < self.policy.least_calls:
            return False
        return wilson_lower_bound(self.window.failed, calls) > self.policy.error_rate

    def is_due(self, now: float) -> bool:
        """Whether a target that is down may be tried."""
        return self.down_since is not None and (now >= self.due_at or now < self.down_since)

    def may_try(self, now: float) -> bool:
        """Whether a call may be sent: to a target that is down, one that is due and that no other call tries."""
        if self.down_since is None:
            return True
        return self.is_due(now) and not self._is_tried(now)

    def begin_trial(self, now: float) -> None:
        """Note that a call was let through to a target that is down."""
        if self.down_since is not None:
            self._trial_until = now + TRIAL_SECONDS

    def is_idle(self, now: float) -> bool:
        """Whether nothing is known of the target that is not as old as the window."""
        self.window.look(now)
        return self.down_since is None and not self.window.calls

    def _is_tried(self, now: float) -> bool:
        until = self._trial_until
        return until is not None and until - TRIAL_SECONDS <= now < until

    def _next_rest(self, now: float) -> float:
        """Return the rest of a target that goes down: twice the last one where it came back only a window ago."""
        closed = self._closed_at
        if closed is not None and 0 <= now - closed < self.policy.window_seconds:
            return min(2 * self._rest, self.policy.most_rest_seconds)
        return self.policy.rest_seconds

    def _close(self, now: float) -> None:
        self.down_since, self._trial_until, self._closed_at = None, None, now
        self.consecutive_failures = 0
        self.window.clear()

    def _open(self, now: float, rest: float) -> None:
        self.down_since = self.down_since if self.down_since is not None and self.down_since <= now else now
        self._rest, self.due_at, self._trial_until = rest, now + rest, None
