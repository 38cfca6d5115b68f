"""One request to the panel: a file, a form, a page, or an error as a page.

Pages of live requests get one stream of server-sent events each, at most four messages a second. With keys, whoever signs in
with one may look; without keys, this machine alone.
"""

from __future__ import annotations

import asyncio
import ipaddress
import re
import time
from collections.abc import Callable, Mapping
from functools import lru_cache, partial
from http.cookies import CookieError, SimpleCookie
from urllib.parse import parse_qsl, quote

import msgspec

from bardo.adapters.config.settings import Settings
from bardo.dialects import DEFAULT_DIALECT
from bardo.services.accounts.accounts import Accounts
from bardo.surfaces.gateway.answer import Answer, error_headers, run_until_disconnect
from bardo.surfaces.gateway.context import GatewayContext, mistake
from bardo.surfaces.gateway.http import ClientDisconnected, Receive, Scope, header, headers_of, query_of, read_body
from bardo.surfaces.panel.pages import Download, Page, PanelRequest, Redirect, Viewer
from bardo.surfaces.panel.panel import Panel, View
from bardo.surfaces.panel.sessions import SESSION_SECONDS, Session, Sessions
from bardo.surfaces.panel.views import VIEWS
from bardo.surfaces.panel.views.live import show_thinking
from bardo.values.errors import (
    BardoError,
    Forbidden,
    InvalidRequest,
    MethodNotAllowed,
    Overloaded,
    RateLimited,
    Unauthorized,
    UnknownRoute,
    UnsupportedMediaType,
)

# A proxy on this machine sends what comes from elsewhere from here.
_FORWARDED = (b"forwarded", b"x-forwarded-for", b"x-real-ip")
_PORT = re.compile(r":([0-9]{1,5})$")
_NEXT = re.compile(r"/panel(?:/[0-9A-Za-z._~%!$&'()*+,;=:@/?-]*)?")


SECONDS_BETWEEN_MESSAGES = 0.25
ALIVE_SECONDS = 15.0
MOST_READERS = 50
_SSE = "text/event-stream; charset=utf-8"


async def send_live_events(
    panel: Panel, viewer: Viewer, is_signed_in: Callable[[], bool], receive: Receive, answer: Answer
) -> None:
    """Send what happens to the calls that a viewer may see, until the browser leaves or nobody is signed in. Raises Overloaded."""
    board = panel.board
    if board.readers >= MOST_READERS:
        raise Overloaded(f"{MOST_READERS} pages of live requests are open", hint="close one of them")

    async def work() -> None:
        reader = board.open(viewer.key_id)
        try:
            await board.connected()
            await answer.start((("x-content-type-options", "nosniff"),), _SSE)
            await answer.piece(_message("snapshot", board.calls(reader)))
            alive = time.monotonic()
            while not board.closed.is_set():
                await asyncio.sleep(SECONDS_BETWEEN_MESSAGES)
                changes = reader.take()
                if changes:
                    await answer.piece(_message("calls", changes))
                if time.monotonic() - alive > ALIVE_SECONDS:
                    alive = time.monotonic()
                    if not is_signed_in():
                        break
                    await answer.piece(b": alive\n\n")
        finally:
            board.leave(reader)
        await answer.end(b"")

    with panel.context.onlooking():
        await run_until_disconnect(receive, work())


def _message(name: str, value: object) -> bytes:
    return b"event: %b\ndata: %b\n\n" % (name.encode(), msgspec.json.encode(value))


HTML = "text/html; charset=utf-8"
SECURITY_HEADERS = (
    (
        "content-security-policy",
        "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' data:; connect-src 'self'; "
        "form-action 'self'; frame-ancestors 'none'; base-uri 'none'",
    ),
    ("x-content-type-options", "nosniff"),
    # Not `no-referrer`: browsers then send forms with the origin `null`, which is nobody's.
    ("referrer-policy", "same-origin"),
    ("x-frame-options", "DENY"),
    ("cross-origin-opener-policy", "same-origin"),
    ("cross-origin-resource-policy", "same-origin"),
)
_MOST_FORM_BYTES = 2_000_000
_MOST_FIELDS = 200
_SIGN_IN, _SIGN_OUT, _EVENTS, _STATIC = "/panel/sign-in", "/panel/sign-out", "/panel/events", "/panel/static/"
_THINKING = "/panel/live/"


