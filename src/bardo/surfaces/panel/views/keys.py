"""The keys page: what each key of a client may do and how much it used. Operators make, change and revoke keys; others see their own.

No page shows a key but the one that made it.
"""

from __future__ import annotations

import asyncio
import re
from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, TypeVar
from urllib.parse import quote

import msgspec

from bardo.accounting.limits import KeyLimits, LimitName
from bardo.adapters.config.accounts import Account, checked_globs, expiry_of, nanos_of_usd
from bardo.adapters.config.settings import state_path
from bardo.adapters.stores.log import CallSums, CostGroup, LogReader
from bardo.adapters.stores.log.rollup import SECONDS_PER_DAY, Dimension, day_of
from bardo.services.accounts.usage import KeyUsage, ModelUsage
from bardo.surfaces.panel.cost_tables import exact_text
from bardo.surfaces.panel.pages import Page, PanelRequest, Redirect
from bardo.surfaces.panel.tables import Cell, Head, Table, paged
from bardo.surfaces.render.client_keys import limits_text, time_text
from bardo.surfaces.render.costs import day_text
from bardo.surfaces.render.wording import count
from bardo.values.errors import Forbidden, InvalidRequest, UnknownRoute, Unsupported
from bardo.values.usage import exact_dollars

if TYPE_CHECKING:
    from bardo.services.accounts.access_keys import NewKey
    from bardo.surfaces.panel.panel import Panel

COUNTS = ("requests_per_minute", "tokens_per_minute", "concurrency")
MONEY = ("usd_per_day", "usd_per_month", "usd_per_session")
LIMIT_WORDS = {
    "requests_per_minute": "Calls per minute",
    "tokens_per_minute": "Tokens per minute",
    "concurrency": "Calls at a time",
    "usd_per_day": "US dollars per day (UTC)",
    "usd_per_month": "US dollars per month (UTC)",
    "usd_per_session": "US dollars per session",
}
_LONGEST = {"name": 200, "tenant": 200, "models": 10_000, "tags": 2_000}
_MOST_DIGITS = 15
_BETWEEN = re.compile(r"[,\s]+")
Read = TypeVar("Read")


def account_of_form(form: Mapping[str, str], now: float) -> Account:
    """Return the account that a form describes, without an id. Raises InvalidRequest that names the field."""
    name = _text(form, "name")
    if not name:
        raise InvalidRequest("a key needs a name", hint="write whom it is for", param="name")
    return Account(
        id="",
        name=name,
        tenant=_text(form, "tenant"),
        tags=_word_list(form, "tags"),
        models=_parse_field("models", lambda: checked_globs(_word_list(form, "models"))),
        limits=KeyLimits(**limits_of_form(form)),
        created=now,
        expires=expiry_of_form(form, now),
        operator=form.get("operator") == "yes",
    )


def limits_of_form(form: Mapping[str, str]) -> dict[str, int | None]:
    """Return every limit of a form; one that is left empty is none."""
    counts = {name: _count(form, name) for name in COUNTS}
    money = {name: _money(form, name) for name in MONEY}
    return {**counts, **money}


def fields_of_form(form: Mapping[str, str], now: float) -> dict[str, Any]:
    """Return what else of a key can be changed later: the models that it may ask, and when it ends."""
    models = _parse_field("models", lambda: checked_globs(_word_list(form, "models")))
    return {"models": models, "expires": expiry_of_form(form, now)}


def expiry_of_form(form: Mapping[str, str], now: float) -> float | None:
    """Return when a key ends, by `90d`, `12h` or a day, or None if nothing is said."""
    text = form.get("expires", "").strip()
    return _parse_field("expires", lambda: expiry_of(text, now)) if text else None


def form_of_account(account: Account) -> dict[str, str]:
    """Return the fields of the form that mean what a key may do now."""
    limits: dict[str, str] = {
        name: "" if value is None else exact_dollars(value) if name in MONEY else str(value)
        for name, value in account.limits.named()
    }
    return {**limits, "models": "\n".join(account.models), "expires": time_text(account.expires) or ""}


def _text(form: Mapping[str, str], name: str) -> str:
    text = form.get(name, "").strip()
    if len(text) > _LONGEST[name]:
        raise InvalidRequest(f"this is longer than {_LONGEST[name]:,} characters", hint="make it shorter", param=name)
    return text


def _word_list(form: Mapping[str, str], name: str) -> tuple[str, ...]:
    return tuple(dict.fromkeys(word for word in _BETWEEN.split(_text(form, name)) if word))


def _count(form: Mapping[str, str], name: str) -> int | None:
    text = form.get(name, "").strip().replace(",", "")
    if not text:
        return None
    if not (text.isascii() and text.isdecimal() and len(text) <= _MOST_DIGITS and int(text) > 0):
        raise InvalidRequest(f"{text[:40]!r} is no number from 1", hint="leave it empty for no limit", param=name)
    return int(text)


