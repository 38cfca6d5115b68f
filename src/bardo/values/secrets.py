"""Secrets: found in texts and streams, and taken out of all that is logged, shown or told."""

from __future__ import annotations

import html
import json
import re
from base64 import b64encode, urlsafe_b64encode
from collections.abc import Collection, Iterable, Mapping, Sequence
from functools import lru_cache
from itertools import takewhile
from typing import Any
from urllib.parse import quote, quote_plus, unquote, urlsplit, urlunsplit

MARK = "[key]"
SHORTEST = 4
"""A shorter value, or a short one of letters alone, is a placeholder, and may be a part of any text."""
_SHORTEST_ANYWHERE = 8
_SHORTEST_BEGINNING = 12
"""Of a value that was cut so many characters are too many to be shown."""
_LONGEST_IN_BASE64 = 4_096
_BASE64 = frozenset("ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/-_=")

# OpenAI, Anthropic, OpenRouter, Groq, xAI, Cerebras, Perplexity, NVIDIA, Hugging Face, Replicate, Fireworks, Together, Google, AWS, GitHub,
# GitLab (docs.gitlab.com, "Token overview"), Bitbucket, bardo; a sign of life between the parts, as in sk-…abcd, is no key.
_SHAPES = re.compile(
    r"(?<![A-Za-z0-9])(?:"
    r"(?:sk|csk|rk|pplx|nvapi|xai|fw|tgp|psk)[-_][A-Za-z0-9_-]{16,400}"
    r"|(?:gsk|hf|r8|gh[oprsu]|tgp_v1)_[A-Za-z0-9]{16,400}"
    r"|(?:github_pat_|gl(?:pat|dt|rt|ptt|ft|imt|agent|oas|soat|cbt|ffct)-|ATBB|ATCTT3x)[A-Za-z0-9_=-]{16,400}"
    r"|bardo_[0-9a-z]{12}_[A-Za-z0-9]{16,400}"
    r"|AIza[A-Za-z0-9_-]{30,60}"
    r"|(?:AKIA|ASIA)[A-Z0-9]{16}(?![A-Z0-9])"
    r"|ABSK[A-Za-z0-9+/=]{40,400}"
    r")"
)
_DIGIT = re.compile(r"[0-9]")
_LETTERS = re.compile(r"_(?=[A-Z]*[a-z])(?=[a-z]*[A-Z])[A-Za-z]{30,}")
# An encoder may escape any character, and most escape some that need it not: `+` and `=` are so in .NET, `/` in many templates.
_JSON_ESCAPE = re.compile(r"(?<!\\)\\+u00([2-7][0-9a-fA-F])")
_JSON_ESCAPE_IN_BYTES = re.compile(rb"(?<!\\)\\+u00([2-7][0-9a-fA-F])")
_BYTES_OF_AN_ESCAPE = 6
_MOST_LAYERS = 3