class PanelServer:
    """Answers the requests to the panel of one gateway."""

    def __init__(self, panel: Panel) -> None:
        self._panel = panel

    async def serve(self, scope: Scope, receive: Receive, answer: Answer) -> None:
        """Answer one request. An error is a page, too."""
        try:
            if scope["path"].startswith(_STATIC):
                await _send_file(self._panel, scope, answer)
            else:
                await _serve(self._panel, scope, receive, answer)
        except ClientDisconnected:
            raise
        except BardoError as problem:
            self._panel.context.services.clean(problem)
            await self.send_problem(scope, answer, problem)
        except Exception:  # noqa: BLE001 - one page fails, and says so as a page
            await self.send_problem(scope, answer, mistake(scope["path"]))

    async def send_problem(self, scope: Scope, answer: Answer, problem: BardoError) -> None:
        """Send an error as a page, unless an answer has begun."""
        if answer.started:
            return
        panel = self._panel
        session = session_of(scope, panel.sessions)
        request = PanelRequest(
            path=scope["path"],
            viewer=viewer_of(session, panel.context.accounts) or Viewer(),
            csrf="" if session is None else panel.sessions.form_token(session),
        )
        page = Page("error.html", problem.message, {"problem": problem, "status": problem.status})
        await _send(
            answer, problem.status, await panel.render(page, request), headers=error_headers(problem, DEFAULT_DIALECT)
        )

    def end_streams(self) -> None:
        """End what goes on without an end of its own."""
        self._panel.board.close()

    def close(self) -> None:
        """Close what the panel has opened."""
        self._panel.close()


def open_panel(context: GatewayContext, settings: Settings, environment: Mapping[str, str] | None) -> PanelServer:
    """Return the panel of a gateway, which blocks while its files are read."""
    return PanelServer(Panel(context, settings, environment, views=VIEWS))


async def _serve(panel: Panel, scope: Scope, receive: Receive, answer: Answer) -> None:
    path, accounts = scope["path"], panel.context.accounts
    if accounts is None:
        check_machine(scope)
    session = session_of(scope, panel.sessions)
    viewer = viewer_of(session, accounts)
    fresh = session or panel.sessions.begin()
    cookie = [] if session is not None else [session_cookie(scope, panel.sessions, fresh)]
    form: Mapping[str, str] = {}
    if scope["method"] == "POST":
        form = await _read_form(panel, session, scope, receive)
    request = PanelRequest(
        path=path,
        method="GET" if scope["method"] == "HEAD" else scope["method"],
        viewer=viewer or Viewer(),
        query=query_of(scope),
        form=form,
        csrf=panel.sessions.form_token(fresh),
    )
    if path == _SIGN_IN and accounts is not None:
        await _sign_in(panel, accounts, session, request, scope, answer, cookie)
    elif path == _SIGN_OUT:
        await _sign_out(panel, session, request, scope, answer)
    elif viewer is None:
        # Show the page to sign in with, and then the one that was asked for.
        if request.path == _EVENTS or request.method != "GET":
            raise Unauthorized("nobody is signed in", hint="open /panel and sign in with a key")
        query = str(scope["query_string"], "latin-1")
        wanted = f"{quote(request.path)}?{query}" if query else quote(request.path)
        await _redirect(answer, f"{_SIGN_IN}?next={quote(wanted, safe='')}", [])
    elif path == _EVENTS:
        signed_in = partial(_is_signed_in, panel, session)
        await send_live_events(panel, viewer, signed_in, receive, answer)
    elif path.startswith(_THINKING):
        page = await show_thinking(panel, viewer, path.removeprefix(_THINKING))
        await _send(answer, 200, await panel.render(page, request), headers=[])
    else:
        await _show(panel, request, answer, cookie)


def _is_signed_in(panel: Panel, session: Session | None) -> bool:
    """Return whether a stream that has begun may go on: its session holds, and its key was not revoked."""
    if panel.context.accounts is None:
        return True
    holds = session is not None and panel.sessions.holds(session)
    return holds and viewer_of(session, panel.context.accounts) is not None


async def _show(panel: Panel, request: PanelRequest, answer: Answer, headers: list[tuple[str, str]]) -> None:
    view, parameters = _find(request.path)
    if request.method not in view.methods:
        raise MethodNotAllowed(f"{request.path} takes {' and '.join(view.methods)}", allowed=view.methods)
    if view.operator_only and not request.viewer.operator:
        raise Forbidden(
            "this page is for operators", hint="sign in with a key made by `bardo keys create NAME --operator`"
        )
    made = await view.show(panel, msgspec.structs.replace(request, parameters=parameters))
    if isinstance(made, Redirect):
        await _redirect(answer, made.location, headers)
        return
    if isinstance(made, Download):
        named = [("content-disposition", f'attachment; filename="{made.name}"'), *headers]
        await answer.page(
            made.content, made.content_type, headers=[("cache-control", "no-store"), *SECURITY_HEADERS, *named]
        )
        return
    await _send(answer, made.status, await panel.render(made, request), headers=headers)


def _find(path: str) -> tuple[View, Mapping[str, str]]:
    """Return the view of a path, and the parts of the path that it names. Raises UnknownRoute."""
    below = path.removeprefix("/panel").rstrip("/") or "/"
    for view in VIEWS:
        found = _pattern(view.path).fullmatch(below)
        if found is not None:
            return view, found.groupdict()
    raise UnknownRoute(f"the panel has no page at {path[:200]}", hint="use the navigation")


