"""The addresses of a `[[providers]]` table: one as `base_url`, or those of several servers as `base_urls`."""

from __future__ import annotations

from collections.abc import Callable
from typing import Protocol, TypeVar
from urllib.parse import urlsplit

import msgspec

from bardo.engine.route import address_names
from bardo.values.errors import ConfigError
from bardo.values.redaction import shown_url

MOST_ADDRESSES = 64
# What people copy from the documentation of an API together with its base URL.
_API_PATHS = (
    "/chat/completions",
    "/completions",
    "/responses",
    "/messages",
    "/embeddings",
    "/models",
    "/api/chat",
    "/api/generate",
)


class AddressEntry(Protocol):
    """What is looked at of a `[[providers]]` table."""

    @property
    def id(self) -> str: ...
    @property
    def base_url(self) -> str: ...
    @property
    def base_urls(self) -> tuple[str, ...]: ...


E = TypeVar("E", bound=msgspec.Struct)


def is_http_address(url: str) -> bool:
    """Whether a text is an http(s) address with a host."""
    try:
        parts = urlsplit(url)
        return parts.scheme in ("http", "https") and bool(parts.hostname) and parts.port != 0
    except ValueError:
        return False


def check_addresses(entry: AddressEntry, where: Callable[[str], str]) -> None:
    """Raise ConfigError for an address that ends in a path of the API.

    Also where `base_urls` stands beside `base_url`, is too long, names no address, or names one twice.
    """
    urls = entry.base_urls
    for key, url in (("base_url", entry.base_url), *(("base_urls", url) for url in urls)):
        ending = next((path for path in _API_PATHS if url.rstrip("/").endswith(path)), "")
        if ending:
            shorter = shown_url(url.rstrip("/").removesuffix(ending).removesuffix("/"))
            message = f"{where(key)}: the address of provider {entry.id!r} ends in {ending}, which bardo adds itself"
            raise ConfigError(message, hint=f'write {key} = "{shorter}"')
    if not urls:
        return
    place = f"{where('base_urls')}: provider {entry.id!r}"
    if entry.base_url:
        raise ConfigError(f"{place} has base_url and base_urls", hint="list all its addresses in base_urls")
    if len(urls) > MOST_ADDRESSES:
        raise ConfigError(f"{place} has {len(urls)} addresses", hint=f"list at most {MOST_ADDRESSES}")
    wrong = next((url for url in urls if not is_http_address(url)), None)
    if wrong is not None:
        raise ConfigError(f"{place} has {shown_url(wrong)!r} as an address", hint="give http(s) addresses")
    names = address_names(urls)
    twice = next((name for name in names if names.count(name) > 1), None)
    if twice is not None:
        raise ConfigError(f"{place} names the server {twice} twice", hint="name each server once")


def at_first_address(entry: E) -> E:
    """Return a table with the first of its `base_urls` as its `base_url`, by which the rest of it is read."""
    urls: tuple[str, ...] = getattr(entry, "base_urls", ())
    return msgspec.structs.replace(entry, base_url=urls[0]) if urls else entry
