"""Keys of clients as tables of a page: what each may do, and what it used. No page shows a key but the one that made it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from urllib.parse import quote

import msgspec

from bardo.accounting.limits import LimitName
from bardo.adapters.config.accounts import Account
from bardo.adapters.stores.log import CallSums
from bardo.services.accounts.usage import KeyUsage, ModelUsage
from bardo.surfaces.panel.cost_tables import exact_text
from bardo.surfaces.panel.key_forms import LIMIT_WORDS, MONEY
from bardo.surfaces.panel.tables import Cell, Head, Table
from bardo.surfaces.render.client_keys import limits_text, time_text
from bardo.surfaces.render.wording import count

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
            _row(one, today.get(one.id, NOTHING_SPENT), month.get(one.id, NOTHING_SPENT), usages.get(one.id, KeyUsage(account=one)), now)
            for one in accounts
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
        if limit is not None
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
    spread = any(one.charged != one.nanos for one in models)
    return Table(
        name="models",
        caption="Calls this month (UTC) by model",
        heads=(Head("model", wrap=True), Head("provider", wrap=True), Head("calls", number=True), Head("failed", number=True),
               Head("input", number=True), Head("output", number=True), *([Head("charged", number=True)] if spread else []),
               Head("cost", number=True), Head("")),
        rows=tuple((one.model or "–", one.provider or "none", *_numbers([one], spread=spread)) for one in models),
        foot=("total", "", *_numbers(models, spread=spread)) if models else (),
        empty="No calls this month.",
    )  # fmt: skip


def _numbers(models: Sequence[ModelUsage], *, spread: bool) -> tuple[str, ...]:
    unknown = sum(one.calls - one.cost_known for one in models)
    known = any(one.cost_known for one in models)
    estimated = any(one.estimated_nanos for one in models)
    amounts = (*([sum(one.charged for one in models)] if spread else []), sum(one.nanos for one in models))
    return (
        count(sum(one.calls for one in models)),
        count(sum(one.failed for one in models)),
        count(sum(one.input_tokens for one in models)),
        count(sum(one.output_tokens for one in models)),
        *[exact_text(nanos, estimated=estimated) if known else "unknown" for nanos in amounts],
        f"{unknown:,} of unknown cost" if unknown and known else "",
    )
