"""Hostile texts as answers, thinking, calls of tools, questions, names and errors: they stay text, and in their place."""

from __future__ import annotations

from urllib.parse import quote

from browser.checks import bad_links, faults, keyboard_faults, outside, wide_elements
from browser.conftest import HOSTILE_CALL, HOSTILE_NAMES, PLAIN_CALL, SEALED_CALL, OpenPanel
from support.hostile_rows import hostile_row
from support.hostile_text import HIT, HOST, HOSTILE


def test_every_text_of_a_call_stays_text(panel: OpenPanel) -> None:
    address = f"{panel.address}/requests/{HOSTILE_CALL}"
    with panel.tab() as tab:
        assert tab.open(address) == 200
        shown = tab.run("document.querySelectorAll('article .markdown, article pre').length")
        assert shown >= 4 * len(HOSTILE), "a text is not shown"
        assert (
            tab.run(
                "document.querySelectorAll('main script, main iframe, main style, main object, main img, main base').length"
            )
            == 0
        )
        for number in range(5):
            tab.run("(part) => scrollTo(0, document.documentElement.scrollHeight * part)", number / 4)
        assert faults(tab, address) == []
        assert bad_links(tab, "article") == []
        assert outside(tab, "article .markdown") == []
        assert outside(tab, "article") == []
        # The forms and ids are those of the page.
        assert (
            tab.run("[...document.forms].map((one) => new URL(one.action).host === location.host).includes(false)")
            is False
        )
        assert tab.run("document.querySelectorAll('#main').length") == 1
        assert HIT in tab.run("document.querySelector('main').textContent")
        # These two take half a minute for thousands of links, which are as small as their author made them.
        assert tab.barriers(without=["target-size", "color-contrast"]) == []
        tab.wait_for(tab.page.set_viewport_size({"width": 375, "height": 700}))
        assert wide_elements(tab) == []
        assert outside(tab, "article") == []


def test_a_click_on_every_link_of_a_text_leads_to_the_web_in_a_window_of_its_own(panel: OpenPanel) -> None:
    with panel.tab() as tab:
        tab.open(f"{panel.address}/requests/{HOSTILE_CALL}")
        found = tab.run(
            "[...document.querySelectorAll('article a')].map((one) => [one.protocol, one.host, one.target])"
        )
        assert found
        assert {protocol for protocol, _, _ in found} <= {"http:", "https:", "mailto:"}
        assert {host for protocol, host, _ in found if protocol != "mailto:"} >= {HOST}
        assert {target for _, _, target in found} == {"_blank"}


def test_lists_of_hostile_names_stay_lists(panel: OpenPanel) -> None:
    with panel.tab() as tab:
        for path in (
            "/requests",
            "/requests?span=30d",
            "/costs?by=model",
            "/costs?by=key",
            "/costs?by=day&split=model",
            "/health",
        ):
            address = f"{panel.address}{path}"
            assert tab.open(address) == 200
            assert (path, faults(tab, address)) == (path, [])
            assert (path, wide_elements(tab)) == (path, [])


def test_calls_with_hostile_names_have_pages(panel: OpenPanel) -> None:
    with panel.tab() as tab:
        for number, name in enumerate(HOSTILE_NAMES):
            row = hostile_row(HOSTILE[name], number)
            address = f"{panel.address}/requests/{quote(row.request_id, safe='')}"
            status = tab.open(address)
            assert (name, status in (200, 404)) == (name, True)
            assert (name, [fault for fault in faults(tab, address) if "404" not in fault]) == (name, [])
            assert (name, wide_elements(tab)) == (name, [])
            tab.seen.errors.clear()


def test_what_was_searched_for_is_shown_as_it_was_written(panel: OpenPanel) -> None:
    with panel.tab() as tab:
        for name in ("attribute-double-quote", "script-after-closers", "template-double-braces"):
            address = f"{panel.address}/requests?model={quote(HOSTILE[name])}"
            assert tab.open(address) == 200
            assert tab.run("document.getElementById('field-model').value") == HOSTILE[name].strip()
            assert faults(tab, address) == []


def test_an_answer_is_markdown_and_its_thinking_folds_by_the_keyboard(panel: OpenPanel) -> None:
    address = f"{panel.address}/requests/{PLAIN_CALL}"
    with panel.tab() as tab:
        tab.open(address)
        assert tab.run("document.querySelector('article.answer .markdown table td:last-child').textContent") == "1080"
        assert tab.run("document.querySelectorAll('article.answer pre code span').length") > 0
        tab.run("document.querySelector('article.answer summary').focus()")
        is_open = tab.run("document.querySelector('article.answer details').open")
        for expected in (not is_open, is_open):
            tab.press("Enter")
            assert tab.run("document.querySelector('article.answer details').open") is expected
        assert keyboard_faults(tab) == []
        assert faults(tab, address) == []


def test_thinking_that_cannot_be_read_shows_its_tokens(panel: OpenPanel) -> None:
    with panel.tab() as tab:
        tab.open(f"{panel.address}/requests/{SEALED_CALL}")
        assert "Reasoning performed (not visible) · 777 tokens" in tab.run("document.querySelector('main').textContent")
        assert "c2VhbGVk" not in tab.run("document.querySelector('article.answer').textContent")


def test_a_long_name_leaves_the_other_columns_in_sight(panel: OpenPanel) -> None:
    """At the usual width: the outcome, the tokens and the cost of each call are seen without scrolling."""
    with panel.tab(width=1280) as tab:
        tab.open(f"{panel.address}/requests")
        right = tab.run(
            "[...document.querySelectorAll('td.num:nth-child(9)')].map((one) => one.getBoundingClientRect().right)"
        )
        assert right
        assert max(right) < 1280
