"""The forms of the panel by the keyboard alone, with hostile texts in their fields."""

from __future__ import annotations

import pytest

from browser.checks import faults, wide_elements
from browser.conftest import PLAIN_CALL, OpenPanel
from support.chromium import Tab
from support.hostile_text import HOSTILE

_TEXTS = ("script-after-closers", "attribute-double-quote", "template-double-braces", "bidi-override", "label-quotes")


def send(tab: Tab, fields: dict[str, str], button: str) -> None:
    """Fill in fields by their labels, send the form with its button, and wait for the page that answers."""
    for label, text in fields.items():
        tab.wait_for(tab.page.get_by_label(label, exact=True).fill(text))
    tab.wait_for(tab.page.get_by_role("button", name=button, exact=True).focus())
    tab.follow("Enter")


def test_a_request_is_explained(panel: OpenPanel) -> None:
    address = f"{panel.address}/explain"
    with panel.tab() as tab:
        tab.open(address)
        send(tab, {"Model": "anthropic/claude-sonnet-4-5", "Thinking": "high", "Prompt": HOSTILE["script"]}, "Explain")
        assert tab.run("document.getElementById('section-1') !== null")
        assert "budget_tokens" in tab.run("document.querySelector('main').textContent")
        assert (faults(tab, address), tab.barriers(), tab.dark_barriers()) == ([], [], [])
        tab.wait_for(tab.page.set_viewport_size({"width": 375, "height": 700}))
        assert wide_elements(tab) == []


@pytest.mark.parametrize("name", _TEXTS)
def test_what_cannot_be_explained_is_said_at_its_field(panel: OpenPanel, name: str) -> None:
    address = f"{panel.address}/explain"
    with panel.tab() as tab:
        tab.open(address)
        send(tab, {"Model": HOSTILE[name], "Or the full request body, as JSON": HOSTILE[name]}, "Explain")
        # No page shows what turns the direction of text around.
        kept = HOSTILE[name].replace("\u202e", "\N{REPLACEMENT CHARACTER}")
        assert tab.run("document.getElementById('field-body').value") == kept
        assert tab.run("document.querySelector('[aria-invalid=true]').getAttribute('aria-describedby')") == "problem"
        assert tab.barriers() == []
        assert [fault for fault in faults(tab, address) if "the server responded with a status of 4" not in fault] == []


def test_a_key_is_made_and_shown_once(panel: OpenPanel) -> None:
    address = f"{panel.address}/keys"
    with panel.tab() as tab:
        tab.open(address)
        send(tab, {"Name": HOSTILE["script"], "US dollars per day (UTC)": "2.5"}, "Create key")
        assert tab.run("document.querySelector('pre.once').textContent").strip()
        assert HOSTILE["script"] in tab.run("document.querySelector('main').textContent")
        assert (faults(tab, address), tab.barriers()) == ([], [])
        made = tab.run("document.querySelector('pre.once').textContent").strip()
        tab.open(address)
        assert made not in tab.run("document.documentElement.outerHTML")


def test_a_request_is_sent_again(panel: OpenPanel) -> None:
    with panel.tab() as tab:
        tab.open(f"{panel.address}/requests/{PLAIN_CALL}")
        send(tab, {"Model": "deepseek/deepseek-chat"}, "Send")
        assert tab.run("document.querySelector('article.answer').textContent").count("1161")
        assert "Back to the original request" in tab.run("document.querySelector('main').textContent")
        assert (faults(tab, panel.address), tab.barriers()) == ([], [])
