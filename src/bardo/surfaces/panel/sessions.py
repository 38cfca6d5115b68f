"""Sessions of the panel: a signed cookie that says whose key signed in and until when, and the tokens of its forms.

The cookie holds no key. It is signed with a secret that all workers of a gateway share, so that none has to remember it; a session that was
signed out is remembered as ended by the worker that was asked.
"""

from __future__ import annotations

import hashlib
import hmac
import re
import secrets
from base64 import urlsafe_b64decode, urlsafe_b64encode
from binascii import Error as NotBase64
from collections.abc import Callable

import msgspec

SESSION_SECONDS = 12 * 3600
_MOST_ENDED = 10_000
_COOKIE = re.compile(r"1\.([0-9A-Za-z_-]{0,800})\.([0-9]{1,12})\.([0-9a-f]{32})\.([0-9a-f]{64})")


class Session(msgspec.Struct, frozen=True, kw_only=True):
    """A session. `account` is the id of the key that signed in, empty before one did. `expires` is Unix time."""

    account: str
    expires: int
    nonce: str


class Sessions:
    """Makes and checks the cookies of sessions. `clock` gives Unix time."""

    def __init__(self, secret: bytes, clock: Callable[[], float]) -> None:
        self._secret = secret
        self._clock = clock
        self._ended: dict[str, int] = {}

    def begin(self, account: str = "") -> Session:
        """Return a new session."""
        return Session(
            account=account, expires=int(self._clock()) + SESSION_SECONDS, nonce=secrets.token_bytes(16).hex()
        )

    def end(self, session: Session) -> None:
        """Accept the cookie of a session no longer."""
        now = self._clock()
        self._ended = {nonce: expires for nonce, expires in self._ended.items() if expires > now}
        if len(self._ended) >= _MOST_ENDED:
            del self._ended[next(iter(self._ended))]
        self._ended[session.nonce] = session.expires

    def write(self, session: Session) -> str:
        """Return the text of a session's cookie."""
        account = urlsafe_b64encode(session.account.encode()).decode().rstrip("=")
        text = f"1.{account}.{session.expires}.{session.nonce}"
        return f"{text}.{self._sign('session', text)}"

    def read(self, cookie: str) -> Session | None:
        """Return the session of a cookie, or None if it was not made here, has expired, or has ended."""
        found = _COOKIE.fullmatch(cookie)
        if found is None:
            return None
        account, expires, nonce, signature = found.groups()
        text = cookie.rpartition(".")[0]
        if not hmac.compare_digest(signature, self._sign("session", text)):
            return None
        try:
            name = urlsafe_b64decode(account + "=" * (-len(account) % 4)).decode()
        except (NotBase64, UnicodeDecodeError):
            return None
        session = Session(account=name, expires=int(expires), nonce=nonce)
        return session if self.holds(session) else None

    def holds(self, session: Session) -> bool:
        """Whether a session has neither expired nor ended."""
        return session.expires > self._clock() and session.nonce not in self._ended

    def form_token(self, session: Session) -> str:
        """Return the token that the forms of a session's pages hold (against CSRF)."""
        return self._sign("form", session.nonce)

    def is_own_form(self, session: Session, token: str) -> bool:
        """Whether a form comes from a page of this session."""
        return hmac.compare_digest(self.form_token(session).encode(), token.encode("utf-8", "replace"))

    def _sign(self, purpose: str, text: str) -> str:
        return hmac.new(self._secret, f"{purpose} {text}".encode(), hashlib.sha256).hexdigest()
