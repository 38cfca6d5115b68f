"""A web page in the place of a reply: its status, provider and title are told, and nothing else of it."""

from __future__ import annotations

import pytest

from bardo.call.upstream import is_page, page_text


@pytest.mark.parametrize(
    ("page", "said"),
    [
        (b"<html><head><title>502 Bad\n Gateway</title>", "lab answered 502 with a web page titled “502 Bad Gateway”"),
        (b"<HTML><TITLE lang=en>A &amp; B</TITLE>", "lab answered 502 with a web page titled “A & B”"),
        (b"<html><body><h1 class='x'>Blocked</h1>", "lab answered 502 with a web page titled “Blocked”"),
        (b"<html><title> </title><body>secret", "lab answered 502 with a web page"),
        (b"<html><body>secret", "lab answered 502 with a web page"),
        (b"<html><title>" + b"x" * 5000, "lab answered 502 with a web page titled “" + "x" * 120 + "”"),
        (b"<html><title>a\x1b[31mb\xff", "lab answered 502 with a web page titled “a[31mb\ufffd”"),
    ],
)
def test_a_page_is_told_by_its_title(page: bytes, said: str) -> None:
    assert page_text(502, page, "lab") == said


@pytest.mark.parametrize(
    ("kind", "body", "page"),
    [
        ("text/html", b"<h1>No</h1>", True),
        ("text/html", b'{"error": {"message": "no"}}', False),
        ("text/html", b"busy", False),
        ("application/json", b"\xef\xbb\xbf \n<!DOCTYPE HTML><p>", True),
        ("text/plain", b"<html>", True),
        ("text/plain", b"<html is no page", True),
        ("application/xml", b"<Error><Message>denied</Message></Error>", False),
        ("", b"", False),
    ],
)
def test_a_page_is_known_by_its_type_or_its_beginning(kind: str, body: bytes, page: bool) -> None:
    assert is_page(kind, body) is page


def test_the_worst_page_takes_no_time() -> None:
    assert "titled" not in page_text(502, b"<title" * 2_000_000, "lab")
    assert "titled" not in page_text(502, b"<h1 " * 3_000_000, "lab")
