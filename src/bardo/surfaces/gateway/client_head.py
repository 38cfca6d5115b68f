"""What follows from the headers of a request, found once for all requests that have the same: a client sends most of them again each time.

Of a request's headers only those count here that bardo reads, beside its length and its trace, which are others each time.
"""

from __future__ import annotations

import re
from functools import lru_cache
from itertools import compress
from operator import itemgetter
from typing import Any

from bardo.dialects.shared.json_values import header_value
from bardo.surfaces.gateway.http import Scope
from bardo.values.once import once

Lines = tuple[tuple[bytes, bytes], ...]

ROUTING_HEADERS = frozenset((b"x-bardo-intent", b"x-bardo-subsystem", b"x-bardo-vitality", b"x-bardo-tick"))
FAILOVER_HEADERS = frozenset((b"x-bardo-deadline-seconds", b"x-bardo-allow-stale"))
_OPTION_HEADERS = (
    frozenset((b"x-bardo-include", b"x-bardo-reasoning", b"x-bardo-allow-loss", b"x-bardo-verify"))
    | ROUTING_HEADERS
    | FAILOVER_HEADERS
    | {b"x-bardo-pipeline", b"x-bardo-session", b"cache-control"}
)
# Headers that belong to a dialect: they ask its provider for features, and hold no secret.
_DIALECT_HEADERS = frozenset((b"anthropic-beta", b"openai-beta"))
# Headers by which agents name themselves and their session: providers keep a session's prompts at one place by them, where caches hold.
_CLIENT_HEADERS = frozenset(
    (
        *(b"user-agent", b"x-app", b"originator", b"session-id", b"session_id", b"thread-id", b"conversation_id"),
        *(b"x-client-request-id", b"x-session-id"),
    )
)
_CLIENT_PREFIXES = (b"x-claude-code-", b"x-codex-")
_KEYS = (b"authorization", b"x-api-key", b"x-goog-api-key", b"api-key")
_ACCESS_HEADERS = frozenset((b"host", b"origin", b"upgrade", b"content-type", b"content-encoding"))
_READ = _OPTION_HEADERS | _DIALECT_HEADERS | _CLIENT_HEADERS | _ACCESS_HEADERS | frozenset(_KEYS)
# Each signature of AWS is another; the id of the key that made it stays.
_SIGNED = re.compile(r"AWS4-[A-Z0-9-]+ .*?Credential=([^/,\s]+)")

HEAD = "bardo.head"
"""Where a request's scope holds its ClientHead."""
_MOST_HEADS, _LONGEST_HEAD = 256, 4096
_MOST_NAMES, _LONGEST_NAME = 1024, 64


class ClientHead:
    """The headers of a request that bardo reads. `fields` has the first of each, `lines` all of them in their order.

    `accepted_by` is the Access that has checked it, `is_json` whether it was found to announce JSON, and `caller`
    the `tenants.Caller` where no keys are asked for: None where that was not found yet, or the key is not in a header.
    """

    def __init__(self, lines: Lines) -> None:
        self.lines = lines
        self.fields = dict(reversed(lines))
        self.accepted_by: object = None
        self.is_json = False
        self.caller: Any = None

    def __repr__(self) -> str:
        """Return how many headers there are: one of them may be a key."""
        return f"ClientHead({len(self.lines)} headers)"

    @once
    def key(self) -> str:
        """The key of the client, the id of the key where it signs requests as AWS's do, empty where no header holds one."""
        signed = _SIGNED.match(str(self.fields.get(_KEYS[0], b""), "latin-1"))
        if signed is not None:
            return signed[1]
        return next(iter(self.keys), "")

    @once
    def keys(self) -> tuple[str, ...]:
        """The different keys of all headers that may hold one, that of `Authorization` first. A signature is no key."""
        raw = (str(self.fields.get(name, b""), "latin-1") for name in _KEYS)
        texts = (
            one.removeprefix("Bearer ").removeprefix("bearer ").strip() for one in raw if not one.startswith("AWS4-")
        )
        return tuple(dict.fromkeys(filter(None, texts)))

    @once
    def is_signed(self) -> bool:
        """Whether a request is signed as AWS's are, so that it holds no key."""
        return self.fields.get(_KEYS[0], b"").startswith(b"AWS4-")

    @once
    def has_options(self) -> bool:
        """Whether a header asks something of bardo."""
        return not _OPTION_HEADERS.isdisjoint(self.fields)

    @once
    def passed_on(self) -> tuple[dict[str, str], dict[str, str]]:
        """The headers of the dialect, and those by which a program names itself. Raises InvalidRequest for one that cannot be sent on."""
        found: dict[str, str] = {}
        program: dict[str, str] = {}
        for name, value in self.lines:
            if name in _DIALECT_HEADERS and value:
                key = name.decode()
                text = header_value(str(value, "latin-1"), key)
                found[key] = f"{found[key]}, {text}" if key in found else text
            elif name in _CLIENT_HEADERS or name.startswith(_CLIENT_PREFIXES):
                text = str(value, "latin-1")
                if text.isascii() and text.isprintable():
                    program[name.decode()] = text
        return found, program


def head_of(scope: Scope) -> ClientHead:
    """Return what follows from the headers of a request: the same object for requests that have the same."""
    head: ClientHead | None = scope.get(HEAD)
    if head is None:
        # Without a step of Python for each header.
        given = scope["headers"]
        lines = tuple(map(tuple, compress(given, map(_IS_READ.__getitem__, map(_name, given)))))
        is_short = sum(map(len, map(_value, lines))) <= _LONGEST_HEAD
        head = scope[HEAD] = _kept_head(lines) if is_short else ClientHead(lines)
    return head


class _ReadNames(dict[bytes, bool]):
    """Whether bardo reads the header of a name. Clients choose names, so those that are kept are few and short."""

    def __missing__(self, name: bytes) -> bool:
        read = name in _READ or name.startswith(_CLIENT_PREFIXES)
        if len(self) < _MOST_NAMES and len(name) <= _LONGEST_NAME:
            self[name] = read
        return read


_IS_READ = _ReadNames()
_name, _value = itemgetter(0), itemgetter(1)
_kept_head = lru_cache(maxsize=_MOST_HEADS)(ClientHead)
