"""The receipts of layers in words: what each did with a call, what it saw, and how it is turned off."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from bardo.adapters.stores.log.row import LogRow
from bardo.surfaces.render.wording import dollars, printable
from bardo.values.cost import usd


def layer_facts(pipeline: Mapping[str, Any] | None) -> Iterator[tuple[str, str]]:
    """Return the profile of a call and what each of its layers did; empty for a call without layers."""
    if pipeline is None:
        return
    yield "pipeline", printable(str(pipeline.get("profile", "")))
    for one in pipeline.get("layers", ()):
        yield f"layer {printable(str(one.get('layer', '')))}", printable(_line(one))


def cache_fact(row: LogRow) -> str:
    """Write what the cache of replies did with a call, and what that saved; empty for a call without it."""
    if not row.cache:
        return ""
    saved = "" if row.reply_saved_nanos is None else f", saved {dollars(usd(row.reply_saved_nanos))}"
    return f"{row.cache}{saved}"


def _line(receipt: Mapping[str, Any]) -> str:
    before, after = receipt.get("tokens_before"), receipt.get("tokens_after")
    spent = receipt.get("microseconds")
    saw = ", ".join(f"{name} {value}" for name, value in (receipt.get("saw") or {}).items())
    words = (
        receipt.get("did") or "changed nothing",
        f"{before} to {after} tokens" if before is not None and after is not None and before != after else "",
        f"saw {saw}" if saw else "",
        f"{spent} µs" if spent is not None else "",
        f"off by {receipt['off']}" if receipt.get("off") else "",
    )
    return "; ".join(word for word in words if word)
