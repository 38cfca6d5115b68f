"""The form of a key of bardo: `bardo_`, an id that may be shown, `_`, a secret, and a checksum.

A key is random: its secret has 214 bits, so it cannot be found from a plain SHA-256, and a slow hash with a salt would only slow down
every request. The checksum tells a mistyped key from one that is not known, without looking anywhere.
"""

from __future__ import annotations

import re
import secrets
import zlib
from typing import NamedTuple

PREFIX = "bardo_"
_DIGITS = "0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz"
_ID_LETTERS = "0123456789abcdefghjkmnpqrstvwxyz"
_ID_LENGTH = 12
_SECRET_LENGTH = 36
_CHECK_LENGTH = 6
_KEY = re.compile(rf"bardo_([0-9a-z]{{{_ID_LENGTH}}})_[0-9A-Za-z]{{{_SECRET_LENGTH + _CHECK_LENGTH}}}")


class NewKey(NamedTuple):
    """A key that was made. `text` is shown once, and kept nowhere."""

    id: str
    text: str

    def __repr__(self) -> str:
        """Return which key it is, without the key itself."""
        return f"NewKey(id={self.id!r})"


def make_key() -> NewKey:
    """Return a new key."""
    own = "".join(secrets.choice(_ID_LETTERS) for _ in range(_ID_LENGTH))
    body = f"{PREFIX}{own}_{''.join(secrets.choice(_DIGITS) for _ in range(_SECRET_LENGTH))}"
    return NewKey(own, body + _checksum(body))


def id_of(key: str) -> str:
    """Return the id that a key of bardo holds, empty where the text is no such key."""
    match = _KEY.fullmatch(key)
    return "" if match is None or _checksum(key[:-_CHECK_LENGTH]) != key[-_CHECK_LENGTH:] else match[1]


def keys_in(text: str) -> list[str]:
    """Return what in a text has the form of a key of bardo."""
    return [match[0] for match in _KEY.finditer(text)]


def _checksum(body: str) -> str:
    rest, digits = zlib.crc32(body.encode()), ""
    for _ in range(_CHECK_LENGTH):
        rest, digit = divmod(rest, len(_DIGITS))
        digits = _DIGITS[digit] + digits
    return digits
