"""Ids, signatures and ciphertexts that look like the real ones and are the same at every run.

Each is made from a seed by a hash, so two servers with the same script give the same bytes. A check of signatures
that come back belongs here too: `seal` knows how each was made.
"""

from __future__ import annotations

import base64
import hashlib
import string

ALPHANUMERIC = string.ascii_letters + string.digits
LOWER = string.ascii_lowercase + string.digits
HEXADECIMAL = "0123456789abcdef"
DIGITS = string.digits


def token(seed: str, length: int, alphabet: str = ALPHANUMERIC) -> str:
    """Give `length` letters of `alphabet`."""
    raw = hashlib.shake_128(seed.encode()).digest(length)
    return "".join(alphabet[byte % len(alphabet)] for byte in raw)


def uuid(seed: str) -> str:
    """Give letters in the form of a UUID."""
    letters = token(seed, 32, HEXADECIMAL)
    return "-".join((letters[:8], letters[8:12], letters[12:16], letters[16:20], letters[20:]))


def seal(secret: str, *, size: int, head: bytes = b"") -> str:
    """Give base64 of `size` bytes bound to `secret`, opening with the bytes its provider's blobs open with."""
    raw = hashlib.shake_256(secret.encode()).digest(max(1, size - len(head)))
    return base64.b64encode(head + raw).decode()


def ciphertext(secret: str, *, size: int) -> str:
    """Give a blob in the url-safe form OpenAI's ciphertexts have."""
    return "gAAAAAB" + base64.urlsafe_b64encode(hashlib.shake_256(secret.encode()).digest(size)).decode()
