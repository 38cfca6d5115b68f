"""What bardo changed or could not honour, told to the caller: each difference once, and no more of them than a caller reads."""

from __future__ import annotations

from collections.abc import Collection, Iterable
from typing import Any

import msgspec

MAX_REPORTED = 100
"""How many differences are listed; those after them are counted."""
MAX_VALUE_BYTES = 2_000
"""How long a value in a difference may be, as JSON; of a longer one the beginning is given."""
UNLISTED = "unlisted"
"""What the last entry of a full list names: how many differences are not listed."""
_MAX_REMEMBERED = 20_000


class Degradation(msgspec.Struct, frozen=True, omit_defaults=True):
    """One difference between what was asked (or received) and what was sent on.

    `what` names the field or feature, `why` is one clause for a person. `asked` and `sent` are plain values.
    """

    what: str
    asked: Any = None
    sent: Any = None
    why: str = ""


class DegradationList:
    """Differences in order of appearance, each once. After MAX_REPORTED of them the rest is counted in one last entry."""

    __slots__ = ("_all", "_listed", "_seen", "_unlisted")

    def __init__(self) -> None:
        self._listed: list[Degradation] = []
        self._seen: set[bytes | int] = set()
        self._unlisted = 0
        self._all: tuple[Degradation, ...] = ()

    def add(self, degradation: Degradation) -> None:
        """Add a difference, unless it is there."""
        self._all = ()
        if degradation.what == UNLISTED and type(degradation.sent) is int:
            self._unlisted += degradation.sent
            return
        written = _as_json(degradation)
        key = hash(written)
        if key in self._seen:
            return
        if len(self._seen) < _MAX_REMEMBERED:
            self._seen.add(key)
        if len(self._listed) >= MAX_REPORTED:
            self._unlisted += 1
        else:
            if len(written) > MAX_VALUE_BYTES:
                values = {name: _short(getattr(degradation, name)) for name in ("asked", "sent")}
                texts = {name: _truncated(getattr(degradation, name), MAX_VALUE_BYTES // 4) for name in ("what", "why")}
                degradation = Degradation(**values, **texts)
            self._listed.append(degradation)

    @property
    def all(self) -> tuple[Degradation, ...]:
        """All of them, as far as they are listed, and how many are not."""
        if not self._all and self._listed:
            self._all = tuple(self._listed)
            if self._unlisted:
                why = f"differences beyond the first {MAX_REPORTED} are counted, not listed"
                self._all = (*self._all, Degradation(UNLISTED, sent=self._unlisted, why=why))
        return self._all


def distinct(degraded: Collection[Degradation]) -> tuple[Degradation, ...]:
    """Return each difference once, in order, within the bounds of `DegradationList`."""
    if not degraded:
        return ()
    collected = DegradationList()
    for degradation in degraded:
        collected.add(degradation)
    return collected.all


def unlisted(degraded: Iterable[Degradation]) -> int:
    """Return how many differences are counted and not listed."""
    return sum(one.sent for one in degraded if one.what == UNLISTED and type(one.sent) is int)


def _short(value: Any) -> Any:
    if isinstance(value, str):
        return _truncated(value, MAX_VALUE_BYTES // 4)
    written = _as_json(value)
    return (
        value
        if len(written) <= MAX_VALUE_BYTES
        else _truncated(written.decode("utf-8", "replace"), MAX_VALUE_BYTES // 4)
    )


def _truncated(text: str, longest: int) -> str:
    return text if len(text) <= longest else f"{text[:longest]}… [{len(text) - longest} more characters]"


def _as_json(value: Any) -> bytes:
    try:
        return _ENCODER.encode(value)
    except (UnicodeEncodeError, TypeError, ValueError, RecursionError):
        return ascii(value).encode()


_ENCODER = msgspec.json.Encoder(enc_hook=repr)
