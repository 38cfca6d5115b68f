"""The balances in the headers of providers' replies: the last one of each, in memory."""

from __future__ import annotations

import math
from collections.abc import Mapping

from bardo.catalog.rows import ProviderRow

_DAY = 86_400


class Balances:
    """The last balances of each provider, by the names that its row has for them (`diem`, `usd`). Times are Unix times.

    A balance holds until the next one, and `diem` no longer than its day in UTC: at midnight there is a new allocation.
    """

    def __init__(self) -> None:
        self.revision = 0
        self._known: dict[str, dict[str, tuple[float, int]]] = {}

    def note(self, provider: str, row: ProviderRow, headers: Mapping[str, str], now: float) -> None:
        """Store the balances in the headers of a reply; a value that is no number is ignored."""
        for name, header in row.balance_headers.items():
            amount = _amount(headers.get(header, ""))
            if amount is None:
                continue
            spent = self.is_spent(provider, name, now)
            self._known.setdefault(provider, {})[name] = (amount, int(now // _DAY))
            self.revision += spent is not (amount <= 0)

    def of(self, provider: str, now: float) -> dict[str, float]:
        """Return the balances of a provider that hold now, or none if it has reported none."""
        amounts = {name: self.amount(provider, name, now) for name in self._known.get(provider, ())}
        return {name: amount for name, amount in amounts.items() if amount is not None}

    def amount(self, provider: str, name: str, now: float) -> float | None:
        """Return one balance, or None if it is unknown."""
        amount = self._known.get(provider, {}).get(name)
        if amount is None or (name == "diem" and amount[1] != int(now // _DAY)):
            return None
        return amount[0]

    def is_spent(self, provider: str, name: str, now: float) -> bool:
        """Whether a balance is known to be used up."""
        amount = self.amount(provider, name, now)
        return amount is not None and amount <= 0


def _amount(text: str) -> float | None:
    try:
        amount = float(text)
    except ValueError:
        return None
    return amount if math.isfinite(amount) else None