class Secrets:
    """The secrets of a call, or of a process. Made by `secrets_of`; never changed."""

    __slots__ = ("_anywhere", "_in_base64", "_in_bytes", "_words", "longest")

    def __init__(self, values: Iterable[str]) -> None:
        known = sorted({value for value in values if _is_secret(value)}, key=len, reverse=True)
        long = [value for value in known if len(value) >= _SHORTEST_ANYWHERE]
        self._anywhere = tuple(dict.fromkeys(form for value in long for form in _written_forms(value)))
        self._in_base64 = tuple(dict.fromkeys(part for value in long for part in _base64_parts(value)))
        short = "|".join(re.escape(value) for value in known if len(value) < _SHORTEST_ANYWHERE)
        self._words = re.compile(rf"(?<![A-Za-z0-9_-])(?:{short})(?![A-Za-z0-9_-])") if short else None
        self._in_bytes = tuple(form.encode("utf-8", "surrogatepass") for form in self._anywhere)
        self.longest = max(map(len, (*self._anywhere, *self._in_base64)), default=0)

    def in_text(self, text: str) -> str:
        """Return text without secrets: unescaped, where a secret is found only so."""
        found = plain = self._in_written(text)
        for _ in range(_MOST_LAYERS):
            if "&" not in plain and "\\u" not in plain and "%" not in plain:
                break
            plain = _unescaped(plain)
            cleaned = self._in_written(plain)
            if cleaned != plain:
                found = plain = cleaned
        return found

    def _in_written(self, text: str) -> str:
        begun = [form for form in self._anywhere if form[:_SHORTEST_BEGINNING] in text]
        for form in begun:
            text = text.replace(form, MARK)
        if begun:
            text = _without_beginnings(text, begun)
        for part in self._in_base64:
            if part in text:
                # Replace each run of base64 letters around `part`.
                pieces: list[str] = []
                begin = 0
                while (at := text.find(part, begin)) >= 0:
                    first, last = at, at + len(part)
                    while first > begin and text[first - 1] in _BASE64:
                        first -= 1
                    while last < len(text) and text[last] in _BASE64:
                        last += 1
                    pieces += (text[begin:first], MARK)
                    begin = last
                text = "".join((*pieces, text[begin:]))
        if self._words is not None:
            text = self._words.sub(MARK, text)
        return _SHAPES.sub(_unless_a_name, text)

    def in_value(self, value: Any) -> Any:
        """Return a JSON value without secrets in its strings and names."""
        if isinstance(value, str):
            return self.in_text(value)
        if isinstance(value, dict):
            return {
                self.in_text(name) if isinstance(name, str) else name: self.in_value(v) for name, v in value.items()
            }
        if isinstance(value, list | tuple):
            return [self.in_value(inner) for inner in value]
        return value

    def in_bytes(self, data: bytes) -> bytes:
        """Return bytes without the secrets that were given, as they stand in JSON."""
        if b"\\u00" in data and not self._stand_in_written(data):
            data = _JSON_ESCAPE_IN_BYTES.sub(_character_of_bytes, data)
        for form in self._in_bytes:
            if form in data:
                data = data.replace(form, MARK.encode())
        return data

    def stand_in(self, data: bytes) -> bool:
        """Return whether one of the secrets that were given stands in `data`."""
        if self._stand_in_written(data):
            return True
        return b"\\u00" in data and self._stand_in_written(_JSON_ESCAPE_IN_BYTES.sub(_character_of_bytes, data))

    def _stand_in_written(self, data: bytes) -> bool:
        # Asked at every read of every reply, where a loop costs half of what `any` does.
        for form in self._in_bytes:  # noqa: SIM110
            if form in data:
                return True
        return False


@lru_cache(maxsize=256)
def secrets_of(values: tuple[str, ...]) -> Secrets:
    """Return the secrets with these values. Values that are too short to be secrets do not count."""
    return Secrets(values)


NO_SECRETS = secrets_of(())
"""Where no secret is known: only the well-known shapes are found."""


class SecretWatch:
    """Looks for secrets in bytes that come piece by piece; one that is cut between two pieces is found too."""

    __slots__ = ("_most", "_tail", "secrets", "seen")

    def __init__(self, secrets: Secrets) -> None:
        self.secrets = secrets
        self._most = max(0, secrets.longest * _BYTES_OF_AN_ESCAPE - 1)
        self._tail = b""
        self.seen = False

    def feed(self, piece: bytes) -> bool:
        """Return whether a secret has been seen by now."""
        if self.seen or self._most <= 0:
            return self.seen
        # Only the beginning of a large piece is looked at beside the end of the one before.
        tail, most, secrets = self._tail, self._most, self.secrets
        if len(piece) <= most:
            tail += piece
            self.seen = secrets.stand_in(tail)
        else:
            self.seen = secrets.stand_in(piece) or (bool(tail) and secrets.stand_in(tail + piece[:most]))
            tail = piece
        self._tail = tail[-most:]
        return self.seen


def _is_secret(value: str) -> bool:
    return len(value) >= _SHORTEST_ANYWHERE or (len(value) >= SHORTEST and not value.isalpha())


