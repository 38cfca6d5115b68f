"""Ids, signatures and ciphertexts that look like real ones and are the same in every run.

Each is made from a seed by a hash, so two servers with the same script give the same bytes. A signature that is checked
when it comes back holds what it was bound to: `sign` makes it, and `verify` reads it again or says that it was altered.
"""

from __future__ import annotations

import base64
import hashlib
import json
import string
from collections.abc import Mapping

ALPHANUMERIC = string.ascii_letters + string.digits
LOWER = string.ascii_lowercase + string.digits
HEXADECIMAL = "0123456789abcdef"
DIGITS = string.digits


def token(seed: str, length: int, alphabet: str = ALPHANUMERIC) -> str:
    """Return `length` letters of `alphabet`."""
    raw = hashlib.shake_128(seed.encode()).digest(length)
    return "".join(alphabet[byte % len(alphabet)] for byte in raw)


def uuid(seed: str) -> str:
    """Return letters in the form of a UUID."""
    letters = token(seed, 32, HEXADECIMAL)
    return "-".join((letters[:8], letters[8:12], letters[12:16], letters[16:20], letters[20:]))


def seal(secret: str, *, size: int, head: bytes = b"") -> str:
    """Return base64 of `size` bytes bound to `secret`, opening with the bytes its provider's blobs open with."""
    return base64.b64encode(head + hashlib.shake_256(secret.encode()).digest(max(1, size - len(head)))).decode()


def ciphertext(secret: str, *, size: int) -> str:
    """Return a blob in the url-safe form OpenAI's ciphertexts have."""
    return "gAAAAAB" + base64.urlsafe_b64encode(hashlib.shake_256(secret.encode()).digest(size)).decode()


def sign(signer: str, bound: Mapping[str, object], *, size: int, head: bytes = b"") -> bytes:
    """Return a blob of at least `size` bytes that only `signer` can have made and that holds what it is `bound` to."""
    plain = json.dumps(bound, sort_keys=True, separators=(",", ":")).encode()
    proof = hashlib.blake2b(plain, key=hashlib.sha256(signer.encode()).digest(), digest_size=16).digest()
    hidden = _xor_masked(plain, proof)
    filler = hashlib.shake_256(b"filler" + proof).digest(max(0, size - len(head) - len(hidden) - 20))
    return head + proof + len(plain).to_bytes(4, "big") + hidden + filler


def verify(signer: str, blob: bytes, *, head: bytes = b"") -> dict[str, object] | None:
    """Return what a blob of `signer` is bound to; None for any other, and for one of which a single bit was altered."""
    proof, length = blob[len(head) : len(head) + 16], int.from_bytes(blob[len(head) + 16 : len(head) + 20], "big")
    plain = _xor_masked(blob[len(head) + 20 : len(head) + 20 + length], proof)
    try:
        bound = json.loads(plain)
    except (ValueError, RecursionError):
        return None
    if not isinstance(bound, dict) or sign(signer, bound, size=len(blob), head=head) != blob:
        return None
    return bound


def encode_base64(blob: bytes) -> str:
    """Write a blob in base64."""
    return base64.b64encode(blob).decode()


def decode_base64(text: str) -> bytes:
    """Read base64 in either alphabet; other text gives no bytes."""
    try:
        return base64.b64decode(text.replace("-", "+").replace("_", "/"), validate=True)
    except ValueError:
        return b""


def fingerprint(value: object) -> str:
    """Return a short digest of a JSON value, whatever the order of its names."""
    raw = json.dumps(value, sort_keys=True, separators=(",", ":")).encode()
    return hashlib.blake2b(raw, digest_size=6).hexdigest()


def _xor_masked(raw: bytes, proof: bytes) -> bytes:
    veil = hashlib.shake_256(b"veil" + proof).digest(len(raw))
    return bytes(byte ^ other for byte, other in zip(raw, veil, strict=True))
