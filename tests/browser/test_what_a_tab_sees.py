"""The browser of the tests reports what a page must not do: a tab that saw nothing would let every other test here pass."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

import pytest

from support.chromium import Chromium
from support.hostile_text import HIT, HOST, HOSTILE

_PAGE = f"""<!doctype html><html lang="en"><head><title>x</title></head><body><main><h1>x</h1>
<script>{HIT}; alert("x"); console.warn("y"); throw new Error("z")</script>
<img src="https://{HOST}/x.png"><button></button></main></body></html>"""
_QUIET = '<!doctype html><html lang="en"><head><title>x</title><link rel=icon href="data:,"></head><body><h1>x</h1></body></html>'


class _Pages(BaseHTTPRequestHandler):
    """`/open` has no policy, `/closed` the strictest, `/quiet` nothing to complain of."""

    def do_GET(self) -> None:
        page = (_QUIET if self.path == "/quiet" else _PAGE).encode()
        self.send_response(200)
        self.send_header("content-type", "text/html; charset=utf-8")
        self.send_header("content-length", str(len(page)))
        if self.path == "/closed":
            self.send_header("content-security-policy", "default-src 'none'")
        self.end_headers()
        self.wfile.write(page)

    def log_message(self, *_: object) -> None:
        """Write nothing."""


@pytest.fixture(scope="module")
def address() -> Iterator[str]:
    with ThreadingHTTPServer(("127.0.0.1", 0), _Pages) as server:
        thread = threading.Thread(target=server.serve_forever)
        thread.start()
        yield f"http://127.0.0.1:{server.server_address[1]}"
        server.shutdown()
        thread.join()


def test_a_script_a_dialog_a_request_and_a_barrier_are_seen(chromium: Chromium, address: str) -> None:
    with chromium.tab() as tab:
        tab.open(f"{address}/open")
        assert tab.run("window.__hit") == 1
        assert tab.seen.dialogs == ["x"]
        assert f"https://{HOST}/x.png" in tab.seen.requests
        assert {"warning: y", "error: z"} <= set(tab.seen.errors)
        assert {barrier.partition(":")[0] for barrier in tab.barriers()} == {"image-alt", "button-name"}


def test_what_a_policy_refuses_is_seen(chromium: Chromium, address: str) -> None:
    with chromium.tab() as tab:
        tab.open(f"{address}/closed")
        assert tab.run("window.__hit") is None
        assert {refused.partition(":")[0] for refused in tab.violations()} == {"script-src-elem", "img-src"}


def test_a_quiet_page_is_quiet(chromium: Chromium, address: str) -> None:
    with chromium.tab(dark=True) as tab:
        assert tab.open(f"{address}/quiet") == 200
        assert (tab.seen.errors, tab.seen.dialogs, tab.violations(), tab.barriers()) == ([], [], [], [])
        assert tab.seen.visited == tab.seen.requests == [f"{address}/quiet"]


def test_hostile_texts_run_where_nothing_keeps_them_from_it(chromium: Chromium, address: str) -> None:
    with chromium.tab() as tab:
        tab.open(f"{address}/quiet")
        tab.run("(text) => { document.body.innerHTML = text; }", HOSTILE["image-onerror"] + HOSTILE["dialogs"])
        tab.until("window.__hit === 1")
        assert tab.seen.dialogs[:1] == ["1"]
