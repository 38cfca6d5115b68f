"""Tell callers and the operator of prompts that no provider can cache, because their beginning changes with every call."""

from __future__ import annotations

import logging

import msgspec

from bardo.adapters.stores.log.columns import WATCHED
from bardo.planning.prompt_heads import PromptHeads
from bardo.values.degradation import Degradation
from bardo.values.request import Request

_log = logging.getLogger("bardo.caching")
_MOST_WARNED = 1024


class PromptTracker:
    """Notes the prompts of each user. The operator is warned once for each user and model."""

    def __init__(self) -> None:
        self._heads = PromptHeads()
        self._warned: set[tuple[str, str]] = set()

    def note(self, request: Request, user: str) -> Request:
        """Return the request, with what is lost where its prompts begin anew each time."""
        found = self._heads.note(user, request)
        if found is None:
            return request
        why = f"the system prompt differs in every call from about character {found.position} on, so that no cache holds it"
        self._warn(user, request.model, why)
        lost = Degradation(WATCHED, why=why)
        return msgspec.structs.replace(request, degraded=(*request.degraded, lost))

    def _warn(self, user: str, model: str, why: str) -> None:
        if (user, model) in self._warned or len(self._warned) >= _MOST_WARNED:
            return
        self._warned.add((user, model))
        _log.warning("prompts to %s are never read from the prompt cache: %s", model, why, extra={"model": model})
