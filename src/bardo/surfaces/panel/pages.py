"""What a view of the panel is given, and what it gives back, rendered by templates, with the files that pages load.

Every value in a template is escaped, and none can hide or reorder what stands around it.
"""

from __future__ import annotations

import hashlib
import re
import time
from collections.abc import Mapping
from datetime import UTC, datetime
from pathlib import Path
from types import MappingProxyType
from typing import Any, NamedTuple
from urllib.parse import urlencode

import jinja2
import msgspec
from markupsafe import Markup

from bardo.adapters.config.accounts import Account
from bardo.surfaces.render.wording import NOT_REPORTED, count, dollars, excerpt, moment, seconds
from bardo.values.usage import usd

_FOLDER = Path(__file__).with_name("static")
_TYPES = {".css": "text/css; charset=utf-8", ".js": "text/javascript; charset=utf-8", ".svg": "image/svg+xml"}
_DIGITS = 16


class StaticFile(NamedTuple):
    """A file, its content type, and the digest of its content."""

    content: bytes
    content_type: str
    digest: str


class StaticFiles:
    """The files, read once."""

    def __init__(self) -> None:
        self._files = {path.name: _read(path) for path in sorted(_FOLDER.iterdir()) if path.suffix in _TYPES}

    def find(self, digest: str, name: str) -> tuple[StaticFile, bool] | None:
        """Return a file, and whether the address names this very content, so that it never changes, or None if there is no such file."""
        found = self._files.get(name)
        return None if found is None else (found, found.digest == digest)

    def address(self, name: str) -> str:
        """Return where pages find a file."""
        return f"/panel/static/{self._files[name].digest}/{name}"


def _read(path: Path) -> StaticFile:
    content = path.read_bytes()
    return StaticFile(content, _TYPES[path.suffix], hashlib.sha256(content).hexdigest()[:_DIGITS])


_NOTHING: Mapping[str, str] = MappingProxyType({})


class Viewer(msgspec.Struct, frozen=True, kw_only=True):
    """Who looks at the panel: the account of a key, or None if the gateway asks for no keys. An operator sees the calls of all keys."""

    account: Account | None = None
    operator: bool = False

    @property
    def key_id(self) -> str | None:
        """The key whose calls alone may be shown, or None if those of all keys may."""
        return None if self.operator or self.account is None else self.account.id

    @property
    def name(self) -> str:
        """What the page calls them; empty where nobody signed in."""
        return "" if self.account is None else self.account.name or self.account.id


class PanelRequest(msgspec.Struct, frozen=True, kw_only=True):
    """A request to a view. `parameters` are the parts of its path, `form` the fields of a form that was sent (POST), empty for a GET.

    `csrf` is the token that every form holds: `{{ csrf_field() }}` writes it, and it was checked before a view sees a form.
    """

    path: str
    viewer: Viewer
    method: str = "GET"
    parameters: Mapping[str, str] = _NOTHING
    query: Mapping[str, str] = _NOTHING
    form: Mapping[str, str] = _NOTHING
    csrf: str = ""


class Page(msgspec.Struct, frozen=True):
    """A page: its template in `templates`, its title, and the values of the template."""

    template: str
    title: str
    values: Mapping[str, Any] = _NOTHING
    status: int = 200


class Redirect(msgspec.Struct, frozen=True):
    """The address of another page of the panel, which is to be shown next."""

    location: str


class Download(msgspec.Struct, frozen=True):
    """A file that a browser keeps: its name, its content type and its content."""

    name: str
    content_type: str
    content: bytes


_TEMPLATES = Path(__file__).with_name("templates")
# Control characters but tab and line break, and those that turn the direction of text around.
UNSEEN = re.compile(
    "[\0-\x08\x0b\x0c\x0e-\x1f\x7f-\x9f\u061c\u200e\u200f\u2028\u2029\u202a-\u202e\u2066-\u2069\ufff9-\ufffb\ud800-\udfff]"
)


def make_environment(static: StaticFiles) -> jinja2.Environment:
    """Return the templates, with the filters and functions that they use."""
    made = jinja2.Environment(
        loader=jinja2.FileSystemLoader(_TEMPLATES),
        autoescape=True,
        undefined=jinja2.StrictUndefined,
        auto_reload=False,
        trim_blocks=True,
        lstrip_blocks=True,
        finalize=visible_text,
    )
    made.filters |= {
        "count": _count,
        "dollars": dollars,
        "nanos": _nanos,
        "seconds": _seconds,
        "moment": _moment,
        "excerpt": excerpt,
        "as_json": as_json,
    }
    made.globals |= {"asset": static.address, "csrf_field": _csrf_field, "query": query_text}
    return made


def visible_text(value: Any) -> Any:
    """Return a value as a page may hold it: without control characters, and without those that turn text around."""
    if value is None:
        return NOT_REPORTED
    if isinstance(value, Markup) or not isinstance(value, str):
        return value
    return UNSEEN.sub("\N{REPLACEMENT CHARACTER}", value)


def as_json(value: Any) -> str:
    """Return a value as JSON on several lines."""
    return msgspec.json.format(msgspec.json.encode(value), indent=2).decode()


def query_text(values: Mapping[str, Any], **changes: Any) -> str:
    """Return the query of an address with values and changes; what is empty or None is left out."""
    return urlencode({name: value for name, value in {**values, **changes}.items() if value not in ("", None)})


@jinja2.pass_context
def _csrf_field(context: jinja2.runtime.Context) -> Markup:
    return Markup('<input type="hidden" name="csrf" value="{}">').format(context["csrf"])


def _count(number: int | None, estimated: bool = False) -> str:
    return count(number, estimated=estimated)


def _seconds(duration: float | None) -> str:
    return NOT_REPORTED if duration is None else seconds(duration)


def _nanos(amount: int | None) -> str:
    """Write nano-dollars as US dollars."""
    return dollars(None if amount is None else usd(amount))


def _moment(unix_time: float | None) -> Markup:
    """Write a time, with the exact one for machines and as a title."""
    if unix_time is None:
        return Markup(NOT_REPORTED)
    exact = datetime.fromtimestamp(unix_time, UTC).isoformat(timespec="seconds")
    return Markup('<time datetime="{0}" title="{0}">{1}</time>').format(exact, moment(unix_time, time.time()))
