"""What is hidden of values that may hold a secret: configured headers, and addresses with a user, a password or a query."""

from __future__ import annotations

import re
from collections.abc import Collection, Mapping
from urllib.parse import urlsplit, urlunsplit

from bardo.values.secrets import NO_SECRETS

HIDDEN = "[hidden]"
"""Stands for a value that may be a secret."""

_NAMES = ("auth", "cookie", "credential", "key", "passphrase", "password", "secret", "session", "signature", "token")
_SCHEMES = ("basic ", "bearer ", "digest ", "token ")
_UUID = re.compile(r"[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}", re.IGNORECASE)
# Words of a name are shorter, or hold no digits.
_RANDOM = re.compile(r"[A-Za-z0-9+/=]{20,}")
# Headers and parameters whose values are known to be no secrets, whatever they look like.
_PLAIN = re.compile(r"(?:version|beta|agent|referer|title|type|language|encoding|origin|region)$", re.IGNORECASE)
_SHORTEST_OPAQUE = 8
_LONG_WORD = 16
_UPPER_HEX = re.compile(r"(?<![A-Za-z0-9])(?=[A-F]*[0-9])[0-9A-F]{24,}(?![A-Za-z0-9])")


def is_secret(name: str, value: str) -> bool:
    """Whether a header may be a secret, by what it is called or by what its value looks like."""
    lowered = name.lower()
    return any(word in lowered for word in _NAMES) or value.lower().startswith(_SCHEMES) or looks_like_key(value)


def may_be_secret(name: str, value: str) -> bool:
    """Whether the value of a header or a parameter that an operator configured may be a secret, also where its name does not say so."""
    if _PLAIN.search(name):
        return looks_like_key(value)
    has_digit = any(char.isdigit() for char in value)
    opaque = " " not in value and len(value) >= (_SHORTEST_OPAQUE if has_digit else _LONG_WORD)
    return opaque or is_secret(name, value)


def looks_like_key(text: str) -> bool:
    """Whether a text is, or holds, something that looks like a provider's key rather than a word."""
    if NO_SECRETS.in_text(text) != text or _UUID.search(text) or _UPPER_HEX.search(text):
        return True
    return any(re.search("[0-9]", run) and re.search("[a-z]", run) for run in _RANDOM.findall(text))


def shown_url(url: str) -> str:
    """Return an address as it may be shown: without its user, password, query and fragment."""
    try:
        parts = urlsplit(url)
    except ValueError:
        return HIDDEN
    user, at, host = parts.netloc.rpartition("@")
    netloc = f"{HIDDEN}@{host}" if at and user else host
    hidden = (HIDDEN if part else "" for part in (parts.query, parts.fragment))
    return urlunsplit((parts.scheme, netloc, parts.path, *hidden))


def shown_headers(headers: Mapping[str, str], configured: Collection[str] = ()) -> dict[str, str]:
    """Return the headers of a request without values that may be secrets. `configured` are the names that an operator wrote."""
    return {
        name: HIDDEN if (may_be_secret if name in configured else is_secret)(name, value) else value
        for name, value in headers.items()
    }
