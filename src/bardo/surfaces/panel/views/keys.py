"""Keys of clients: what each may do and what it used. An operator makes, changes and revokes them; others see their own."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from bardo.adapters.config.accounts import Account
from bardo.adapters.config.settings import state_path
from bardo.adapters.stores.log import CostGroup, LogReader
from bardo.adapters.stores.log.rollup import SECONDS_PER_DAY, Dimension, day_of
from bardo.surfaces.panel.key_forms import (
    LIMIT_WORDS,
    MONEY,
    account_of_form,
    fields_of_form,
    form_of_account,
    limits_of_form,
)
from bardo.surfaces.panel.key_tables import (
    NOTHING_SPENT,
    KeySpending,
    key_address,
    keys_table,
    limit_uses,
    models_table,
    spent_text,
    state_cell,
)
from bardo.surfaces.panel.pages import Page, PanelRequest, Redirect
from bardo.surfaces.panel.periods import day_text
from bardo.surfaces.panel.tables import paged
from bardo.surfaces.render.client_keys import limits_text, time_text
from bardo.values.errors import Forbidden, InvalidRequest, UnknownRoute, Unsupported

if TYPE_CHECKING:
    from bardo.services.accounts.access_keys import NewKey
    from bardo.surfaces.panel.panel import Panel

_PATH = "/panel/keys"


async def show(panel: Panel, request: PanelRequest) -> Page | Redirect:
    """Return the list of keys, and the new key where a form was sent; whoever is no operator is shown their own key."""
    viewer = request.viewer
    if not viewer.operator:
        return Redirect(key_address(viewer.account.id if viewer.account is not None else ""))
    if request.method != "POST":
        return await _list(panel, request, {}, None)
    try:
        account = account_of_form(request.form, panel.context.runner.clock())
        _check_budget(panel, account)
    except InvalidRequest as problem:
        return await _list(panel, request, request.form, problem)
    return await _created(panel, account)


async def show_key(panel: Panel, request: PanelRequest) -> Page | Redirect:
    """Return the page of one key, or change it. Raises UnknownRoute for a key that is not there, and for another one's."""
    viewer, accounts = request.viewer, panel.context.accounts
    own_id = request.parameters["key"]
    account = None if accounts is None else next((one for one in accounts.known if one.id == own_id), None)
    if account is None or (viewer.key_id is not None and viewer.key_id != account.id):
        raise UnknownRoute("there is no such key, or it is another one's", hint="use the navigation")
    if request.method != "POST":
        return await _page(panel, request, account, form_of_account(account), None)
    if not viewer.operator:
        raise Forbidden("keys are changed by operators", hint="ask whoever runs this gateway")
    try:
        await _change(panel, request, account)
    except InvalidRequest as problem:
        return await _page(panel, request, account, {**form_of_account(account), **request.form}, problem)
    return Redirect(key_address(account.id))


async def _list(panel: Panel, request: PanelRequest, form: Mapping[str, str], problem: InvalidRequest | None) -> Page:
    accounts, now = panel.context.accounts, panel.context.runner.clock()
    known = [] if accounts is None else sorted(accounts.known, key=lambda one: one.state(now) != "active")
    shown, pager = paged(known, _PATH, request.query)
    today, month = await _spent_by_key(panel, now)
    usages = {one.id: await accounts.usage(one) for one in shown if one.has_budget} if accounts is not None else {}
    values = {
        **_form_values(form, problem),
        "table": keys_table(shown, today, month, usages, now),
        "pager": pager,
        "first": accounts is None,
        "has_log": panel.settings.log.enabled,
    }
    return Page("keys.html", "Keys", values, status=200 if problem is None else problem.status)


def _form_values(form: Mapping[str, str], problem: InvalidRequest | None) -> dict[str, Any]:
    field = "" if problem is None else problem.param or "name"
    return {"form": form, "problem": problem, "field": field, "limits": list(LIMIT_WORDS.items()), "money": MONEY}


async def _spent_by_key(panel: Panel, now: float) -> tuple[Mapping[str, KeySpending], Mapping[str, KeySpending]]:
    """Return what was spent today and this month by key; nothing where no log is kept."""
    today = day_of(now)
    first = today - int(day_text(today)[8:]) + 1

    def read(log: LogReader) -> list[Sequence[CostGroup]]:
        # By model, as each model's sum is charged: a part of a nano-dollar is rounded up there.
        by: tuple[Dimension, ...] = ("key", "provider", "model")
        return [log.costs(by, since=float(day * SECONDS_PER_DAY)) for day in (today, first)]

    try:
        found = await panel.read_log(read)
    except Unsupported:
        return {}, {}
    of_today, of_month = (_by_key(groups, panel.settings.budgets.charged) for groups in found)
    return of_today, of_month


