"""Whose calls they are: the keys by which clients come, their limits and budgets, and the wallet that pays for calls.

These are the tables `[[keys]]`, `[budgets]` and `[payments]` of bardo.toml.
"""

from __future__ import annotations

import hashlib
import logging
import os
import re
from collections.abc import Iterable, Mapping, Sequence
from datetime import UTC, datetime, timedelta
from decimal import Decimal, InvalidOperation
from fractions import Fraction
from math import ceil
from typing import Annotated, Any, Literal, cast

import msgspec

from bardo.accounting.limits import KeyLimits
from bardo.accounting.payments import METHODS, Method, PaymentRules
from bardo.adapters.config.mistakes import Place, choices_of, explain
from bardo.adapters.config.storage import REDIS
from bardo.catalog.matching import broken_class, matches_any
from bardo.catalog.payment_rows import payment_assets
from bardo.planning.model_names import ThinkingRules
from bardo.values.errors import ConfigError, InvalidRequest
from bardo.values.secrets import looks_like_key
from bardo.values.usage import nanos_of

NANOS = 1_000_000_000


class Account(msgspec.Struct, frozen=True, kw_only=True):
    """The settings for the calls of one key. `tenant` is whose earlier replies its calls may go on from.

    `models` are globs of models, aliases and workloads, empty for all. `expires` and `revoked` are Unix times.
    `operator`: whoever has the key may see the calls of all keys in the panel. `unknown_cost` is its own `[budgets]` `unknown_cost`.
    """

    id: str
    name: str = ""
    tenant: str = ""
    tags: tuple[str, ...] = ()
    models: tuple[str, ...] = ()
    limits: KeyLimits = KeyLimits()
    created: float = 0.0
    expires: float | None = None
    revoked: float | None = None
    operator: bool = False
    unknown_cost: Literal["", "refuse", "estimate", "allow"] = ""

    @property
    def limited(self) -> bool:
        """Whether its calls have to be counted before they are sent."""
        return self.limits.any

    @property
    def has_budget(self) -> bool:
        """Whether the money of its calls is limited."""
        limits = self.limits
        return (
            limits.usd_per_day is not None or limits.usd_per_month is not None
        ) or limits.usd_per_session is not None

    def may_ask(self, *names: str) -> bool:
        """Whether one of the names of a model is allowed."""
        return not self.models or any(matches_any(name, self.models) for name in names)

    def state(self, now: float) -> str:
        """Return whether the key is `active`, `expired` or `revoked`."""
        if self.revoked is not None:
            return "revoked"
        return "expired" if self.expires is not None and now >= self.expires else "active"


def nanos_of_usd(amount: float | str) -> int:
    """Return US dollars as nano-dollars. Raises InvalidRequest if the value is not an amount."""
    try:
        nanos = Decimal(str(amount)) * NANOS
    except InvalidOperation:
        nanos = Decimal(-1)
    if not nanos.is_finite() or not 0 <= nanos < 2**62:
        raise InvalidRequest(f"{amount!r} is no amount of US dollars", hint="write a number: 5 or 0.25")
    return int(nanos)


def expiry_of(text: str, now: float) -> float:
    """Return the Unix time that a day, a time, or a span from now like `90d` or `12h` means. Raises InvalidRequest."""
    spans = {"m": timedelta(minutes=1), "h": timedelta(hours=1), "d": timedelta(days=1)}
    number, unit = text[:-1], text[-1:]
    if unit in spans and number.isascii() and number.isdigit() and len(number) < 6:
        return now + int(number) * spans[unit].total_seconds()
    return time_of(text)


def time_of(text: str) -> float:
    """Return the Unix time of `2027-01-31` (when the day begins, in UTC) or `2027-01-31T12:00:00Z`. Raises InvalidRequest."""
    try:
        moment = datetime.fromisoformat(text)
        return (moment if moment.tzinfo else moment.replace(tzinfo=UTC)).timestamp()
    except (ValueError, OverflowError) as problem:
        message = f"{text[:80]!r} is no time"
        raise InvalidRequest(message, hint="write a day like 2027-01-31", param="expires") from problem


