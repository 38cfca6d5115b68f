"""Which requests need a key, whose the key is, and what its owner is told of limits and usage."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Literal

from bardo.adapters.config.accounts import Account
from bardo.services.accounts.accounts import Accounts
from bardo.surfaces.gateway.answer import Answer
from bardo.surfaces.gateway.callers import ACCOUNT, KEY, caller_of, is_signed, keys_of
from bardo.surfaces.gateway.context import GatewayContext
from bardo.surfaces.gateway.http import Receive, Scope
from bardo.surfaces.gateway.own_replies import usage_reply
from bardo.surfaces.gateway.routes import Route
from bardo.values.errors import Unauthorized, UnknownRoute

_WINDOW = 60
_ANTHROPIC = "anthropic_messages"
_LIMITS: tuple[tuple[str, Literal["requests", "tokens"]], ...] = (
    ("requests_per_minute", "requests"),
    ("tokens_per_minute", "tokens"),
)


async def authenticate(context: GatewayContext, accounts: Accounts, route: Route, scope: Scope, answer: Answer) -> None:
    """Find whose key a request has, and note it in `scope`. Raises Unauthorized."""
    keys = keys_of(scope)
    if _is_open(route, scope) or (route.endpoint == "ready" and not is_signed(scope) and not keys):
        return
    if not keys and is_signed(scope):
        # A signature proves a secret that both sides know. bardo keeps no secrets of keys, only digests.
        hint = "give AWS's library the key as a bearer token: AWS_BEARER_TOKEN_BEDROCK=bardo_…"
        raise Unauthorized("requests signed as AWS's are hold no key that can be checked", hint=hint)
    key = await accounts.known_key(keys) if len(keys) > 1 else next(iter(keys), "")
    account = await accounts.account_of(key)
    if account is not None:
        scope[ACCOUNT], scope[KEY] = account, key
        if account.limited:
            answer.own_headers = lambda: limit_headers(account, accounts, route.dialect, context.services.clock())
            answer.has_login = caller_of(scope).login is not None


def _is_open(route: Route, scope: Scope) -> bool:
    """Whether anybody may ask: programs look at a health endpoint, or send `HEAD /`, to see whether somebody is there."""
    return route.endpoint == "health" or (route.endpoint == "root" and scope["method"] == "HEAD")


def limit_headers(account: Account, accounts: Accounts, dialect: str, now: float) -> list[tuple[str, str]]:
    """Return what is left of the limits of a minute, in the headers that the libraries of a dialect read."""
    found = accounts.remaining(account)
    headers: list[tuple[str, str]] = []
    for name, kind in _LIMITS:
        if name in found:
            limit, left = found[name]
            headers += _anthropic(kind, limit, left, now) if dialect == _ANTHROPIC else _openai(kind, limit, left)
    return headers


def _openai(kind: str, limit: int, left: int) -> list[tuple[str, str]]:
    reset = 0 if left == limit else _WINDOW
    return [
        (f"x-ratelimit-limit-{kind}", str(limit)),
        (f"x-ratelimit-remaining-{kind}", str(left)),
        (f"x-ratelimit-reset-{kind}", f"{reset}s"),
    ]


def _anthropic(kind: str, limit: int, left: int, now: float) -> list[tuple[str, str]]:
    reset = now + (0 if left == limit else _WINDOW)
    shown = datetime.fromtimestamp(int(reset), UTC).strftime("%Y-%m-%dT%H:%M:%SZ")
    return [
        (f"anthropic-ratelimit-{kind}-limit", str(limit)),
        (f"anthropic-ratelimit-{kind}-remaining", str(left)),
        (f"anthropic-ratelimit-{kind}-reset", shown),
    ]


async def show_usage(context: GatewayContext, route: Route, scope: Scope, receive: Receive, answer: Answer) -> None:
    """Answer what the key of the request has used, and what it may. Raises UnknownRoute where no keys are asked for."""
    accounts, account = context.accounts, caller_of(scope).account
    if accounts is None or account is None:
        hint = "make a key with `bardo keys create NAME`, and send it"
        raise UnknownRoute("usage is counted by key, and the request has none", hint=hint)
    await answer.json(usage_reply((await accounts.usage(account)).fields()))