def _written_forms(value: str) -> Iterable[str]:
    encoded = [quote(value, safe=""), quote(value), quote_plus(value)] if _is_text(value) else []
    escaped = [json.dumps(value)[1:-1], json.dumps(value, ensure_ascii=False)[1:-1]]
    yield value
    yield from (form for one in encoded for form in (one, re.sub("%[0-9A-F]{2}", lambda found: found[0].lower(), one)))
    yield from (form for one in escaped for form in (one, one.replace("/", r"\/")))
    yield html.escape(value)


def _is_text(value: str) -> bool:
    return not any("\ud800" <= letter <= "\udfff" for letter in value)


def _base64_parts(value: str) -> Iterable[str]:
    """Return what base64 of any text that holds `value` holds, for each of the three ways in which they can be aligned."""
    data = value.encode("utf-8", "surrogatepass")[:_LONGEST_IN_BASE64]
    for before in range(3):
        padded = b"\0" * before + data
        whole = len(padded) - len(padded) % 3
        first = {0: 0, 1: 2, 2: 3}[before]
        for encode in (b64encode, urlsafe_b64encode):
            yield encode(padded[:whole]).decode()[first:]


def _without_beginnings(text: str, forms: Sequence[str]) -> str:
    """Replace what is left of values that were cut: the longest beginning of one of `forms` that stands at each place."""
    for beginning in dict.fromkeys(form[:_SHORTEST_BEGINNING] for form in forms if len(form) > _SHORTEST_BEGINNING):
        pieces: list[str] = []
        end = 0
        while (at := text.find(beginning, end)) >= 0:
            pieces += (text[end:at], MARK)
            end = at + max(_common_length(form, text[at : at + len(form)]) for form in forms)
        text = "".join((*pieces, text[end:]))
    return text


def _common_length(one: str, other: str) -> int:
    return sum(1 for _ in takewhile(lambda pair: pair[0] == pair[1], zip(one, other, strict=False)))


def _unescaped(text: str) -> str:
    """Return text without one layer of the escapes of HTML, JSON and URLs."""
    return unquote(_JSON_ESCAPE.sub(lambda found: chr(int(found[1], 16)), html.unescape(text)))


def _character_of_bytes(found: re.Match[bytes]) -> bytes:
    character = bytes([int(found[1], 16)])
    # A quote or a backslash would end the string that it stands in.
    return found[0] if character in b'"\\' else character


def _unless_a_name(found: re.Match[str]) -> str:
    # `sk-learn-…` and other names of things have no digits in them. Tokens of Hugging Face are letters alone, of both cases.
    return MARK if _DIGIT.search(found[0]) or _LETTERS.search(found[0]) else found[0]


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


_SECRETS = frozenset({"authorization", "authorization_token", "headers"})
_ADDRESSES = frozenset({"server_url", "url"})


def without_credentials(body: Any) -> Any:
    """Return a body whose MCP servers have no credentials; the same body where it names none."""
    if not isinstance(body, Mapping):
        return body
    changed = {
        name: [_server(one) for one in body[name]] for name in ("tools", "mcp_servers") if _names_servers(body, name)
    }
    return {**body, **changed} if changed else body


def _names_servers(body: Mapping[str, Any], name: str) -> bool:
    listed = body.get(name)
    return isinstance(listed, list) and any(map(_is_server, listed))


def _is_server(value: Any) -> bool:
    return isinstance(value, Mapping) and (value.get("type") == "mcp" or not _SECRETS.isdisjoint(value))


def _server(value: Any) -> Any:
    if not _is_server(value):
        return value
    return {name: _shown(name, field) for name, field in value.items()}


def _shown(name: str, field: Any) -> Any:
    if name in _ADDRESSES and isinstance(field, str):
        return shown_url(field)
    if name not in _SECRETS or field is None:
        return field
    return dict.fromkeys(field, HIDDEN) if isinstance(field, Mapping) else HIDDEN
