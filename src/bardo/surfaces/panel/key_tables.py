"""Keys of clients as tables of a page: what each may do, and what it used. No page shows a key but the one that made it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from urllib.parse import quote

import msgspec

from bardo.accounting.limits import LimitName
from bardo.edge.accounts.account import Account
from bardo.edge.accounts.spend import ModelUsage
from bardo.edge.accounts.usage import KeyUsage
from bardo.edge.log import CallSums
from bardo.surfaces.panel.cost_tables import exact_text
from bardo.surfaces.panel.key_forms import LIMIT_WORDS, MONEY
from bardo.surfaces.panel.tables import Cell, Head, Table
from bardo.surfaces.render.client_keys import limits_text, time_text
from bardo.surfaces.render.wording import count

_BADGES = {"active": "ok", "expired": "warn", "revoked": "bad"}
_NOTHING = CallSums()


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
    today: Mapping[str, CallSums],
    month: Mapping[str, CallSums],
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
            _row(one, today.get(one.id, _NOTHING), month.get(one.id, _NOTHING), usages.get(one.id, KeyUsage(account=one)), now)
            for one in accounts
        ),
        empty="There are no keys: this gateway answers every client that can reach it.",
    )  # fmt: skip


def _row(account: Account, today: CallSums, month: CallSums, usage: KeyUsage, now: float) -> tuple[Cell | str, ...]:
    below = ", ".join(filter(None, [account.id if account.name else "", "operator" if account.operator else ""]))
    return (
        Cell(account.name or account.id, href=key_address(account.id), below=below),
        state_cell(account, now),
        ", ".join(account.models) or "all",
        limits_text(account) or "none",
        count(month.calls),
        _spent_cell(today, usage.reserved("usd_per_day")),
        _spent_cell(month, usage.reserved("usd_per_month")),
        ", ".join(account.tags),
    )


def spent_text(sums: CallSums, reserved: int = 0) -> tuple[str, str]:
    """Return what calls cost, and in words of how many that is not known, and what is `reserved` for calls besides."""
    unknown = sums.calls - sums.cost_known
    held = f"and {exact_text(reserved)} reserved" if reserved else ""
    if sums.calls and not sums.cost_known:
        return "unknown", ", ".join(filter(None, [f"{unknown:,} calls", held]))
    text = exact_text(sums.cost_nanos, estimated=sums.estimated_nanos != 0)
    return text, ", ".join(filter(None, [f"and {unknown:,} of unknown cost" if unknown else "", held]))


def _spent_cell(sums: CallSums, reserved: int = 0) -> Cell:
    text, below = spent_text(sums, reserved)
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
    """Return the calls of a key this month by model, the costliest first."""
    return Table(
        name="models",
        caption="Calls this month (UTC) by model",
        heads=(Head("model", wrap=True), Head("provider", wrap=True), Head("calls", number=True), Head("failed", number=True),
               Head("input", number=True), Head("output", number=True), Head("cost", number=True), Head("")),
        rows=tuple(map(_model, models)),
        foot=_foot(models) if models else (),
        empty="No calls this month.",
    )  # fmt: skip


def _model(one: ModelUsage) -> tuple[Cell | str, ...]:
    unknown = one.calls - one.cost_known
    return (
        one.model or "–",
        one.provider or "none",
        count(one.calls),
        count(one.failed),
        count(one.input_tokens),
        count(one.output_tokens),
        exact_text(one.nanos, estimated=one.estimated_nanos != 0) if one.cost_known else "unknown",
        f"{unknown:,} of unknown cost" if unknown and one.cost_known else "",
    )


def _foot(models: Sequence[ModelUsage]) -> tuple[str, ...]:
    unknown = sum(one.calls - one.cost_known for one in models)
    known = any(one.cost_known for one in models)
    estimated = any(one.estimated_nanos for one in models)
    return (
        "total",
        "",
        count(sum(one.calls for one in models)),
        count(sum(one.failed for one in models)),
        count(sum(one.input_tokens for one in models)),
        count(sum(one.output_tokens for one in models)),
        exact_text(sum(one.nanos for one in models), estimated=estimated) if known else "unknown",
        f"{unknown:,} of unknown cost" if unknown and known else "",
    )
