"""The panel of one gateway: its settings, its templates, and the log that its pages read, and how often signing in may fail.

Text of models is shown as HTML: Markdown without HTML of its own, without pictures, and with links to the web and to mail alone. What a
model writes may be chosen by whoever it read. No tag, attribute or address of it gets through that is not named here. What is long is
shown as plain text: the worst text of this length takes markdown-it a second, and the worst piece of code Pygments half of one.
"""

from __future__ import annotations

import asyncio
import ipaddress
import math
import os
import re
import secrets
import threading
from collections import OrderedDict
from collections.abc import Awaitable, Callable, Mapping, Sequence
from functools import cache
from typing import Any, NamedTuple, TypeAlias, TypeVar

from markdown_it import MarkdownIt
from markdown_it.renderer import RendererHTML
from markdown_it.token import Token
from markupsafe import Markup, escape

from bardo.adapters.config.settings import Settings, log_path
from bardo.adapters.stores.log.reader import LogReader
from bardo.surfaces.gateway.context import GatewayContext
from bardo.surfaces.gateway.http import Scope, header
from bardo.surfaces.panel.live_board import LiveBoard
from bardo.surfaces.panel.pages import UNSEEN, Download, Page, PanelRequest, Redirect, StaticFiles, make_environment
from bardo.surfaces.panel.sessions import Sessions
from bardo.values.errors import Unsupported

MOST_TEXT = 50_000
"""Characters of a text that is shown as Markdown; a longer one is shown as it is."""
MOST_CODE = 4_000
"""Characters of a piece of code that is coloured."""
MOST_COLOURED = 16_000
"""Characters of code that is coloured in one text."""
_REPLACEMENT = "\N{REPLACEMENT CHARACTER}"
_LINK = re.compile(r"(?:https?://|mailto:)[^\s\\]", re.IGNORECASE)
_NESTING = 20
# The page's own, that of a section, and that of a turn.
_HEADINGS_ABOVE = 3
# Left out are lexers that take more than half a second for some piece of code of 4,000 characters, that of Java for one.
_LEXERS = {
    "python": "python",
    "py": "python",
    "python3": "python",
    "json": "json",
    "javascript": "javascript",
    "js": "javascript",
    "typescript": "javascript",
    "ts": "javascript",
    "bash": "bash",
    "sh": "bash",
    "shell": "bash",
    "sql": "sql",
    "html": "html",
    "xml": "xml",
    "css": "css",
    "c": "c",
    "cpp": "cpp",
    "c++": "cpp",
    "go": "go",
    "rust": "rust",
    "rs": "rust",
    "yaml": "yaml",
    "yml": "yaml",
    "toml": "toml",
    "ini": "ini",
    "diff": "diff",
    "ruby": "ruby",
    "kotlin": "kotlin",
    "swift": "swift",
    "dockerfile": "docker",
}


def markdown(text: str) -> Markup:
    """Return a text of a model as HTML that is safe to show."""
    if len(text) > MOST_TEXT:
        return Markup('<div class="text">{}</div>').format(UNSEEN.sub(_REPLACEMENT, text))
    made = _parser().render(UNSEEN.sub(_REPLACEMENT, text), {})
    # What stands in a text as `&#x202e;` is a character only now.
    return Markup('<div class="markdown">{}</div>').format(Markup(UNSEEN.sub(_REPLACEMENT, made)))


@cache
def _parser() -> MarkdownIt:
    made = MarkdownIt("commonmark", {"html": False, "maxNesting": _NESTING}, renderer_cls=_Renderer)
    made.enable(["table", "strikethrough"])
    made.validateLink = _is_allowed  # type: ignore[method-assign, assignment]
    # The first parse compiles the rules, which is not thread-safe: a second thread would parse with some of them missing.
    made.parse("text")
    return made


def _is_allowed(address: str) -> bool:
    return _LINK.match(address) is not None


