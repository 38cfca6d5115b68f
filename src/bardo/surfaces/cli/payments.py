"""`bardo payments`: what was paid for calls, what is still open, and what the networks say of it."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import msgspec
import typer

from bardo.accounting.payments import dollars
from bardo.adapters.config.settings import Settings, load_settings, state_path
from bardo.surfaces.cli.groups import CommandGroup
from bardo.surfaces.cli.options import AsJson, Config
from bardo.surfaces.render.console import print_stderr, show, show_json
from bardo.surfaces.render.tables import Column, table
from bardo.values.errors import ConfigError
from bardo.values.payments import OPEN_STATES

if TYPE_CHECKING:
    from bardo.services.payments.ledger import Ledger, LedgerEntry
    from bardo.services.payments.reconcile import ReconciledPayment

_BY = ("day", "tenant", "subsystem", "provider", "state")

OnlyOpen = Annotated[bool, typer.Option("--open", help="Only those of which it is not known what became of them.")]
Limit = Annotated[int, typer.Option("--limit", min=1, metavar="N", help="How many, the newest first.")]
By = Annotated[str, typer.Option("--by", metavar="WHAT", help=f"Sums by one of: {', '.join(_BY)}.")]


def register(app: typer.Typer) -> None:
    """Add the commands."""
    payments = typer.Typer(cls=CommandGroup, no_args_is_help=True, rich_markup_mode=None)
    payments.callback(epilog="Example: bardo payments list --open")(_payments)
    payments.command("list", epilog="Example: bardo payments list --by day")(list_payments)
    payments.command("reconcile", epilog="Example: bardo payments reconcile --config bardo.toml")(reconcile)
    payments.command("resolve", epilog="Example: bardo payments resolve pay_3f… --unpaid")(resolve)
    app.add_typer(payments, name="payments")


def _payments() -> None:
    """List payments of calls, and resolve open ones."""


def list_payments(
    only_open: OnlyOpen = False, by: By = "", limit: Limit = 50, config: Config = None, as_json: AsJson = False
) -> None:
    """List payments that were made, or may have been made."""
    with _ledger(load_settings(config)) as ledger:
        if by:
            _show_sums(ledger, by, as_json=as_json)
            return
        entries = [] if ledger is None else ledger.latest(limit, states=OPEN_STATES if only_open else ())
    if as_json:
        show_json({"payments": [msgspec.to_builtins(entry) for entry in entries]})
    elif entries:
        heads = ("id", "when", "state", "paid", "provider", "recipient", "note")
        columns = [
            Column(head, right=head == "paid", wrap=head in ("note", "recipient"), keep=head == "id") for head in heads
        ]
        show(table(columns, [_row(entry) for entry in entries]))
    else:
        print_stderr("no open payments" if only_open else "nothing was paid")


def reconcile(config: Config = None, as_json: AsJson = False) -> None:
    """Ask the networks for the outcome of payments, and record it in the ledger.

    Looks at every payment of which its network has not said the last word. The networks are asked at the addresses under
    [payments.servers] of bardo.toml. Ends with 1 while a payment stays open.
    """
    settings = load_settings(config)
    with _ledger(settings) as ledger:
        found = [] if ledger is None else asyncio.run(_reconcile(ledger, settings))
    still_open = [one for one in found if one.entry.state in OPEN_STATES]
    if as_json:
        show_json(
            {"payments": [{**msgspec.to_builtins(one.entry), "before": one.before, "why": one.why} for one in found]}
        )
    else:
        _show_found(found)
    if still_open:
        raise typer.Exit(1)


def resolve(
    payment: Annotated[str, typer.Argument(metavar="ID", help="Its id, as `bardo payments list` shows it.")],
    paid: Annotated[bool | None, typer.Option("--paid/--unpaid", help="What the wallet shows of it.")] = None,
    config: Config = None,
) -> None:
    """Record the outcome of an open payment in the ledger."""
    from bardo.services.payments.reconcile import resolve_by_hand

    if paid is None:
        raise ConfigError("it is not said whether the payment was made", hint="add --paid or --unpaid")
    with _ledger(load_settings(config)) as ledger:
        if ledger is None:
            raise ConfigError("nothing was paid", hint="bardo payments list shows payments")
        entry = resolve_by_hand(ledger, payment, paid=paid, now=time.time())
    print_stderr(f"{entry.payment_id} is {entry.state}")


async def _reconcile(ledger: Ledger, settings: Settings) -> list[ReconciledPayment]:
    from bardo.adapters.net.client import HttpTransport
    from bardo.services.payments.network import PaymentNetworks
    from bardo.services.payments.reconcile import Reconciler

    transport = HttpTransport()
    try:
        return await Reconciler(ledger, PaymentNetworks(transport, settings.payments.servers), time.time).all()
    finally:
        await transport.close()


@contextmanager
def _ledger(settings: Settings) -> Iterator[Ledger | None]:
    """Open the ledger, or None if there is none, which creates nothing."""
    from bardo.services.payments.ledger import find_ledger

    path: Path | str = state_path(settings)
    ledger = find_ledger(path)
    try:
        yield ledger
    finally:
        if ledger is not None:
            ledger.close()


def _show_sums(ledger: Ledger | None, by: str, *, as_json: bool) -> None:
    if by not in _BY:
        raise ConfigError(f"payments are not summed by {by!r}", hint=f"there are: {', '.join(_BY)}")
    sums = {} if ledger is None else ledger.spent_by(by, "0000-00-00", "9999-99-99")
    if as_json:
        show_json({by: {name: {"usd": nanos / 10**9, "nanos": nanos} for name, nanos in sums.items()}})
        return
    rows = [(name or "-", dollars(nanos)) for name, nanos in sums.items()]
    show(table((Column(by, keep=True), Column("paid or held back", right=True)), rows))


def _row(entry: LedgerEntry) -> tuple[str, ...]:
    when = datetime.fromtimestamp(entry.created_at, UTC).strftime("%Y-%m-%d %H:%M:%S")
    return entry.payment_id, when, entry.state, dollars(entry.nanos), entry.provider, entry.recipient, entry.note


def _show_found(found: list[ReconciledPayment]) -> None:
    if not found:
        print_stderr("every payment is settled or released")
        return
    columns = (
        Column("id", keep=True),
        Column("was"),
        Column("is"),
        Column("paid", right=True),
        Column("why", wrap=True),
    )
    rows: list[tuple[Any, ...]] = [
        (one.entry.payment_id, one.before, one.entry.state, dollars(one.entry.nanos), one.why or one.entry.note)
        for one in found
    ]
    show(table(columns, rows))
