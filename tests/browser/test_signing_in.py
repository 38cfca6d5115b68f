"""Signing in to the panel, and errors as pages, in a real browser."""

from __future__ import annotations

from urllib.parse import quote

from browser.checks import faults, keyboard_faults, wide_elements
from browser.conftest import OpenPanel, sign_in
from support.chromium import Chromium
from support.hostile_text import HOSTILE
from support.keyed_gateway import KeyedGateway


def test_a_wrong_key_is_said_to_whoever_hears_the_page(chromium: Chromium, filled: KeyedGateway) -> None:
    address = f"{filled.address}/panel"
    with chromium.tab(width=375, height=700) as tab:
        tab.open(address)
        assert (tab.barriers(), keyboard_faults(tab), wide_elements(tab)) == ([], [], [])
        tab.wait_for(tab.page.get_by_label("Key").fill(HOSTILE["script"]))
        tab.press("Enter")
        tab.wait_for(tab.page.get_by_role("alert").wait_for())
        assert tab.run("document.querySelector('[aria-invalid=true]').getAttribute('aria-describedby')")
        assert tab.barriers() == []
        # The browser itself reports the status 401 of the answer.
        assert [fault for fault in faults(tab, address) if "401" not in fault] == []


def test_the_cookie_of_a_session_is_for_no_script_and_no_other_page(panel: OpenPanel) -> None:
    (cookie,) = panel.cookies
    assert (cookie["httpOnly"], cookie["sameSite"], cookie["path"]) == (True, "Strict", "/panel")
    with panel.tab() as tab:
        tab.open(panel.address)
        assert tab.run("document.cookie") == ""


def test_whoever_signs_out_is_out_everywhere(panel: OpenPanel) -> None:
    with panel.chromium.tab() as tab:
        tab.open(panel.address)
        sign_in(tab, panel.key)
        tab.wait_for(tab.page.get_by_role("button", name="Sign out").click())
        tab.wait_for(tab.page.get_by_label("Key").wait_for())
        tab.wait_for(tab.page.go_back())
        assert tab.run("document.querySelector('form.account') === null")


def test_an_address_that_is_no_page_is_a_page_that_says_so(panel: OpenPanel) -> None:
    with panel.tab() as tab:
        for text in (HOSTILE["script"], HOSTILE["attribute-double-quote"], HOSTILE["bidi-override"], "nowhere"):
            assert tab.open(f"{panel.address}/{quote(text, safe='')}") == 404
            assert tab.barriers() == []
            assert [fault for fault in faults(tab, panel.address) if "404" not in fault] == []


def test_no_page_of_another_origin_holds_the_panel(panel: OpenPanel) -> None:
    with panel.tab() as tab:
        tab.wait_for(tab.page.set_content(f"<iframe src='{panel.address}'></iframe>"))
        tab.wait_for(tab.page.wait_for_load_state("networkidle"))
        frame = tab.page.frames[-1]
        assert not tab.wait_for(frame.evaluate("document.querySelector('main') !== null"))