class _Renderer(RendererHTML):
    """Writes tokens as HTML; links say nothing of where they stand, pictures are named and not loaded, code is coloured."""

    def link_open(self, tokens: Sequence[Token], place: int, options: Any, env: Any) -> str:
        """Write the beginning of a link."""
        address = str(tokens[place].attrs.get("href", ""))
        if not _is_allowed(address):
            address = ""
        return f'<a href="{escape(address)}" rel="noopener noreferrer nofollow" target="_blank">'

    def heading_open(self, tokens: Sequence[Token], place: int, options: Any, env: Any) -> str:
        """Write the beginning of a heading, which stands below those of the page."""
        return f"<{_heading(tokens[place])}>"

    def heading_close(self, tokens: Sequence[Token], place: int, options: Any, env: Any) -> str:
        """Write the end of a heading."""
        return f"</{_heading(tokens[place])}>\n"

    def th_open(self, tokens: Sequence[Token], place: int, options: Any, env: Any) -> str:
        """Write the beginning of a head of a table."""
        return _cell_open(tokens[place])

    def td_open(self, tokens: Sequence[Token], place: int, options: Any, env: Any) -> str:
        """Write the beginning of a cell of a table."""
        return _cell_open(tokens[place])

    def image(self, tokens: Sequence[Token], place: int, options: Any, env: Any) -> str:
        """Write what a picture shows, in words."""
        token = tokens[place]
        words = self.renderInlineAsText(token.children, options, env) if token.children else token.content
        return f'<span class="muted">[picture: {escape(words)}]</span>'

    def fence(self, tokens: Sequence[Token], place: int, options: Any, env: Any) -> str:
        """Write a block of code."""
        token = tokens[place]
        language = token.info.split(maxsplit=1)[0].lower() if token.info.strip() else ""
        env["coloured"] = env.get("coloured", 0) + len(token.content)
        return str(code(token.content, language if env["coloured"] <= MOST_COLOURED else ""))


def _heading(token: Token) -> str:
    return f"h{min(6, int(token.tag[1:]) + _HEADINGS_ABOVE)}"


def _cell_open(token: Token) -> str:
    """Write the beginning of a cell. The page's policy allows no style in an element, so that its alignment is a class."""
    side = str(token.attrs.get("style", "")).removeprefix("text-align:")
    return f'<{token.tag} class="{side}">' if side in ("center", "right") else f"<{token.tag}>"


def code(text: str, language: str) -> Markup:
    """Return a piece of code as HTML, coloured where its language is known."""
    lexer = _LEXERS.get(language) if len(text) <= MOST_CODE else None
    # A region that scrolls must be reachable by the keyboard.
    frame = Markup('<pre tabindex="0"><code>{}</code></pre>')
    return frame.format(text if lexer is None else _highlighted(text, lexer))


def json_code(value: str) -> Markup:
    """Return JSON text as HTML."""
    return code(UNSEEN.sub(_REPLACEMENT, value), "json")


def _highlighted(text: str, lexer: str) -> Markup:
    from pygments import highlight
    from pygments.formatters.html import HtmlFormatter
    from pygments.lexers import get_lexer_by_name

    formatter = HtmlFormatter(nowrap=True, classprefix="hl-")
    return Markup(highlight(text, get_lexer_by_name(lexer, stripnl=False), formatter))


TEXT_FILTERS: Mapping[str, Any] = {"markdown": markdown, "json_code": json_code}
"""The filters of templates that write texts of models."""


_MOST_ADDRESSES = 10_000
_NETWORK_BITS = 64
"""Whoever has one address of IPv6 has all of its network."""


SECRET_VARIABLE = "BARDO_PANEL_SECRET"
"""The variable that holds what the cookies of sessions are signed with; without it each start of a gateway has a secret of its own."""

Found = TypeVar("Found")


class Panel:
    """What views are given, which are `views`. `context` is that of the gateway: its services, its keys and its events."""

    def __init__(
        self,
        context: GatewayContext,
        settings: Settings,
        environment: Mapping[str, str] | None = None,
        *,
        views: Sequence[View],
    ) -> None:
        self.context = context
        self._views = views
        self.settings = settings
        self.environment: Mapping[str, str] = os.environ if environment is None else environment
        secret = self.environment.get(SECRET_VARIABLE, "").encode() or secrets.token_bytes(32)
        self.sessions = Sessions(secret, context.services.clock)
        self.sign_ins = SignInLimits(context.services.watch)
        self.static = StaticFiles()
        self.board = LiveBoard(context.services.events)
        self._templates = make_environment(self.static)
        self._templates.filters.update(TEXT_FILTERS)
        # Rendering takes processor time that calls need: one page at a time.
        self._rendering = asyncio.Semaphore(1)
        self._log: LogReader | None = None
        self._opening = threading.Lock()

    @property
    def keeps_content(self) -> bool:
        """Whether the operator logs content: without it no page shows any."""
        return self.settings.log.content

    async def read_log(self, read: Callable[[LogReader], Found]) -> Found:
        """Return what `read` finds in the log, in a thread. Raises LogProblem, and Unsupported where no log is kept."""
        if not self.settings.log.enabled:
            raise Unsupported("this gateway keeps no log", hint="set enabled = true under [log] in bardo.toml")
        return await asyncio.to_thread(self._read, read)

    async def render(self, page: Page, request: PanelRequest) -> bytes:
        """Return a page as HTML, made in a thread."""
        async with self._rendering:
            return await asyncio.to_thread(self._render, page, request)

    def close(self) -> None:
        """Close the log."""
        if self._log is not None:
            self._log.close()

    def _render(self, page: Page, request: PanelRequest) -> bytes:
        values = {
            "title": page.title,
            "viewer": request.viewer,
            "csrf": request.csrf,
            "path": request.path,
            "asks_for_keys": self.context.accounts is not None,
            "keeps_content": self.keeps_content,
            "views": [one for one in self._views if one.title and (request.viewer.operator or not one.operator_only)],
            **page.values,
        }
        return self._templates.get_template(page.template).render(values).encode("utf-8", "replace")

    def _read(self, read: Callable[[LogReader], Found]) -> Found:
        with self._opening:
            if self._log is None:
                self._log = LogReader(log_path(self.settings, self.environment))
        return read(self._log)


