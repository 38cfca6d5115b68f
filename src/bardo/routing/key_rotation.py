"""Which of a provider's keys a call uses: the one that the conversation used before, while its prompt is cached there; else the least used.

Providers keep cached prompts by account, so that a conversation which changes its key pays for its whole prompt again. It changes only when
its key must not be used. Time is an argument.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Sequence

from bardo.routing.key_rests import KeyRests

WARM_SECONDS = 300.0
"""How long a cached prompt is kept after its last use, as a rule (Anthropic and OpenAI, as of 2026-11)."""
_MOST_CONVERSATIONS = 20_000
_COUNTED_SECONDS = 300.0
"""Uses count half after this time."""


class KeyRotation:
    """The keys of all providers by their labels, and which conversation uses which."""

    def __init__(self) -> None:
        self._warm: dict[tuple[str, bytes], tuple[str, float, float]] = {}
        self.warm_seconds: Callable[[str, str], float] | None = None
        """Tells how long a model at a provider keeps prompts, where that is measured; None: as a rule."""
        self._uses: dict[tuple[str, str], float] = {}
        self._counted_since = 0.0

    def choose(
        self,
        provider: str,
        model: str,
        labels: Sequence[str],
        rests: KeyRests,
        now: float,
        *,
        conversation: bytes = b"",
        tried: Collection[str] = (),
    ) -> str:
        """Return the label of the key to use, of at least one. Where all must wait, it is the one whose turn comes first.

        `conversation` identifies the head of a prompt, empty where nothing is cached; `tried` are keys that failed in this call.
        """
        free = [label for label in labels if label not in tried and rests.rest(provider, label, model, now) is None]
        if not free:
            return self._first_back(provider, model, labels, rests, now, tried)
        where = (provider, conversation)
        label = self._warm_key(where, now) if conversation else None
        if label is None or label not in free:
            label = min(free, key=lambda one: self._uses.get((provider, one), 0.0))
        self._count(provider, label, now)
        if conversation:
            seconds = WARM_SECONDS if self.warm_seconds is None else self.warm_seconds(provider, model)
            self._keep(where, label, now, seconds)
        return label

    def uses(self, provider: str, label: str) -> float:
        """Return how often a key was used lately."""
        return self._uses.get((provider, label), 0.0)

    def _warm_key(self, where: tuple[str, bytes], now: float) -> str | None:
        known = self._warm.get(where)
        if known is None or not known[1] <= now < known[2]:
            return None
        return known[0]

    def _keep(self, where: tuple[str, bytes], label: str, now: float, seconds: float) -> None:
        self._warm.pop(where, None)
        if len(self._warm) >= _MOST_CONVERSATIONS:
            # The one that was used longest ago comes first.
            del self._warm[next(iter(self._warm))]
        self._warm[where] = (label, now, now + seconds)

    def _count(self, provider: str, label: str, now: float) -> None:
        if not 0 <= now - self._counted_since < _COUNTED_SECONDS:
            self._uses = {where: count / 2 for where, count in self._uses.items() if count >= 1}
            self._counted_since = now
        where = (provider, label)
        self._uses[where] = self._uses.get(where, 0.0) + 1

    def _first_back(
        self, provider: str, model: str, labels: Sequence[str], rests: KeyRests, now: float, tried: Collection[str]
    ) -> str:
        left = [label for label in labels if label not in tried] or list(labels)
        until = {label: rests.rest(provider, label, model, now) for label in left}
        return min(left, key=lambda label: one.until if (one := until[label]) is not None else now)