def _money(form: Mapping[str, str], name: str) -> int | None:
    text = form.get(name, "").strip().removeprefix("$").replace(",", "")
    return _parse_field(name, lambda: nanos_of_usd(text)) if text else None


def _parse_field(name: str, read: Callable[[], Read]) -> Read:
    """Return what `read` does; its error names the field."""
    try:
        return read()
    except InvalidRequest as problem:
        raise InvalidRequest(problem.message, hint=problem.hint, param=name) from problem


_BADGES = {"active": "ok", "expired": "warn", "revoked": "bad"}


class KeySpending(msgspec.Struct, frozen=True, kw_only=True):
    """The sums of a key's calls, and the nano-dollars that the key is charged for those of known cost."""

    sums: CallSums
    charged: int


NOTHING_SPENT = KeySpending(sums=CallSums(), charged=0)


class LimitUse(msgspec.Struct, frozen=True, kw_only=True):
    """One limit of a key: what it is, how much is used of it, in numbers and in words, and when it resets."""

    name: str
    used: int
    limit: int
    words: str
    resets: str = ""


def key_address(own_id: str) -> str:
    """Return where the page of a key is."""
    return f"/panel/keys/{quote(own_id, safe='')}"


def state_cell(account: Account, now: float) -> Cell:
    """Return whether a key is active, and until when."""
    state = account.state(now)
    until = f"until {time_text(account.expires)}" if state == "active" and account.expires is not None else ""
    return Cell(state, badge=_BADGES[state], below=until)


def keys_table(
    accounts: Sequence[Account],
    today: Mapping[str, KeySpending],
    month: Mapping[str, KeySpending],
    usages: Mapping[str, KeyUsage],
    now: float,
) -> Table:
    """Return a row for each key: its limits and what it spent. `usages` are the figures of keys with a budget."""
    return Table(
        name="keys",
        caption="Client keys",
        heads=(Head("key", wrap=True), Head("state"), Head("models", wrap=True), Head("limits", wrap=True),
               Head("calls this month", number=True), Head("spent today", number=True), Head("spent this month", number=True),
               Head("tags", wrap=True)),
        rows=tuple(
            _row(key, today.get(key.id, NOTHING_SPENT), month.get(key.id, NOTHING_SPENT), usages.get(key.id, KeyUsage(account=key)), now)
            for key in accounts
        ),
        empty="There are no keys: this gateway answers every client that can reach it.",
    )  # fmt: skip


def _row(
    account: Account, today: KeySpending, month: KeySpending, usage: KeyUsage, now: float
) -> tuple[Cell | str, ...]:
    below = ", ".join(filter(None, [account.id if account.name else "", "operator" if account.operator else ""]))
    return (
        Cell(account.name or account.id, href=key_address(account.id), below=below),
        state_cell(account, now),
        ", ".join(account.models) or "all",
        limits_text(account) or "none",
        count(month.sums.calls),
        _spent_cell(today, usage.reserved("usd_per_day")),
        _spent_cell(month, usage.reserved("usd_per_month")),
        ", ".join(account.tags),
    )


def spent_text(spending: KeySpending, reserved: int = 0) -> tuple[str, str]:
    """Return what a key is charged for calls, and in words their cost where it is another amount, how many are of unknown cost, and what
    is `reserved` for calls besides.
    """
    sums = spending.sums
    unknown, estimated = sums.calls - sums.cost_known, sums.estimated_nanos != 0
    held = f"and {exact_text(reserved)} reserved" if reserved else ""
    if sums.calls and not sums.cost_known:
        return "unknown", ", ".join(filter(None, [f"{unknown:,} calls", held]))
    differs = spending.charged != sums.cost_nanos
    cost = f"cost {exact_text(sums.cost_nanos, estimated=estimated)}" if differs else ""
    others = f"and {unknown:,} of unknown cost" if unknown else ""
    return exact_text(spending.charged, estimated=estimated), ", ".join(filter(None, [cost, others, held]))


def _spent_cell(spending: KeySpending, reserved: int = 0) -> Cell:
    text, below = spent_text(spending, reserved)
    return Cell(text, below=below)


def limit_uses(usage: KeyUsage) -> list[LimitUse]:
    """Return how much is used of each limit of a key."""
    resets = {name: one.get("resets_at", "") for name, one in usage.fields()["limits"].items()}
    return [
        _limit_use(name, limit, usage, str(resets.get(name, "")))
        for name, limit in usage.account.limits.named()
        if limit is not None and name != "usd_per_session"
    ]


def _limit_use(name: LimitName, limit: int, usage: KeyUsage, resets: str) -> LimitUse:
    used = usage.used.total(name, usage.now)
    write = exact_text if name in MONEY else count
    reserved = usage.reserved(name) if name in MONEY else 0
    parts = f" ({write(used - reserved)} spent, {write(reserved)} reserved)" if reserved else ""
    words = f"{write(used)}{parts} of {write(limit)}, {write(max(0, limit - used))} left"
    return LimitUse(name=LIMIT_WORDS[name], used=used, limit=limit, words=words, resets=resets)