def checked_globs(models: Iterable[str]) -> tuple[str, ...]:
    """Return globs of models as they are kept. Raises InvalidRequest for an empty one, and for one that fits nothing."""
    globs = tuple(dict.fromkeys(model.strip() for model in models))
    if "" in globs:
        raise InvalidRequest("the name of a model is empty", hint="write a model, an alias or a glob", param="models")
    for glob in globs:
        if broken := broken_class(glob):
            hint = f"write the range of {broken} from its first sign to its last, as in [a-z]"
            raise InvalidRequest(f"the glob {glob!r} fits nothing", hint=hint, param="models")
    return globs


Amount = Annotated[int, msgspec.Meta(ge=1)]
Money = Annotated[float, msgspec.Meta(ge=0, le=1e9)]

_log = logging.getLogger("bardo.keys")


class KeyEntry(ThinkingRules, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """One `[[keys]]` table. `key_env` names the variable that holds the key: a key never stands in the file.

    `models` are globs, empty for all. `pipelines` are profiles of layers that its calls may name, `*` all. `operator`: it opens the whole
    panel, and chooses any profile. Budgets are US dollars, of days and months in UTC, and of each session that its calls name.
    `unknown_cost` is what `[budgets]` `unknown_cost` says, for this key.
    """

    id: str
    key_env: str
    tenant: str = ""
    models: tuple[str, ...] = ()
    pipelines: tuple[str, ...] = ()
    tags: tuple[str, ...] = ()
    expires: str = ""
    requests_per_minute: Amount | None = None
    tokens_per_minute: Amount | None = None
    concurrency: Amount | None = None
    usd_per_day: Money | None = None
    usd_per_month: Money | None = None
    usd_per_session: Money | None = None
    operator: bool = False
    unknown_cost: Literal["", "refuse", "estimate", "allow"] = ""


class ClientKeys:
    """The settings for the calls of each key. Keys are held as digests."""

    def __init__(self, entries: Iterable[KeyEntry] = (), environment: Mapping[str, str] | None = None) -> None:
        environment = os.environ if environment is None else environment
        self._rules: dict[bytes, tuple[ThinkingRules, ...]] = {}
        for entry in entries:
            key = environment.get(entry.key_env, "").strip()
            if key:
                self._rules[digest_of(key)] = (entry,)
            else:
                _log.warning("%s is not set: what [[keys]] %s says holds for nobody", entry.key_env, entry.id)

    def rules(self, key: str) -> tuple[ThinkingRules, ...]:
        """Return what holds for the calls of a key."""
        return self._rules.get(digest_of(key), ()) if self._rules and key else ()

    def rules_to_keep(self, key: str) -> tuple[ThinkingRules, ...]:
        """Return what holds for the calls of a key, for calls that are made later without it."""
        names = ThinkingRules.__struct_fields__
        return tuple([ThinkingRules(**{name: getattr(rule, name) for name in names}) for rule in self.rules(key)])


def account_of(entry: KeyEntry) -> Account:
    """Return the account of a key. Raises InvalidRequest for a value that makes no sense."""
    limits = KeyLimits(
        requests_per_minute=entry.requests_per_minute,
        tokens_per_minute=entry.tokens_per_minute,
        concurrency=entry.concurrency,
        usd_per_day=None if entry.usd_per_day is None else nanos_of_usd(entry.usd_per_day),
        usd_per_month=None if entry.usd_per_month is None else nanos_of_usd(entry.usd_per_month),
        usd_per_session=None if entry.usd_per_session is None else nanos_of_usd(entry.usd_per_session),
    )
    return Account(
        id=entry.id,
        name=entry.id,
        tenant=entry.tenant or entry.id,
        tags=entry.tags,
        models=checked_globs(entry.models),
        limits=limits,
        expires=time_of(entry.expires) if entry.expires else None,
        operator=entry.operator,
        unknown_cost=entry.unknown_cost,
    )


def keys_that_are_set(
    entries: Iterable[KeyEntry], environment: Mapping[str, str] | None = None
) -> list[tuple[str, KeyEntry]]:
    """Return the keys whose variable is set, each with its table."""
    environment = os.environ if environment is None else environment
    pairs = [(environment.get(entry.key_env, "").strip(), entry) for entry in entries]
    return [(key, entry) for key, entry in pairs if key]


def read_keys(tables: Sequence[Mapping[str, Any]], text: str, source: str) -> tuple[KeyEntry, ...]:
    """Return the `[[keys]]` of `text`, which is the file's. Raises ConfigError naming the line."""
    entries: list[KeyEntry] = []
    for index, table in enumerate(tables):
        place = Place(text, source, "keys", index)
        try:
            entry = msgspec.convert(table, KeyEntry)
        except msgspec.ValidationError as problem:
            raise explain(problem, place, KeyEntry.__struct_fields__, choices_of(KeyEntry)) from problem
        if not entry.key_env.isidentifier():
            hint = 'write the name of the variable that holds the key: key_env = "TEAM_KEY"'
            raise ConfigError(f"{place.of('key_env')}: key {entry.id!r} names no environment variable", hint=hint)
        _check_account(entry, place)
        if any(other.id == entry.id for other in entries):
            raise ConfigError(f"{place.of('id')}: a second key is called {entry.id!r}", hint="ids are unique")
        entries.append(entry)
    return tuple(entries)


def _check_account(entry: KeyEntry, place: Place) -> None:
    try:
        account_of(entry)
    except InvalidRequest as problem:
        raise ConfigError(f"{place.of(problem.param or 'id')}: {problem.message}", hint=problem.hint) from problem


def digest_of(key: str) -> bytes:
    """Return the digest that is stored for a key."""
    return hashlib.sha256(key.encode("utf-8", "replace")).digest()


UnknownCost = Literal["refuse", "estimate", "allow"]
"""Whether a key with a budget may ask a model without a price, and what such a call counts as."""


class BudgetSettings(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """How calls are counted against the limits and budgets of keys, and where.

    `store` is the address of Redis or Valkey where all gateways count what they lease of limits and budgets; empty is the database of
    `[state]`, where the keys are. `store_env` names the variable that holds it, for an address with a password.
    `unknown_cost`: whether keys with a budget may ask models without a price. With `refuse` they may not; with `estimate` such a call
    counts as what it would cost at `assumed_usd_per_million_input` and `assumed_usd_per_million_output` tokens; with `allow` (or
    `nothing`, its older name) it counts as nothing. A key may have its own. `assumed_output_tokens`: how long an answer is taken to be that
    has no bound in its request, or of which nothing came before its client left or its provider failed.
    `overrun`: whether an answer that goes on when the budget of its key is spent is brought to its end (`finish`), or ended with what came
    of it (`cut`). `spread_percent` is what keys are charged above the provider's cost: their budgets and what they are told they spent
    hold it, and the log keeps the provider's cost alone. `search_usd_per_day` is what the searches that providers run may cost in a day
    (UTC) with each key, and together without one; None: any amount.
    """

    store: str = ""
    store_env: str = ""
    unknown_cost: Literal["refuse", "estimate", "allow", "nothing"] = "refuse"
    assumed_usd_per_million_input: Annotated[float, msgspec.Meta(ge=0, le=1e6)] = 5.0
    assumed_usd_per_million_output: Annotated[float, msgspec.Meta(ge=0, le=1e6)] = 25.0
    assumed_output_tokens: Annotated[int, msgspec.Meta(ge=0)] = 1000
    overrun: Literal["finish", "cut"] = "finish"
    search_usd_per_day: Annotated[float, msgspec.Meta(ge=0)] | None = None
    spread_percent: Annotated[float, msgspec.Meta(ge=0, le=1000)] = 0.0

    def charged(self, nanos: int) -> int:
        """Return what a key is charged for a provider's cost, in nano-dollars: a part of one is a whole one (003, "Configuration")."""
        if not self.spread_percent:
            return nanos
        return ceil(nanos * (100 + Fraction(repr(self.spread_percent))) / 100)

    def rule(self, own: str) -> UnknownCost:
        """Return what holds for calls of unknown cost of a key whose own word is `own`, empty where it has none."""
        rule = own or self.unknown_cost
        return "allow" if rule == "nothing" else cast("UnknownCost", rule)

    def assumed_nanos(self, input_tokens: int, output_tokens: int) -> int:
        """Return what a call to a model without a price counts as, in nano-dollars."""
        by_input, by_output = self.assumed_usd_per_million_input, self.assumed_usd_per_million_output
        return round((input_tokens * by_input + output_tokens * by_output) * 1_000)


def check_budgets(budgets: BudgetSettings, place: Place) -> None:
    """Raise ConfigError for a store that limits are not counted in."""
    if budgets.store:
        check_limits_store(budgets.store, place)


def check_limits_store(store: str, place: Place) -> None:
    """Raise ConfigError for a place that is no address of Redis or Valkey."""
    if not store.startswith(REDIS):
        message = (
            f"{place.of('store')}: limits are counted in Redis or Valkey, or in the database of [state], and not there"
        )
        raise ConfigError(message, hint=f"write an address that begins with {', '.join(REDIS)}, or leave it empty")


Usd = Annotated[float, msgspec.Meta(ge=0, le=1_000_000)]

_VARIABLE = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")
_ADDRESS = re.compile(r"0x[0-9a-fA-F]{40}")
_SERVER = re.compile(r"https?://[^\s]+")


class PaymentSettings(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """The wallet that pays providers which ask for a payment of each call (x402), and what it may pay.

    `wallet_key_env` names the variable that holds its private key; empty: nothing is paid. `order` are the ways to pay, the first one that
    works is taken: `diem` is a provider's daily allocation, `wallet` a payment, `prepaid` the balance of an API key. Caps are US dollars;
    `tenants` and `subsystems` have daily caps by name. Only `recipients` are paid, in `assets` on `networks`. `most_of_estimate`: a call
    that costs more than so many times its estimate is not paid; 0 is no bound. `wait_seconds`: how long a call waits while another one
    pays for the same. `servers` are JSON-RPC addresses by network, which are asked what became of a payment.
    """

    wallet_key_env: str = ""
    order: tuple[Method, ...] = METHODS
    usd_per_call: Usd = 0.1
    usd_per_day: Usd = 5.0
    tenants: dict[str, Usd] = {}
    subsystems: dict[str, Usd] = {}
    recipients: tuple[str, ...] = ()
    networks: tuple[str, ...] = ("eip155:8453",)
    assets: tuple[str, ...] = ("USDC",)
    most_of_estimate: Annotated[float, msgspec.Meta(ge=0)] = 3.0
    wait_seconds: Annotated[float, msgspec.Meta(ge=0, le=600)] = 30.0
    servers: dict[str, str] = {}


def check_payments(settings: PaymentSettings, place: Place) -> None:
    """Raise ConfigError for a name of a variable, a recipient, a network, an asset or an address of a server that is none."""
    name = settings.wallet_key_env
    if name and (not _VARIABLE.fullmatch(name) or looks_like_key(name) or len(name) > 60):
        message = f"{place.of('wallet_key_env')}: wallet_key_env is not the name of an environment variable"
        raise ConfigError(message, hint='keep the key in a variable and name it: wallet_key_env = "WALLET_KEY"')
    for recipient in settings.recipients:
        if not _ADDRESS.fullmatch(recipient):
            hint = "write addresses as 0x and 40 hexadecimal digits"
            raise ConfigError(f"{place.of('recipients')}: {recipient!r} is no address", hint=hint)
    _check_known(settings.networks, {asset.network: asset.title for asset in payment_assets()}, "networks", place)
    _check_known(settings.servers, {asset.network: asset.title for asset in payment_assets()}, "servers", place)
    _check_known(settings.assets, {asset.symbol: asset.symbol for asset in payment_assets()}, "assets", place)
    for network, address in settings.servers.items():
        if not _SERVER.fullmatch(address):
            hint = "write the address of a server that speaks JSON-RPC: https://…"
            raise ConfigError(f"{place.of('servers')}: the server of {network} has no address", hint=hint)


def _check_known(names: tuple[str, ...] | Mapping[str, str], titles: Mapping[str, str], key: str, place: Place) -> None:
    for name in names:
        if name not in titles:
            listed = ", ".join(f"{name} ({title})" if name != title else name for name, title in titles.items())
            raise ConfigError(f"{place.of(key)}: bardo cannot pay with {name!r}", hint=f"there are: {listed}")


def rules_of(settings: PaymentSettings) -> PaymentRules:
    """Return what may be paid, with caps in nano-dollars."""
    return PaymentRules(
        per_call=nanos_of(settings.usd_per_call),
        per_day=nanos_of(settings.usd_per_day),
        recipients=frozenset(address.lower() for address in settings.recipients),
        networks=frozenset(settings.networks),
        symbols=frozenset(settings.assets),
        tenants={name: nanos_of(usd) for name, usd in settings.tenants.items()},
        subsystems={name: nanos_of(usd) for name, usd in settings.subsystems.items()},
        over_estimate=settings.most_of_estimate,
    )
