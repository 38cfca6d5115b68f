"""`bardo keys`: give out keys for clients, list, limit, revoke and delete them."""

from __future__ import annotations

import shlex
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from bardo.accounting.limits import KeyLimits
from bardo.adapters.config.accounts import Account, checked_globs, expiry_of, keys_that_are_set, nanos_of_usd
from bardo.adapters.config.settings import load_settings, state_path
from bardo.surfaces.cli.groups import CommandGroup
from bardo.surfaces.cli.options import AsJson, Config
from bardo.surfaces.render.client_keys import account_fields, limits_text, time_text
from bardo.surfaces.render.console import print_stderr, show, show_json, show_text
from bardo.values.errors import InvalidRequest

if TYPE_CHECKING:
    from bardo.services.accounts.key_store import KeyStore

_NAMES = ("requests_per_minute", "tokens_per_minute", "concurrency", "usd_per_day", "usd_per_month", "usd_per_session")

Models = Annotated[
    list[str] | None, typer.Option("--model", metavar="GLOB", help="A model it may ask; several times; all.")
]
Requests = Annotated[int | None, typer.Option("--requests-per-minute", min=1, metavar="N", help="Calls per minute.")]
Tokens = Annotated[int | None, typer.Option("--tokens-per-minute", min=1, metavar="N", help="Tokens per minute.")]
Concurrency = Annotated[int | None, typer.Option("--concurrency", min=1, metavar="N", help="Calls at a time.")]
PerDay = Annotated[str | None, typer.Option("--usd-per-day", metavar="USD", help="Budget of a day (UTC).")]
PerMonth = Annotated[str | None, typer.Option("--usd-per-month", metavar="USD", help="Budget of a month (UTC).")]
PerSession = Annotated[
    str | None, typer.Option("--usd-per-session", metavar="USD", help="Budget of each session that its calls name.")
]
Expires = Annotated[str | None, typer.Option("--expires", metavar="TIME", help="12h, 90d, or 2027-01-31.")]


class UnknownCost(StrEnum):
    """Whether a key with a budget may ask models without a price."""

    REFUSE = "refuse"
    ESTIMATE = "estimate"
    ALLOW = "allow"


Unknown = Annotated[
    UnknownCost | None,
    typer.Option(
        "--unknown-cost", help="Whether it may ask models without a price, under a budget; as [budgets] says."
    ),
]
Tags = Annotated[
    list[str] | None, typer.Option("--tag", metavar="TAG", help="Stands with its calls in the log; several times.")
]
Key = Annotated[str, typer.Argument(metavar="KEY", help="Its id or its name, as `bardo keys list` shows them.")]


def register(app: typer.Typer) -> None:
    """Add the commands."""
    keys = typer.Typer(cls=CommandGroup, no_args_is_help=True, rich_markup_mode=None)
    keys.callback(epilog="Example: bardo keys create team --usd-per-day 5")(_keys)
    keys.command("create", epilog="Example: bardo keys create team --usd-per-day 5 --concurrency 4")(create)
    keys.command("list", epilog="Example: bardo keys list --json")(list_keys)
    keys.command("revoke", epilog="Example: bardo keys revoke team")(revoke)
    keys.command("delete", epilog="Example: bardo keys delete team")(delete)
    keys.command("limit", epilog="Example: bardo keys limit team --concurrency 4 --remove usd-per-day")(limit)
    app.add_typer(keys, name="keys")


def _keys() -> None:
    """Create, list, limit, revoke and delete client keys."""


def create(
    name: Annotated[str, typer.Argument(help="Any name, for people; each key has its own.")] = "",
    models: Models = None,
    requests_per_minute: Requests = None,
    tokens_per_minute: Tokens = None,
    concurrency: Concurrency = None,
    usd_per_day: PerDay = None,
    usd_per_month: PerMonth = None,
    usd_per_session: PerSession = None,
    expires: Expires = None,
    tags: Tags = None,
    tenant: Annotated[str, typer.Option(help="Keys of one tenant may go on from each other's replies; its id.")] = "",
    operator: Annotated[bool, typer.Option("--operator", help="It shows the calls of all keys in the panel.")] = False,
    unknown_cost: Unknown = None,
    config: Config = None,
    as_json: AsJson = False,
) -> None:
    """Create a key and show it once: only a digest is stored.

    From its next start a gateway with keys answers nobody without one.
    """
    now = time.time()
    name = name.strip() or _asked_name()
    budgets = (usd_per_day, usd_per_month, usd_per_session)
    changes = _named_limits(requests_per_minute, tokens_per_minute, concurrency, *budgets)
    account = Account(
        id="",
        name=name,
        tenant=tenant.strip(),
        tags=tuple(tags or ()),
        models=checked_globs(models or ()),
        limits=KeyLimits(**changes),
        created=now,
        expires=None if expires is None else expiry_of(expires, now),
        operator=operator,
        unknown_cost="" if unknown_cost is None else unknown_cost.value,
    )
    with _store(config) as (store, is_first):
        made, key = store.create(account, own_name=True)
    if as_json:
        show_json({"key": key.text, **account_fields(made, now)})
        return
    print_stderr(f"the key {made.id} is shown this once: keep it where secrets are kept")
    show_text(key.text)
    if is_first:
        print_stderr("this is the first key: from its next start the gateway answers only who sends a key")
        print_stderr(f"`bardo keys delete {shlex.quote(name)}` undoes that")


