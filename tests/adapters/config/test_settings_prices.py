"""`[[prices]]`: what is read of them, and how each mistake is answered."""

from __future__ import annotations

from decimal import Decimal

import pytest

from bardo.adapters.config.settings import parse_settings
from bardo.catalog.prices import PriceRow, PriceTier
from bardo.values.errors import ConfigError


def test_rows_are_read_digit_by_digit() -> None:
    settings = parse_settings(
        """
        [[prices]]
        match = "lab-*"
        provider = "lab"
        from = 2026-11-01
        input = 0.1
        output = 3
        cached_input = 0.025
        batch_factor = 0.5
        request_fee = 0.005
        service_tiers = { flex = 0.5 }
        tiers = [{ above = 200000, input = 0.2 }]
        """
    )
    assert settings.prices == (
        PriceRow(
            match=("lab-*",),
            providers=("lab",),
            valid_from="2026-11-01",
            input=Decimal("0.1"),
            output=Decimal(3),
            cached_input=Decimal("0.025"),
            batch_factor=Decimal("0.5"),
            request_fee=Decimal("0.005"),
            service_tiers={"flex": Decimal("0.5")},
            tiers=(PriceTier(above=200_000, input=Decimal("0.2")),),
        ),
    )


MISTAKES = [
    ('[[prices]]\nmatch = ["a"]\ninput = -1', 3, "input is below 0 or no number"),
    ('[[prices]]\nmatch = ["a"]\ninput = nan', 3, "input is below 0 or no number"),
    ('[[prices]]\nmatch = ["a"]\ninput = inf', 3, "input is below 0 or no number"),
    ('[[prices]]\nmatch = ["a"]\noutput = 1', 3, "output has a price or a factor, and input has none"),
    ('[[prices]]\nmatch = ["a"]\nbatch_factor = 0.5', 3, "batch_factor has a price or a factor, and input has none"),
    ('[[prices]]\nmatch = []\ninput = 1', 2, "the row fits no model"),
    ('[[prices]]\nmatch = ["a"]\nfrom = "soon"', 3, "from is not a day, like 2026-11-23"),
    ('[[prices]]\nmatch = ["a"]\nfrom = "20261123"', 3, "from is not a day, like 2026-11-23"),
    ('[[prices]]\nmatch = ["a"]\ninput = "much"', 3, "input"),
    ('[[prices]]\nmatch = ["a"]\ninptu = 1', 3, "inptu"),
    ("[[prices]]\ninput = 1", 1, "match"),
    ('[[prices]]\nmatch = ["a"]\ninput = 1\n[[prices]]\nmatch = ["b"]\ninput = -2', 6, "input is below 0 or no number"),
]  # fmt: skip


@pytest.mark.parametrize(("text", "line", "said"), MISTAKES)
def test_a_mistake_names_its_line_and_what_to_write(text: str, line: int, said: str) -> None:
    with pytest.raises(ConfigError) as caught:
        parse_settings(text)
    assert f"line {line}" in str(caught.value)
    assert said in str(caught.value)
    assert caught.value.hint
