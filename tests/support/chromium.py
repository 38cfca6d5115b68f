"""A real Chromium, where its program is found; tests that need one are skipped elsewhere.

One browser serves all tests of a process. It lives on an event loop in a thread of its own, so that tests may have loops of their own.
"""

from __future__ import annotations

import asyncio
import shutil
import threading
import time
from collections.abc import Coroutine, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from functools import cache
from importlib import resources
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal, TypeVar

import pytest

from support.patience import PATIENCE

if TYPE_CHECKING:
    from playwright.async_api import Browser, Page

_PROGRAMS = ("chromium", "chromium-browser", "google-chrome")
# It asks nobody but the pages that tests open.
_OPTIONS = (
    "--no-sandbox",
    "--disable-gpu",
    "--disable-quic",
    "--no-first-run",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
    "--disable-dev-shm-usage",
)
# What breaks the page's policy is reported to the console as well; this says which part of the policy.
_WATCH = """
window.__violations = [];
document.addEventListener('securitypolicyviolation',
  (event) => window.__violations.push(`${event.effectiveDirective}: ${event.blockedURI} ${event.sample}`));
"""
_RULES = ("wcag2a", "wcag2aa", "wcag21a", "wcag21aa", "wcag22aa")

Made = TypeVar("Made")


@dataclass
class Seen:
    """What a page did besides showing itself."""

    errors: list[str] = field(default_factory=list)
    dialogs: list[str] = field(default_factory=list)
    requests: list[str] = field(default_factory=list)
    visited: list[str] = field(default_factory=list)
    windows: list[str] = field(default_factory=list)


class Tab:
    """One page of the browser, in a session of its own: no cookie of another tab reaches it."""

    def __init__(self, chromium: Chromium, page: Page) -> None:
        self._chromium = chromium
        self.page = page
        self.seen = Seen()
        self.wait_for(self._watch())

    async def _watch(self) -> None:
        page, seen = self.page, self.seen
        page.on("pageerror", lambda error: seen.errors.append(f"error: {error}"))
        page.on("console", lambda said: seen.errors.append(f"{said.type}: {said.text}") if _is_bad(said.type) else None)
        page.on("request", lambda request: seen.requests.append(request.url))
        page.on("framenavigated", lambda frame: seen.visited.append(frame.url))
        page.on("popup", lambda window: seen.windows.append(window.url))

        async def dismiss(dialog: Any) -> None:
            seen.dialogs.append(dialog.message)
            await dialog.dismiss()

        page.on("dialog", dismiss)

    def wait_for(self, doing: Coroutine[Any, Any, Made]) -> Made:
        """Return what a call of `page` returns."""
        return self._chromium.wait_for(doing)

    def open(self, url: str) -> int:
        """Open an address, wait until all of the page is loaded, and return the status."""
        reply = self.wait_for(self.page.goto(url, wait_until="load"))
        assert reply is not None
        return reply.status

    def run(self, script: str, argument: Any = None) -> Any:
        """Return the value of an expression or a function of JavaScript."""
        return self.wait_for(self.page.evaluate(script, argument))

    def until(self, script: str, argument: Any = None) -> None:
        """Wait until an expression of JavaScript is true. The page's policy allows no script that looks by itself."""
        give_up = time.monotonic() + PATIENCE
        while not self.run(script, argument):
            if time.monotonic() > give_up:
                raise TimeoutError(f"this does not come true: {script}")
            time.sleep(0.05)

    def press(self, key: str) -> None:
        """Press a key of the keyboard."""
        self.wait_for(self.page.keyboard.press(key))

    def follow(self, key: str) -> None:
        """Press a key that leads to another page, and wait until that is loaded."""

        async def pressed() -> None:
            async with self.page.expect_navigation(wait_until="load"):
                await self.page.keyboard.press(key)

        self.wait_for(pressed())

    def picture(self, path: Path, *, whole: bool = True) -> None:
        """Write what the tab shows as a PNG file."""
        self.wait_for(self.page.screenshot(path=path, full_page=whole))

    def violations(self) -> list[str]:
        """Return what the page's content security policy refused."""
        return list(self.run("window.__violations"))

    def barriers(self, *, without: Sequence[str] = (), only: Sequence[str] = ()) -> list[str]:
        """Return what axe finds against the rules of WCAG, levels A and AA: the rule, the element and why."""
        # Not a script element: the policy of the page refuses one, as it should.
        self.run(_axe())
        run_only = {"type": "rule", "values": [*only]} if only else {"type": "tag", "values": [*_RULES]}
        rules = {name: {"enabled": False} for name in without}
        asked = {"runOnly": run_only, "rules": rules, "resultTypes": ["violations"]}
        found = self.run("(asked) => axe.run(document, asked)", asked)
        return [
            f"{rule['id']}: {' '.join(map(str, node['target']))}: {node['failureSummary']}"
            for rule in found["violations"]
            for node in rule["nodes"]
        ]

    def dark_barriers(self) -> list[str]:
        """Return what axe finds wrong with the contrasts in dark colours, in which the page is shown from now on."""
        self.wait_for(self.page.emulate_media(color_scheme="dark"))
        return self.barriers(only=["color-contrast"])


