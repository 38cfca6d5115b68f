"""The page of live requests in a real browser: thinking while it comes, Markdown once it is there, and nothing of it as a script."""

from __future__ import annotations

from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from pathlib import Path

import pytest

from bardo.simulators import Gate, Script, Turn, Usage
from browser.checks import bad_links, faults, keyboard_faults, outside, wide_elements
from support.any_model import Simulator
from support.chromium import Chromium, Tab
from support.hostile_text import HOSTILE
from support.keyed_gateway import KeyedGateway, keyed_gateway
from support.patience import PATIENCE
from support.talk import ask

_THOUGHT = "First **27 · 40** is 1080, then\n\n- 27 · 3 is 81\n- and together `1161`, see [the rule](https://example.org/rule)."
_CONTENT = "[log]\ncontent = true\n[reasoning]\nintrospect = false\n"


@pytest.fixture
def thinker() -> Simulator:
    return Simulator("deepseek", script=Script((Turn(reasoning=_THOUGHT, text="1161"),)), delta_size=16)


@pytest.fixture
def gateway(thinker: Simulator, tmp_path: Path) -> Iterator[KeyedGateway]:
    hidden = Turn(text="1161", usage=Usage(input_tokens=5, answer_tokens=3, reasoning_tokens=777))
    others = [Simulator("openai_chat", script=Script((hidden,)))]
    with keyed_gateway(tmp_path, [thinker, *others], toml=_CONTENT, first_key=False) as running:
        yield running


@contextmanager
def live_tab(chromium: Chromium, gateway: KeyedGateway, *, width: int = 1280) -> Iterator[Tab]:
    """Open the page, and wait until it is told of calls."""
    with chromium.tab(width=width) as tab:
        assert tab.open(f"{gateway.address}/panel") == 200
        tab.until("document.getElementById('connection').textContent.includes('connected')")
        yield tab


@contextmanager
def asked(gateway: KeyedGateway, gate: Gate) -> Iterator[None]:
    """Ask for a stream that stands at a gate while the block runs, and read it to its end after."""
    with ThreadPoolExecutor(1) as pool:
        reply = pool.submit(ask, gateway.address, "openai_chat", "deepseek/m", stream=True)
        try:
            gate.wait(PATIENCE)
            yield
        finally:
            gate.release()
        assert reply.result(PATIENCE).status == 200


def test_thinking_is_seen_while_it_comes_and_is_markdown_when_it_is_there(
    chromium: Chromium, gateway: KeyedGateway, thinker: Simulator
) -> None:
    with live_tab(chromium, gateway) as tab:
        with asked(gateway, thinker.hold(after=4)):
            tab.until("document.querySelector('.call .stream')?.textContent.startsWith('First **27')")
            assert tab.run("document.querySelector('.call .state').textContent") == "running"
            assert tab.run("document.querySelector('.call strong')") is None
            assert tab.barriers() == []
        tab.until("document.querySelector('.call .markdown strong')?.textContent === '27 · 40'")
        assert tab.run("document.querySelector('.call .state').textContent") == "ok"
        assert (
            tab.run("[...document.querySelectorAll('.call li, .call code')].map((one) => one.textContent).length") == 3
        )
        assert bad_links(tab, ".call .markdown") == []
        assert tab.barriers() == []
        assert tab.dark_barriers() == []
        assert faults(tab, gateway.address) == []


def test_a_page_that_is_opened_in_between_has_what_was_thought_before(
    chromium: Chromium, gateway: KeyedGateway, thinker: Simulator
) -> None:
    # The first page has the gateway keep what happens.
    with live_tab(chromium, gateway), asked(gateway, thinker.hold(after=4)), live_tab(chromium, gateway) as later:
        later.until("document.querySelector('.call .stream')?.textContent.startsWith('First **27')")


def test_thinking_that_cannot_be_read_shows_its_tokens(chromium: Chromium, gateway: KeyedGateway) -> None:
    with live_tab(chromium, gateway) as tab:
        assert ask(gateway.address, "openai_chat", "openai_chat/gpt-5", stream=True).status == 200
        tab.until("document.querySelector('.call .hidden-thinking')?.textContent.includes('777 tokens')")
        assert tab.run("document.querySelector('.hidden-thinking').checkVisibility()")
        assert tab.run("document.querySelector('.call details').checkVisibility()") is False
        assert tab.barriers() == []


def test_a_call_that_no_provider_was_asked_for_says_which_model_was_meant(
    chromium: Chromium, gateway: KeyedGateway
) -> None:
    with live_tab(chromium, gateway) as tab:
        assert ask(gateway.address, "openai_chat", "nowhere").status == 404
        tab.until("document.querySelector('.call .state')?.textContent === 'error'")
        assert tab.run("document.querySelector('.call .model').textContent") == "nowhere"
        assert tab.run("document.querySelector('.call .how').textContent") == "openai_chat · no provider was called"


def test_the_page_is_worked_by_the_keyboard(chromium: Chromium, gateway: KeyedGateway) -> None:
    with live_tab(chromium, gateway, width=375) as tab:
        ask(gateway.address, "openai_chat", "deepseek/m", stream=True)
        tab.until("document.querySelector('.call .markdown') !== null")
        assert (keyboard_faults(tab), wide_elements(tab)) == ([], [])
        tab.run("document.querySelector('.call summary').focus()")
        for is_open in (False, True):
            tab.press("Enter")
            assert tab.run("document.querySelector('.call details').open") is is_open
        tab.run("document.getElementById('pause').focus()")
        tab.press("Space")
        assert tab.run("document.getElementById('pause').getAttribute('aria-pressed')") == "true"
        tab.press("Space")
        tab.until("document.getElementById('connection').textContent.includes('connected')")


def test_without_content_no_thinking_is_shown(chromium: Chromium, thinker: Simulator, tmp_path: Path) -> None:
    with keyed_gateway(tmp_path, [thinker], first_key=False) as gateway, live_tab(chromium, gateway) as tab:
        ask(gateway.address, "openai_chat", "deepseek/m", stream=True)
        tab.until("document.querySelector('.call .state')?.textContent === 'ok'")
        assert "27" not in tab.run("document.getElementById('calls').textContent")


def test_hostile_thinking_and_names_stay_text(chromium: Chromium, gateway: KeyedGateway, thinker: Simulator) -> None:
    texts = list(HOSTILE.values())
    thinker.play(Script(tuple(Turn(reasoning=text, text=text) for text in texts), in_order=True))
    with live_tab(chromium, gateway) as tab:
        for text in texts:
            name = text if text.isprintable() and len(text) < 200 else "m"
            assert ask(gateway.address, "openai_chat", f"deepseek/{name}", stream=True).status == 200
        # The page keeps the last hundred.
        tab.until("document.querySelectorAll('.call').length === 100 && !document.querySelector('.call .stream')")
        assert faults(tab, gateway.address) == []
        assert bad_links(tab, ".call .details-body") == []
        assert outside(tab, ".call .details-body") == []
        # Four hundred links of one letter are as small as their author made them.
        assert tab.barriers(without=["target-size", "color-contrast"]) == []
        assert wide_elements(tab) == []
