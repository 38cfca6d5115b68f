"""Whose request it is: a key's digest is the same by whichever header it comes, and holds nothing of the key."""

from __future__ import annotations

import hashlib

import pytest

from bardo.surfaces.gateway.callers import key_of, tenant_of


@pytest.mark.parametrize(
    ("headers", "key"),
    [
        ([(b"authorization", b"Bearer one")], "one"),
        ([(b"authorization", b"bearer one ")], "one"),
        ([(b"authorization", b""), (b"x-api-key", b"two")], "two"),
        ([(b"x-goog-api-key", b"three"), (b"x-api-key", b"two")], "two"),
        ([(b"x-goog-api-key", b"three")], "three"),
        ([(b"authorization", b"AWS4-HMAC-SHA256 Credential=AKID/20260101/r/s/aws4_request, Signature=0")], "AKID"),
        ([(b"accept", b"*/*")], ""),
    ],
)
def test_the_key_is_that_of_the_first_header_that_has_one(headers: list[tuple[bytes, bytes]], key: str) -> None:
    assert key_of({"headers": headers}) == key


@pytest.mark.parametrize("key", ["short", "long" * 1000], ids=["short", "long"])
def test_a_tenant_is_a_digest_of_the_key_every_time(key: str) -> None:
    wanted = hashlib.sha256(f"bardo tenant {key}".encode()).hexdigest()[:32]
    assert [tenant_of(key), tenant_of(key)] == [wanted, wanted]
    assert tenant_of(f"{key}x") != wanted


def test_a_client_without_a_key_has_no_tenant() -> None:
    assert tenant_of("") == ""