@lru_cache(maxsize=256)
def _pattern(path: str) -> re.Pattern[str]:
    """Return what paths of a view look like."""
    return re.compile(re.sub(r"\\\{(\w+)\\\}", r"(?P<\1>[^/]+)", re.escape(path)))


async def _sign_in(
    panel: Panel,
    accounts: Accounts,
    session: Session | None,
    request: PanelRequest,
    scope: Scope,
    answer: Answer,
    cookie: list[tuple[str, str]],
) -> None:
    after, wrong, status = next_page(request.query.get("next", "")), "", 200
    if request.method == "POST":
        after = next_page(request.form.get("next", ""))
        attempt = panel.sign_ins.take(scope)
        if attempt.wait:
            wrong = f"too many wrong keys were tried: try again in {attempt.wait} s"
            page = Page("sign_in.html", "Sign in", {"next": after, "wrong": wrong})
            headers = [("retry-after", str(attempt.wait)), *cookie]
            await _send(answer, RateLimited.status, await panel.render(page, request), headers=headers)
            return
        try:
            account = await accounts.account_of(request.form.get("key", "").strip() or "-")
        except Unauthorized as problem:
            account, wrong, status = None, problem.message, problem.status
        else:
            attempt.was_right()
        if account is not None:
            if session is not None:
                panel.sessions.end(session)
            cookie = [session_cookie(scope, panel.sessions, panel.sessions.begin(account.id))]
            await _redirect(answer, after, cookie)
            return
    page = Page("sign_in.html", "Sign in", {"next": after, "wrong": wrong})
    await _send(answer, status, await panel.render(page, request), headers=cookie)


async def _sign_out(panel: Panel, session: Session | None, request: PanelRequest, scope: Scope, answer: Answer) -> None:
    if request.method != "POST":
        raise MethodNotAllowed("signing out takes POST", allowed=("POST",))
    if session is not None:
        panel.sessions.end(session)
    cookie = session_cookie(scope, panel.sessions, panel.sessions.begin())
    await _redirect(answer, "/panel", [cookie])


async def _read_form(panel: Panel, session: Session | None, scope: Scope, receive: Receive) -> Mapping[str, str]:
    """Return the fields of a form of this session's pages. Raises Forbidden for another's, and for what is no form UnsupportedMediaType."""
    kind = header(scope, b"content-type").partition(";")[0].strip().lower()
    if kind != "application/x-www-form-urlencoded":
        raise UnsupportedMediaType("the panel takes forms", hint="send application/x-www-form-urlencoded")
    body = await read_body(scope, receive, min(panel.context.max_body, _MOST_FORM_BYTES))
    try:
        pairs = parse_qsl(body.decode(), keep_blank_values=True, max_num_fields=_MOST_FIELDS)
    except (UnicodeDecodeError, ValueError) as problem:
        raise InvalidRequest("the form cannot be read", hint="send it from a page of the panel") from problem
    form = dict(pairs)
    if session is None or not panel.sessions.is_own_form(session, form.pop("csrf", "")):
        raise Forbidden("the form is from another session", hint="go back, load the page again, and send it again")
    return form


async def _send_file(panel: Panel, scope: Scope, answer: Answer) -> None:
    """Send a file of the panel's own. Raises UnknownRoute."""
    digest, _, name = scope["path"].removeprefix(_STATIC).rpartition("/")
    found = panel.static.find(digest, name)
    if found is None:
        raise UnknownRoute("the panel has no such file", hint="load the page again")
    file, is_current = found
    tag = f'"{file.digest}"'
    caching = "public, max-age=31536000, immutable" if is_current else "no-cache"
    headers = [("etag", tag), ("cache-control", caching), *SECURITY_HEADERS]
    known = [one.strip().removeprefix("W/") for one in header(scope, b"if-none-match").split(",")]
    if tag in known or "*" in known:
        await answer.page(b"", file.content_type, status=304, headers=headers)
        return
    await answer.page(file.content, file.content_type, headers=headers)


async def _redirect(answer: Answer, location: str, headers: list[tuple[str, str]]) -> None:
    await _send(answer, 303, b"", headers=[("location", location), *headers])


async def _send(answer: Answer, status: int, body: bytes, *, headers: list[tuple[str, str]]) -> None:
    own = [("cache-control", "no-store"), *SECURITY_HEADERS, *headers]
    await answer.page(body, HTML, status=status, headers=own)


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
    """Return who looks, or None if they have to sign in."""
    if accounts is None:
        return Viewer(operator=True)
    account = accounts.active_account(session.account) if session is not None and session.account else None
    return None if account is None else Viewer(account=account, operator=account.operator)


def session_of(scope: Scope, sessions: Sessions) -> Session | None:
    """Return the session of a request's cookie, or None if there is none that holds."""
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