def models_table(models: Sequence[ModelUsage]) -> Table:
    """Return the calls of a key this month by model, the costliest first, with what is charged for them where that is not their cost."""
    spread = any(model.charged != model.nanos for model in models)
    return Table(
        name="models",
        caption="Calls this month (UTC) by model",
        heads=(Head("model", wrap=True), Head("provider", wrap=True), Head("calls", number=True), Head("failed", number=True),
               Head("input", number=True), Head("output", number=True), *([Head("charged", number=True)] if spread else []),
               Head("cost", number=True), Head("")),
        rows=tuple((model.model or "–", model.provider or "none", *_numbers([model], spread=spread)) for model in models),
        foot=("total", "", *_numbers(models, spread=spread)) if models else (),
        empty="No calls this month.",
    )  # fmt: skip


def _numbers(models: Sequence[ModelUsage], *, spread: bool) -> tuple[str, ...]:
    unknown = sum(model.calls - model.cost_known for model in models)
    known = any(model.cost_known for model in models)
    estimated = any(model.estimated_nanos for model in models)
    amounts = (*([sum(model.charged for model in models)] if spread else []), sum(model.nanos for model in models))
    return (
        count(sum(model.calls for model in models)),
        count(sum(model.failed for model in models)),
        count(sum(model.input_tokens for model in models)),
        count(sum(model.output_tokens for model in models)),
        *[exact_text(nanos, estimated=estimated) if known else "unknown" for nanos in amounts],
        f"{unknown:,} of unknown cost" if unknown and known else "",
    )


_PATH = "/panel/keys"


async def show(panel: Panel, request: PanelRequest) -> Page | Redirect:
    """Return the list of keys, and the new key where a form was sent; whoever is no operator is shown their own key."""
    viewer = request.viewer
    if not viewer.operator:
        return Redirect(key_address(viewer.account.id if viewer.account is not None else ""))
    if request.method != "POST":
        return await _list(panel, request, {}, None)
    try:
        account = account_of_form(request.form, panel.context.services.clock())
        if account.has_budget:
            _check_log(panel)
    except InvalidRequest as problem:
        return await _list(panel, request, request.form, problem)
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
    accounts, now = panel.context.accounts, panel.context.services.clock()
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
    for group in groups:
        key, charged = str(group.of["key"]), charge(group.sums.cost_nanos)
        if (known := found.get(key)) is not None:
            group.sums.add(known.sums)
            charged += known.charged
        found[key] = KeySpending(sums=group.sums, charged=charged)
    return found


def _create(panel: Panel, account: Account) -> tuple[Account, NewKey]:
    from bardo.services.accounts.key_store import opened_keys

    with opened_keys(state_path(panel.settings, panel.environment)) as store:
        return store.create(account, own_name=True)


async def _change(panel: Panel, request: PanelRequest, account: Account) -> None:
    """Do what a form asks for. Raises InvalidRequest."""
    accounts, form, now = panel.context.accounts, request.form, panel.context.services.clock()
    if accounts is None or not accounts.is_stored(account.id):
        raise InvalidRequest("this key is one of the configuration", hint="change it under [[keys]]", param="action")
    if form.get("action") == "revoke":
        if request.form.get("sure") != "yes":
            raise InvalidRequest("a revoked key is refused for good", hint="say that you are sure", param="sure")
        viewer = request.viewer.account
        if viewer is not None and viewer.id == account.id:
            hint = "sign in with another operator's key, or use `bardo keys revoke`"
            raise InvalidRequest("this is the key that you are signed in with", hint=hint, param="sure")
        await asyncio.to_thread(_store_change, panel, account.id, {}, {"revoked": now})
    else:
        limits, fields = limits_of_form(form), fields_of_form(form, now)
        if any(limits[name] is not None for name in MONEY):
            _check_log(panel)
        await asyncio.to_thread(_store_change, panel, account.id, limits, fields)
    await accounts.refresh()


def _store_change(panel: Panel, own_id: str, limits: Mapping[str, int | None], fields: Mapping[str, Any]) -> None:
    from bardo.services.accounts.key_store import opened_keys

    with opened_keys(state_path(panel.settings, panel.environment)) as store:
        store.change(own_id, limits, **fields)


def _check_log(panel: Panel) -> None:
    if not panel.settings.log.enabled:
        hint = "set enabled = true under [log], or leave it empty"
        raise InvalidRequest("the log is off, so that nobody knows what is spent", hint=hint, param="usd_per_day")


async def _page(
    panel: Panel, request: PanelRequest, account: Account, form: Mapping[str, str], problem: InvalidRequest | None
) -> Page:
    accounts, now = panel.context.accounts, panel.context.services.clock()
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
