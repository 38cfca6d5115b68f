"""What of a payment no error may repeat."""

from __future__ import annotations

import base64
import json

import pytest

from bardo.services.payments.payer import quotable

SIGNATURE = "0x" + "ab" * 65
PAYING = base64.b64encode(json.dumps({"payload": {"signature": SIGNATURE}}).encode()).decode()


@pytest.mark.parametrize("name", ["payment-signature", "x-payment"])
def test_the_header_that_pays_and_the_signature_in_it_are_secrets(name: str) -> None:
    assert quotable({"content-type": "application/json", name: PAYING}) == (PAYING, SIGNATURE.removeprefix("0x"))


def test_a_call_that_pays_nothing_has_no_secrets_of_a_payment() -> None:
    assert quotable({"authorization": "Bearer sk-1", "content-type": "application/json"}) == ()