def _is_bad(kind: str) -> bool:
    return kind in ("error", "warning", "assert")


@cache
def _axe() -> str:
    return (resources.files("axe_playwright_python") / "axe.min.js").read_text() + "\n;undefined"


class Chromium:
    """The browser, and the thread that it is driven from."""

    def __init__(self, program: str) -> None:
        self._loop = asyncio.new_event_loop()
        self._thread = threading.Thread(target=self._loop.run_forever, name="chromium")
        self._thread.start()
        self._program = program
        self._browser: Browser | None = None

    def wait_for(self, doing: Coroutine[Any, Any, Made]) -> Made:
        """Return what a coroutine of the browser returns."""
        return asyncio.run_coroutine_threadsafe(doing, self._loop).result(PATIENCE)

    @contextmanager
    def running(self) -> Iterator[Chromium]:
        """Start the browser, and leave nothing of it."""
        from playwright.async_api import async_playwright

        manager = async_playwright()
        try:
            driver = self.wait_for(manager.__aenter__())
            try:
                launch = driver.chromium.launch(executable_path=self._program, headless=True, args=list(_OPTIONS))
                self._browser = self.wait_for(launch)
                yield self
                self.wait_for(self._browser.close())
            finally:
                self.wait_for(manager.__aexit__())
        finally:
            self._loop.call_soon_threadsafe(self._loop.stop)
            self._thread.join(PATIENCE)
            self._loop.close()

    @contextmanager
    def tab(
        self,
        *,
        width: int = 1280,
        height: int = 900,
        dark: bool = False,
        touch: bool = False,
        cookies: Sequence[dict[str, str]] = (),
    ) -> Iterator[Tab]:
        """Open a tab of the given size, in light or dark colours."""
        assert self._browser is not None
        scheme: Literal["dark", "light"] = "dark" if dark else "light"
        context = self.wait_for(
            self._browser.new_context(
                viewport={"width": width, "height": height},
                color_scheme=scheme,
                reduced_motion="reduce",
                has_touch=touch,
            )
        )
        try:
            self.wait_for(context.add_init_script(_WATCH))
            if cookies:
                self.wait_for(context.add_cookies([*cookies]))  # type: ignore[list-item]
            yield Tab(self, self.wait_for(context.new_page()))
        finally:
            self.wait_for(context.close())


@pytest.fixture(scope="session")
def chromium() -> Iterator[Chromium]:
    """Return the browser."""
    pytest.importorskip("playwright")
    pytest.importorskip("axe_playwright_python")
    program = next((found for name in _PROGRAMS if (found := shutil.which(name))), None)
    if program is None:
        pytest.skip("no program of Chromium is found")
    with Chromium(program).running() as browser:
        yield browser
