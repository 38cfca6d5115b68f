"""Every view of the panel in a real browser: what it may not do, for eyes, for the keyboard, and on a narrow screen."""

from __future__ import annotations

import re

import pytest

from bardo.surfaces.panel.views import VIEWS
from browser.checks import faults, keyboard_faults, wide_elements
from browser.conftest import PLAIN_CALL, SEALED_CALL, OpenPanel

# What a view has to be asked besides.
_QUERIES = {"/catalog/model": "?provider=anthropic&model=claude-sonnet-4-5"}
_PATHS = [view.path for view in VIEWS if "GET" in view.methods and not view.path.endswith(".csv")]
_FURTHER = (
    "/costs?split=model",
    "/costs?by=key&period=30d",
    "/catalog?list=providers",
    "/catalog?list=models&q=%3Cscript%3E",
    f"/requests/{SEALED_CALL}?of={PLAIN_CALL}",
)
EACH_VIEW = pytest.mark.parametrize("path", [*_PATHS, *_FURTHER])


def address_of(panel: OpenPanel, path: str) -> str:
    """Return the address of a view, with an example for the part of its path that it names."""
    example = panel.key_id if path.startswith("/keys/") else PLAIN_CALL
    return panel.address + re.sub(r"\{\w+\}", example, path).rstrip("/") + _QUERIES.get(path, "")


@pytest.mark.sampled(4)
@EACH_VIEW
def test_a_view_does_nothing_but_show_itself_and_is_open_to_everybody(panel: OpenPanel, path: str) -> None:
    address = address_of(panel, path)
    with panel.tab() as tab:
        assert tab.open(address) == 200
        assert tab.run("document.querySelectorAll('h1').length") == 1
        assert tab.barriers() == []
        assert keyboard_faults(tab, most=25) == []
        tab.wait_for(tab.page.set_viewport_size({"width": 375, "height": 700}))
        assert wide_elements(tab) == []
        assert keyboard_faults(tab, most=6) == []
        assert tab.barriers(only=["target-size"]) == []
        assert tab.dark_barriers() == []
        assert faults(tab, address) == []


def test_the_skip_link_is_first_and_leads_to_the_content(panel: OpenPanel) -> None:
    with panel.tab() as tab:
        tab.open(panel.address)
        tab.press("Tab")
        assert tab.run("document.activeElement.className") == "skip"
        assert tab.run("document.activeElement.getBoundingClientRect().left >= 0")
        tab.press("Enter")
        assert tab.run("document.activeElement.id") == "main"
        tab.press("Tab")
        # Where the content has nothing to press, the focus goes round.
        inside = "!!document.activeElement.closest('main')"
        assert tab.run(
            f"{inside} || !document.querySelector('main :is(a[href], button, input, select, textarea, summary)')"
        )


def test_the_page_says_which_view_it_is(panel: OpenPanel) -> None:
    with panel.tab() as tab:
        for path in _PATHS:
            tab.open(address_of(panel, path))
            here = tab.run(
                "[...document.querySelectorAll('nav [aria-current=page]')].map((one) => new URL(one.href).pathname)"
            )
            assert len(here) <= 1, path
            assert tab.run("document.title.endsWith(' · bardo') && document.documentElement.lang === 'en'"), path
