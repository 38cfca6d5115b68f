"""Who may look at the panel: with keys whoever signs in with one, without keys this machine alone."""

from __future__ import annotations

import ipaddress
import re
from http.cookies import CookieError, SimpleCookie

from bardo.services.accounts.accounts import Accounts
from bardo.surfaces.gateway.http import Scope, header, headers_of
from bardo.surfaces.panel.pages import Viewer
from bardo.surfaces.panel.sessions import SESSION_SECONDS, Session, Sessions
from bardo.values.errors import Forbidden

# A proxy on this machine sends what comes from elsewhere from here.
_FORWARDED = (b"forwarded", b"x-forwarded-for", b"x-real-ip")
_PORT = re.compile(r":([0-9]{1,5})$")
_NEXT = re.compile(r"/panel(?:/[0-9A-Za-z._~%!$&'()*+,;=:@/?-]*)?")


def check_machine(scope: Scope) -> None:
    """Raise Forbidden for a request from another machine, for a panel without keys."""
    client = scope.get("client")
    forwarded = any(name in headers_of(scope) for name in _FORWARDED)
    if client is None or forwarded or not _is_loopback(str(client[0])):
        raise Forbidden(
            "without keys the panel is for the machine that bardo runs on",
            hint="make a key with `bardo keys create NAME --operator`, start the gateway again, and sign in with it",
        )


def viewer_of(session: Session | None, accounts: Accounts | None) -> Viewer | None:
    """Return who looks, None where they have to sign in."""
    if accounts is None:
        return Viewer(operator=True)
    account = accounts.active_account(session.account) if session is not None and session.account else None
    return None if account is None else Viewer(account=account, operator=account.operator)


def session_of(scope: Scope, sessions: Sessions) -> Session | None:
    """Return the session of a request's cookie, None where there is none that holds."""
    try:
        found = SimpleCookie(header(scope, b"cookie")).get(cookie_name(scope))
    except CookieError:
        return None
    return None if found is None else sessions.read(found.value)


def session_cookie(scope: Scope, sessions: Sessions, session: Session) -> tuple[str, str]:
    """Return the header that gives a browser the cookie of a session."""
    secure = "; Secure" if "https" in (scope.get("scheme"), header(scope, b"x-forwarded-proto").lower()) else ""
    text = f"{cookie_name(scope)}={sessions.write(session)}; Path=/panel; Max-Age={SESSION_SECONDS}"
    return "set-cookie", f"{text}; HttpOnly; SameSite=Strict{secure}"


def cookie_name(scope: Scope) -> str:
    """Return the name of the cookie: browsers send cookies of one port to all ports, so each port has its own."""
    found = _PORT.search(header(scope, b"host"))
    return f"bardo_panel_{found[1]}" if found else "bardo_panel"


def next_page(address: str) -> str:
    """Return the page to show after signing in: one of the panel, whatever the request names."""
    own = _NEXT.fullmatch(address) is not None and not address.startswith("/panel/sign-")
    return address if own else "/panel"


def _is_loopback(host: str) -> bool:
    try:
        address = ipaddress.ip_address(host)
    except ValueError:
        return False
    mapped = getattr(address, "ipv4_mapped", None)
    return (mapped or address).is_loopback
