"""The keys of one call: which one each attempt uses, and whether another key of the same provider may take what one could not."""

from __future__ import annotations

from collections.abc import Callable
from typing import Protocol

from bardo.adapters.net.keys import Keyring
from bardo.context.sessions import conversation_head
from bardo.planning.failover import is_about_content
from bardo.planning.route import Provider, Target
from bardo.routing.circuit import error_class
from bardo.services.facts.health import HealthKeeper
from bardo.values.errors import BardoError, UpstreamRefused
from bardo.values.operations import EmbedRequest
from bardo.values.request import Request


class KeyContext(Protocol):
    """What the keys of a call are chosen by."""

    keyring: Keyring
    health: HealthKeeper
    watch: Callable[[], float]


class KeyTurns:
    """The keys of one call. `label` is that of the latest attempt, empty where its provider has no more than one."""

    label = ""
    _conversation: bytes | None = None
    _tried: frozenset[tuple[str, str]] = frozenset()

    def __init__(self, context: KeyContext, request: Request | EmbedRequest, tenant: str = "") -> None:
        self._context = context
        self._request = request
        self._tenant = tenant

    def choose(self, target: Target) -> str:
        """Return the label of the key that an attempt uses."""
        provider = target.provider
        if not provider.row.several_keys:
            self.label = ""
            return ""
        tried = [label for name, label in self._tried if name == provider.place]
        rests, now = self._context.health.store.rests, self._context.watch()
        if self._conversation is None:
            self._conversation = conversation_head(self._request, self._tenant)
        keyring, head = self._context.keyring, self._conversation
        self.label = keyring.choose(provider, target.model, rests, now, conversation=head, tried=tried)
        return self.label

    def may_change(self, target: Target, key: str, problem: BardoError) -> bool:
        """Whether a call that failed with the key of a label may go at once to another key of the same provider."""
        provider = target.provider
        if (
            not key
            or error_class(problem) not in ("rate_limited", "key_refused")
            or (isinstance(problem, UpstreamRefused) and is_about_content(problem))
        ):
            return False
        self._tried |= {(provider.place, key)}
        return self._has_other(provider, target.model)

    def _has_other(self, provider: Provider, model: str) -> bool:
        rests, now = self._context.health.store.rests, self._context.watch()
        return any(
            (provider.place, label) not in self._tried and rests.rest(provider.place, label, model, now) is None
            for label in self._context.keyring.labels(provider)
        )
