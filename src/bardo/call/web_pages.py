"""What a web page says that comes in the place of a provider's reply: its title, and nothing else of it."""

from __future__ import annotations

import html
import re

_BEGINNINGS = (b"<!doctype html", b"<html")
_MOST_BYTES = 64 * 1024
_MOST_TITLE = 120
_TITLE = re.compile(r"<(title|h1)\b[^<>]{0,1000}>([^<]{0,2000})", re.IGNORECASE)


def is_page(kind: str, body: bytes) -> bool:
    """Return whether a body is a web page, by its content type `kind` or by how it begins."""
    beginning = body[:1024].removeprefix(b"\xef\xbb\xbf").lstrip()[:15].lower()
    return beginning.startswith(_BEGINNINGS) or (
        kind in ("text/html", "application/xhtml+xml") and beginning[:1] == b"<"
    )


def page_text(status: int, body: bytes, provider: str) -> str:
    """Return a sentence with the provider, the status and the title of its page."""
    found = _TITLE.search(body[:_MOST_BYTES].decode("utf-8", "replace"))
    words = " ".join(html.unescape(found[2]).split()) if found else ""
    title = "".join(sign for sign in words if sign.isprintable())[:_MOST_TITLE].strip()
    return f"{provider} answered {status} with a web page" + (f" titled “{title}”" if title else "")
