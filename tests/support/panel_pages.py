"""Pages of the panel as a browser without scripts sees them: signed in over HTTP, and read as tables, forms and texts."""

from __future__ import annotations

from dataclasses import dataclass, field
from html.parser import HTMLParser
from typing import Any
from urllib.parse import urlencode

import httpx

from support.patience import PATIENCE

_FORM = {"content-type": "application/x-www-form-urlencoded"}


@dataclass
class SeenTable:
    """A table: its caption, its heads, and its rows of cells as texts."""

    caption: str = ""
    heads: list[str] = field(default_factory=list)
    rows: list[list[str]] = field(default_factory=list)

    def row(self, first: str) -> dict[str, str]:
        """Return the cells of the row that begins with a text, by their heads."""
        found = next(row for row in self.rows if row[0].startswith(first))
        return dict(zip(self.heads, found, strict=True))

    def column(self, head: str) -> list[str]:
        """Return the cells of a column."""
        return [row[self.heads.index(head)] for row in self.rows]


class SeenPage(HTMLParser):
    """A page, read."""

    def __init__(self, response: httpx.Response) -> None:
        super().__init__(convert_charrefs=True)
        self.status = response.status_code
        self.html = response.text
        self.tables: list[SeenTable] = []
        self.headings: list[tuple[str, str]] = []
        self.links: list[str] = []
        self.fields: dict[str, dict[str, str | None]] = {}
        self.labels: set[str] = set()
        self.tags: list[str] = []
        self.csrf = ""
        self.text = ""
        self._open: list[str] = []
        self._cell: list[str] | None = None
        self._in_head = False
        self.feed(response.text)
        self.close()

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        values = dict(attrs)
        self.tags.append(tag)
        self._open.append(tag)
        if tag == "table":
            self.tables.append(SeenTable())
        elif tag == "thead":
            self._in_head = True
        elif tag == "tr" and not self._in_head:
            self.tables[-1].rows.append([])
        elif tag in ("td", "th", "caption", "h1", "h2", "h3"):
            self._cell = []
        elif tag == "a" and values.get("href"):
            self.links.append(str(values["href"]))
        elif tag == "label" and values.get("for"):
            self.labels.add(str(values["for"]))
        elif tag in ("input", "select", "textarea") and values.get("name"):
            self._field(values)

    def handle_startendtag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.handle_starttag(tag, attrs)

    def handle_endtag(self, tag: str) -> None:
        text = " ".join("".join(self._cell or []).split())
        if tag == "thead":
            self._in_head = False
        elif tag == "caption":
            self.tables[-1].caption = text
        elif tag in ("td", "th"):
            (self.tables[-1].heads if self._in_head else self.tables[-1].rows[-1]).append(text)
        elif tag in ("h1", "h2", "h3"):
            self.headings.append((tag, text))
        if tag in ("td", "th", "caption", "h1", "h2", "h3"):
            self._cell = None

    def handle_data(self, data: str) -> None:
        self.text += data
        if self._cell is not None:
            self._cell.append(data)

    def table(self, name: str) -> SeenTable:
        """Return the table whose caption begins with a text."""
        return next(one for one in self.tables if one.caption.startswith(name))

    def unlabelled(self) -> list[str]:
        """Return the fields of forms that no label and no other name belongs to."""
        seen = {name: values for name, values in self.fields.items() if values.get("type") != "hidden"}
        return [
            name
            for name, values in seen.items()
            if values.get("id") not in self.labels and not values.get("aria-label")
        ]

    def _field(self, values: dict[str, str | None]) -> None:
        name = str(values["name"])
        self.fields[name] = values
        if name == "csrf":
            self.csrf = str(values.get("value"))


class PanelReader:
    """A browser without scripts that keeps its cookie. Where `key` is empty, nobody signs in."""

    def __init__(self, address: str, key: str = "") -> None:
        self.address = address
        self.client = httpx.Client(base_url=address, timeout=PATIENCE)
        if key:
            token = SeenPage(self.client.get("/panel/sign-in")).csrf
            answer = self._send("/panel/sign-in", {"key": key, "csrf": token})
            assert answer.status_code == 303, answer.text

    def get(self, path: str, **query: Any) -> httpx.Response:
        """Return what is answered to a GET."""
        return self.client.get(f"/panel{path}", params=query or None)

    def page(self, path: str, **query: Any) -> SeenPage:
        """Return a page that there is."""
        found = SeenPage(self.get(path, **query))
        assert found.status == 200, found.text
        return found

    def send(self, path: str, form: dict[str, str], *, at: str = "") -> httpx.Response:
        """Send a form of the page at `at`, by default of the page it is sent to, with its token."""
        token = SeenPage(self.get(at or path)).csrf
        return self._send(f"/panel{path}", {**form, "csrf": token})

    def close(self) -> None:
        """Let go of the connection."""
        self.client.close()

    def _send(self, path: str, form: dict[str, str]) -> httpx.Response:
        headers = {**_FORM, "origin": self.address}
        return self.client.post(path, content=urlencode(form), headers=headers)
