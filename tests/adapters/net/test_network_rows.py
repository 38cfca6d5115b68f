"""Every network that is refused says whose it is and where that is documented."""

from __future__ import annotations

from bardo.adapters.net.addresses import blocked_networks, network_rows


def test_every_row_has_an_owner_and_a_source_and_stands_once() -> None:
    rows = network_rows()
    assert all(row.owner and row.source.startswith("https://") for row in rows)
    assert len({row.network for row in rows}) == len(rows) == len(blocked_networks())