Show: TypeAlias = Callable[[Panel, PanelRequest], Awaitable[Page | Redirect | Download]]
"""Makes a page. It may raise BardoError, which is shown as a page too."""


class View(NamedTuple):
    """A view: its path below `/panel`, where `{name}` stands for a part of a path, its title in the navigation, and its function.

    A view without a title is not in the navigation. `operator_only`: keys that are no operator's get an error.
    """

    path: str
    title: str
    show: Show
    methods: tuple[str, ...] = ("GET",)
    operator_only: bool = False


class Allowance(NamedTuple):
    """So many tries at once, and one more after each `seconds`."""

    tries: int
    seconds: float


OF_ONE = Allowance(5, 10.0)
OF_FAILED = Allowance(50, 1.0)
"""Of all addresses that have failed before, together."""
OF_NEW = Allowance(200, 0.1)
"""Of all addresses that have not."""


class _Bucket:
    """The tries that are left of an allowance."""

    def __init__(self, allowance: Allowance, now: float) -> None:
        self._allowance = allowance
        self._left = float(allowance.tries)
        self._at = now

    def wait(self, now: float) -> float:
        """Return after how many seconds there is a try left, 0 where there is one."""
        most, seconds = self._allowance
        self._left = min(most, self._left + max(0.0, now - self._at) / seconds)
        self._at = now
        return max(0.0, (1 - self._left) * seconds)

    def is_full(self, now: float) -> bool:
        """Whether nothing of it is used."""
        self.wait(now)
        return self._left >= self._allowance.tries

    def take(self, tries: int = 1) -> None:
        """Use tries, or give them back."""
        self._left -= tries


class SignInLimits:
    """Counts the tries of one process, so that nobody finds a key by trying. `watch` gives seconds that never jump.

    Tries are counted at each address and at all together. A try that turns out right costs nothing, and an address that has not failed yet
    is not held up by those that have.
    """

    def __init__(self, watch: Callable[[], float]) -> None:
        self._watch = watch
        self._failed = _Bucket(OF_FAILED, watch())
        self._new = _Bucket(OF_NEW, watch())
        self._addresses: OrderedDict[str, _Bucket] = OrderedDict()

    def take(self, scope: Scope) -> SignInTry:
        """Take a try before the key is looked at, since others may come meanwhile."""
        now, address = self._watch(), _address_of(scope)
        own = self._addresses.get(address)
        if own is None:
            own = self._addresses[address] = _Bucket(OF_ONE, now)
            if len(self._addresses) > _MOST_ADDRESSES:
                self._addresses.popitem(last=False)
        self._addresses.move_to_end(address)
        together = self._new if own.is_full(now) else self._failed
        wait = max(own.wait(now), together.wait(now))
        buckets = () if wait else (own, together)
        for bucket in buckets:
            bucket.take()
        return SignInTry(wait=math.ceil(wait), buckets=buckets)


class SignInTry(NamedTuple):
    """A try. `wait`: it may not be made, and in so many seconds one may."""

    wait: int
    buckets: tuple[_Bucket, ...]

    def was_right(self) -> None:
        """Give the try back."""
        for bucket in self.buckets:
            bucket.take(-1)


def _address_of(scope: Scope) -> str:
    """Return the address that a request came from: where a proxy of this machine sent it, what that one says of it."""
    client = scope.get("client")
    found = _parsed(str(client[0])) if client else None
    if found is not None and found.is_loopback:
        # The last address is the one that the proxy itself has seen.
        found = _parsed(header(scope, b"x-forwarded-for").rpartition(",")[2].strip()) or found
    if isinstance(found, ipaddress.IPv6Address):
        return str(ipaddress.ip_network((found, _NETWORK_BITS), strict=False))
    return str(found)


def _parsed(text: str) -> ipaddress.IPv4Address | ipaddress.IPv6Address | None:
    try:
        found = ipaddress.ip_address(text)
    except ValueError:
        return None
    return getattr(found, "ipv4_mapped", None) or found