def _by_key(groups: Sequence[CostGroup], charge: Callable[[int], int]) -> Mapping[str, KeySpending]:
    found: dict[str, KeySpending] = {}
    for one in groups:
        key, charged = str(one.of["key"]), charge(one.sums.cost_nanos)
        if (known := found.get(key)) is not None:
            one.sums.add(known.sums)
            charged += known.charged
        found[key] = KeySpending(sums=one.sums, charged=charged)
    return found


async def _created(panel: Panel, account: Account) -> Page:
    made, key = await asyncio.to_thread(_create, panel, account)
    accounts = panel.context.accounts
    if accounts is not None:
        await accounts.refresh()
    values = {
        "key": key.text,
        "account": made,
        "limits": limits_text(made) or "no limits",
        "known": accounts is not None and accounts.has_store,
        "address": key_address(made.id),
    }
    return Page("key_created.html", "A new key", values)


def _create(panel: Panel, account: Account) -> tuple[Account, NewKey]:
    from bardo.services.accounts.key_store import opened_keys

    with opened_keys(state_path(panel.settings, panel.environment)) as store:
        return store.create(account, own_name=True)


async def _change(panel: Panel, request: PanelRequest, account: Account) -> None:
    """Do what a form asks for. Raises InvalidRequest."""
    accounts, form, now = panel.context.accounts, request.form, panel.context.runner.clock()
    if accounts is None or not accounts.is_stored(account.id):
        raise InvalidRequest("this key is one of the configuration", hint="change it under [[keys]]", param="action")
    if form.get("action") == "revoke":
        _check_revocation(request, account)
        await asyncio.to_thread(_store_change, panel, account.id, {}, {"revoked": now})
    else:
        limits, fields = limits_of_form(form), fields_of_form(form, now)
        if any(limits[name] is not None for name in MONEY):
            _check_log(panel)
        await asyncio.to_thread(_store_change, panel, account.id, limits, fields)
    await accounts.refresh()


def _check_revocation(request: PanelRequest, account: Account) -> None:
    if request.form.get("sure") != "yes":
        raise InvalidRequest("a revoked key is refused for good", hint="say that you are sure", param="sure")
    viewer = request.viewer.account
    if viewer is not None and viewer.id == account.id:
        hint = "sign in with another operator's key, or use `bardo keys revoke`"
        raise InvalidRequest("this is the key that you are signed in with", hint=hint, param="sure")


def _store_change(panel: Panel, own_id: str, limits: Mapping[str, int | None], fields: Mapping[str, Any]) -> None:
    from bardo.services.accounts.key_store import opened_keys

    with opened_keys(state_path(panel.settings, panel.environment)) as store:
        store.change(own_id, limits, **fields)


def _check_budget(panel: Panel, account: Account) -> None:
    if account.has_budget:
        _check_log(panel)


def _check_log(panel: Panel) -> None:
    if not panel.settings.log.enabled:
        hint = "set enabled = true under [log], or leave it empty"
        raise InvalidRequest("the log is off, so that nobody knows what is spent", hint=hint, param="usd_per_day")


async def _page(
    panel: Panel, request: PanelRequest, account: Account, form: Mapping[str, str], problem: InvalidRequest | None
) -> Page:
    accounts, now = panel.context.accounts, panel.context.runner.clock()
    assert accounts is not None
    usage = await accounts.usage(account)
    today, month = (found.get(account.id, NOTHING_SPENT) for found in await _spent_by_key(panel, now))
    values = {
        **_form_values(form, problem),
        "account": account,
        "state": state_cell(account, now),
        "about": _key_facts(account, stored=accounts.is_stored(account.id)),
        "figures": [
            ("Spent today (UTC)", *spent_text(today, usage.reserved("usd_per_day"))),
            ("Spent this month (UTC)", *spent_text(month, usage.reserved("usd_per_month"))),
        ],
        "uses": limit_uses(usage),
        "table": models_table(usage.models),
        "stored": accounts.is_stored(account.id),
        "own": request.viewer.account is not None and request.viewer.account.id == account.id,
    }
    title = f"Key {account.name or account.id}"
    return Page("key.html", title, values, status=200 if problem is None else problem.status)


def _key_facts(account: Account, *, stored: bool) -> list[tuple[str, str]]:
    return [
        ("id", account.id),
        ("models", ", ".join(account.models) or "all"),
        ("limits", limits_text(account) or "none"),
        ("tags", ", ".join(account.tags) or "none"),
        ("made", time_text(account.created) or "" if stored else "in bardo.toml"),
        ("ends", time_text(account.expires) or "never"),
        ("sees in the panel", "the calls of all keys" if account.operator else "its own calls"),
    ]
