"""What a view of the panel is given, and what it gives back."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, NamedTuple, TypeAlias

import msgspec

from bardo.adapters.config.accounts import Account

if TYPE_CHECKING:
    from bardo.surfaces.panel.panel import Panel

_NOTHING: Mapping[str, str] = MappingProxyType({})


class Viewer(msgspec.Struct, frozen=True, kw_only=True):
    """Who looks at the panel: the account of a key, or None where the gateway asks for no keys. An operator sees the calls of all keys."""

    account: Account | None = None
    operator: bool = False

    @property
    def key_id(self) -> str | None:
        """The key whose calls alone may be shown; None where those of all keys may."""
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


Show: TypeAlias = "Callable[[Panel, PanelRequest], Awaitable[Page | Redirect | Download]]"
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