def list_keys(config: Config = None, as_json: AsJson = False) -> None:
    """List the keys, without the keys themselves."""
    now = time.time()
    with _store(config) as (store, _):
        accounts = [known.account for known in store.load()[1]]
    if as_json:
        show_json({"keys": [account_fields(account, now) for account in accounts]})
        return
    if not accounts:
        print_stderr("no keys: make one with `bardo keys create NAME`")
        return
    from bardo.surfaces.render.tables import Column, table

    heads = ("id", "name", "state", "models", "limits", "tags")
    show(
        table(
            [Column(head, wrap=head in ("models", "limits", "tags"), keep=head in ("id", "name")) for head in heads],
            [_row(account, now) for account in accounts],
        )
    )


def revoke(key: Key, config: Config = None, as_json: AsJson = False) -> None:
    """Revoke a key: running gateways refuse it within a few seconds, for good."""
    now = time.time()
    with _store(config) as (store, _):
        changed = store.change(key, {}, revoked=now)
    _show_changed(changed, f"the key {changed.id} is revoked", as_json=as_json)


def delete(key: Key, config: Config = None, as_json: AsJson = False) -> None:
    """Delete a key and its limits: running gateways refuse it within a few seconds. Its calls stay in the log."""
    with _store(config) as (store, _):
        gone = store.delete(key)
        left = [known.account for known in store.load()[1]]
    _show_changed(gone, f"the key {gone.id} is deleted", as_json=as_json)
    if not left and not keys_that_are_set(load_settings(config).keys):
        print_stderr("no key is left: from its next start the gateway asks nobody for one")
    elif not any(one.state(time.time()) == "active" for one in left) and not as_json:
        print_stderr("no key that is left is active: `bardo keys create NAME` makes one, `bardo keys list` shows them")


def limit(
    key: Key,
    models: Models = None,
    requests_per_minute: Requests = None,
    tokens_per_minute: Tokens = None,
    concurrency: Concurrency = None,
    usd_per_day: PerDay = None,
    usd_per_month: PerMonth = None,
    usd_per_session: PerSession = None,
    expires: Expires = None,
    unknown_cost: Unknown = None,
    remove: Annotated[
        list[str] | None, typer.Option(metavar="LIMIT", help="A limit to take away, models and expires too.")
    ] = None,
    config: Config = None,
    as_json: AsJson = False,
) -> None:
    """Change the limits of a key; other limits stay as they are."""
    budgets = (usd_per_day, usd_per_month, usd_per_session)
    changes = _named_limits(requests_per_minute, tokens_per_minute, concurrency, *budgets)
    fields: dict[str, Any] = {}
    for name in remove or ():
        _remove(name.replace("-", "_"), changes, fields)
    if models:
        fields["models"] = checked_globs(models)
    if expires is not None:
        fields["expires"] = expiry_of(expires, time.time())
    if unknown_cost is not None:
        fields["unknown_cost"] = unknown_cost.value
    if not changes and not fields:
        raise InvalidRequest("nothing is to be changed", hint="name a limit: bardo keys limit KEY --usd-per-day 5")
    with _store(config) as (store, _):
        changed = store.change(key, changes, **fields)
    _show_changed(changed, f"the key {changed.id}: {limits_text(changed) or 'no limits'}", as_json=as_json)


def _remove(name: str, changes: dict[str, Any], fields: dict[str, Any]) -> None:
    if name in _NAMES:
        changes[name] = None
    elif name in ("models", "expires"):
        fields[name] = () if name == "models" else None
    else:
        known = ", ".join(one.replace("_", "-") for one in (*_NAMES, "models", "expires"))
        raise InvalidRequest(f"there is no limit {name!r} to take away", hint=f"use one of {known}")


def _named_limits(
    requests: int | None, tokens: int | None, concurrency: int | None, *budgets: str | None
) -> dict[str, Any]:
    """Return the limits that were named."""
    money = [None if budget is None else nanos_of_usd(budget) for budget in budgets]
    named = zip(_NAMES, (requests, tokens, concurrency, *money), strict=True)
    return {name: value for name, value in named if value is not None}


def _asked_name() -> str:
    """Return the name that a person types. Raises InvalidRequest where nobody does."""
    hint = "name whom it is for: bardo keys create team"
    if not sys.stdin.isatty():
        raise InvalidRequest("a key needs a name", hint=hint)
    print_stderr("from its next start a gateway with keys answers nobody without one")
    name = str(typer.prompt("Whom is the key for? Its name", default="", show_default=False, err=True)).strip()
    if not name:
        raise InvalidRequest("no key was made: it needs a name", hint=hint)
    return name


@contextmanager
def _store(config: Path | None) -> Iterator[tuple[KeyStore, bool]]:
    """Open the keys, and say whether there are none yet."""
    from bardo.services.accounts.key_store import opened_keys

    with opened_keys(state_path(load_settings(config))) as store:
        yield store, store.revision() == 0


def _show_changed(account: Account, text: str, *, as_json: bool) -> None:
    if as_json:
        show_json(account_fields(account, time.time()))
    else:
        print_stderr(text)


def _row(account: Account, now: float) -> tuple[str, ...]:
    state = account.state(now)
    if state == "active" and account.expires is not None:
        state = f"until {time_text(account.expires)}"
    models = ", ".join(account.models) or "all"
    return account.id, account.name, state, models, limits_text(account), ", ".join(account.tags)
