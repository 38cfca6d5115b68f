"""Headers of a provider's reply that its client gets too: what is left of the provider's limits, whether to try again, and its request id.

Claude Code shows `anthropic-ratelimit-unified-*` (Anthropic, 2026-11), and the libraries of OpenAI and Anthropic read `x-should-retry` of a
refusal. The request id is what a provider's support asks for: it has a name of bardo's own, since `x-request-id` names bardo's call.
"""

from __future__ import annotations

import re
from collections.abc import Mapping

from bardo.values.secrets import NO_SECRETS, Secrets

PassedHeaders = tuple[tuple[str, str], ...]

UPSTREAM_ID = "X-Bardo-Upstream-Request-Id"
_LIMITS = ("anthropic-ratelimit-", "x-ratelimit-")
_SHOULD_RETRY = "x-should-retry"
_IDS = ("request-id", "x-request-id", "x-amzn-requestid", "apim-request-id", "x-generation-id", "x-goog-request-id")
"""The names under which providers tell the id of a request, by their official SDKs of 2026-11; the first that is there counts."""
_MOST = 48
_NAME = re.compile(r"[a-z0-9-]{1,80}")
_VALUE = re.compile(r"[!-~](?:[ -~]{0,126}[!-~])?")


def passed_headers(headers: Mapping[str, str], secrets: Secrets = NO_SECRETS) -> PassedHeaders:
    """Return the headers that a client gets too, names of `headers` in lower case; without those that name a secret, or say too much."""
    passed = [(name, value) for name, value in headers.items() if name.startswith(_LIMITS) or name == _SHOULD_RETRY]
    if not passed and not any(name in headers for name in _IDS):
        return ()
    found = next((value for name in _IDS if (value := headers.get(name))), "")
    named = [*passed[:_MOST], *([(UPSTREAM_ID, found)] if found else [])]
    return tuple((name, value) for name, value in named if _is_sound(name, value) and secrets.in_text(value) == value)


def without_limits(headers: list[tuple[str, str]]) -> list[tuple[str, str]]:
    """Return headers without a provider's limits, for a client whose key has limits of its own."""
    return [one for one in headers if not one[0].lower().startswith(_LIMITS)]


def _is_sound(name: str, value: str) -> bool:
    return _NAME.fullmatch(name.lower()) is not None and _VALUE.fullmatch(value) is not None
