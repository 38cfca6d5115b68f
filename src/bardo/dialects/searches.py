"""Searches of the web in a conversation, in one form between the dialects: what was asked, and which pages were found.

A dialect declares a SearchForm. Text of pages that the gateway found stands where a dialect has ciphertext, marked as the gateway's own.
"""

from __future__ import annotations

import base64
import binascii
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Literal

import msgspec

SearchError = Literal["", "unavailable", "too_many_requests", "max_uses_exceeded", "invalid_input", "query_too_long"]
"""Why a search gave nothing, in Anthropic's words; empty where it did."""
_OWN_TEXT = "bardo-text:"


class WebPage(msgspec.Struct, frozen=True, kw_only=True):
    """One page that was found: its address, its title, some of its text, and its date as the service wrote it."""

    url: str
    title: str = ""
    text: str = ""
    date: str = ""


class SearchResults(msgspec.Struct, frozen=True, kw_only=True):
    """What a search gave: pages, best first, or the `error` for which it gave none."""

    pages: tuple[WebPage, ...] = ()
    error: SearchError = ""


class SearchPart(msgspec.Struct, frozen=True, kw_only=True):
    """One block of a search in a history: the call `id` with its `query`, what it found, or both. `own`: the gateway made the search."""

    id: str
    query: str | None = None
    results: SearchResults | None = None
    own: bool = False


@dataclass(frozen=True, kw_only=True, eq=False)
class SearchForm:
    """How a dialect shows a search: `write` gives its blocks, for a key that is unique in the reply, and `read` takes one of them.

    `read` returns None for a block that is no part of a search.
    """

    write: Callable[[str, str, SearchResults], list[dict[str, Any]]]
    read: Callable[[dict[str, Any]], SearchPart | None]


def seal_text(text: str) -> str:
    """Return the text of a page for a field where the dialect has ciphertext."""
    return _OWN_TEXT + base64.b64encode(text.encode()).decode()


def unseal_text(value: Any) -> str | None:
    """Return the text of a page that `seal_text` wrote; None for a provider's ciphertext and for anything else."""
    if not isinstance(value, str) or not value.startswith(_OWN_TEXT):
        return None
    try:
        return base64.b64decode(value.removeprefix(_OWN_TEXT), validate=True).decode("utf-8", "replace")
    except (binascii.Error, ValueError):
        return ""
