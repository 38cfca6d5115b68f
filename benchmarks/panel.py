"""Subject `panel`: how soon each view of the panel is painted, what an open page costs the gateway, and how large the files are.

A real Chromium opens the views of a gateway whose log is full. Its first paint is what the browser reports of itself, on loopback, with the
files of the panel in its cache. Where no Chromium is found, the subject fails and says so.
"""

from __future__ import annotations

import random
import re
import shutil
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from importlib import resources
from pathlib import Path
from typing import TYPE_CHECKING

from bardo.adapters.stores.log import LogRow, LogWriter
from bardo.surfaces.panel.views import VIEWS
from benchmarks.bench import Bench
from benchmarks.contestants import CannotStart, Contestant, Gateway, Lane, Place
from benchmarks.figures import Figure, Row, Table, Target

if TYPE_CHECKING:
    from playwright.sync_api import Page

ROWS, FEW_ROWS = 100_000, 5_000
STREAMS = 50
PAINT_MS, PAGE_SHARE, FILES_KB = 300, 5, 300
"""The limits: of a view's first paint, of the part of a core that an open page takes, and of all files that a browser loads."""
_PROGRAMS = ("chromium", "chromium-browser", "google-chrome")
_OPTIONS = ("--no-sandbox", "--disable-gpu", "--disable-quic", "--disable-background-networking", "--disable-sync")
_CALL = "req_000000"
_TIMES = """() => {
  const paint = performance.getEntriesByName('first-contentful-paint')[0];
  const page = performance.getEntriesByType('navigation')[0];
  return paint ? [paint.startTime, page.responseEnd - page.requestStart] : null;
}"""
_SETTINGS = """\
[log]
path = "{log}"
content = true
[[providers]]
id = "plain"
preset = "deepseek"
base_url = "{upstream}"
models = ["whole", "thinking-200"]
"""
_LIVE = "/"
# What a view has to be asked besides.
_QUERIES = {"/catalog/model": "?provider=plain&model=thinking-200"}
# What is rarely found, and what holds a part of an id: both look through all of the log.
_FURTHER = {"Requests, none found": "/requests?outcome=broken", "Requests by part of an id": "/requests?id=00077"}


def run(bench: Bench) -> tuple[list[Table], list[Target]]:
    """Open every view, then the live page beside many streams, and add up the files."""
    count = FEW_ROWS if bench.pace.quick else ROWS
    contestant = Contestant(name="bardo", lanes=(Lane(name="forwarded", model="plain/{}"),), command=_command)
    gateway = bench.start(contestant)
    assert gateway is not None
    fill_log(gateway.folder / "log.db", count)
    with _page() as page:
        shares = [*_shares(bench, gateway, page)]
        rows = [*_views(bench, gateway, page)]
    slowest = max((row.figures["first paint"] for row in rows), key=lambda figure: figure.median)
    painted = Table(
        subject="panel",
        title=f"Panel: views over {count:,} calls",
        columns=("first paint", "answer of the gateway"),
        rows=tuple(rows),
    )
    open_page = _share_of_the_page(shares)
    live = Table(
        subject="panel", title=f"Panel: the live page beside {STREAMS} streams", columns=("bardo",), rows=tuple(shares)
    )
    targets = [
        Target(says="first paint of the slowest view", limit=PAINT_MS, unit="ms", found=slowest.median),
        Target(says=f"an open page beside {STREAMS} streams", limit=PAGE_SHARE, unit="% of a core", found=open_page),
        Target(says="files of the panel", limit=FILES_KB, unit="KB", found=files_kilobytes()),
    ]
    return [painted, live], targets


def _command(place: Place) -> Sequence[str]:
    config = place.folder / "bardo.toml"
    config.write_text(_SETTINGS.format(log=place.folder / "log.db", upstream=place.upstream))
    return [place.python, "-m", "bardo", "serve", "--config", str(config), "--port", str(place.port)]


def fill_log(path: Path, count: int) -> None:
    """Write `count` calls of the last thirty days into a log: 24 models of five providers, ten keys."""
    with LogWriter(path, keep_content=True) as log:
        for row in _calls(count):
            log.write(row)


def _calls(count: int) -> Iterator[LogRow]:
    chance, now = random.Random(1), time.time()
    for number in range(count):
        model, key = number % 24, number % 10
        yield LogRow(
            request_id=f"req_{number:06d}",
            started_at=now - (count - number) * 30 * 86_400 / count,
            seconds=chance.uniform(0.2, 30),
            first_byte_seconds=chance.uniform(0.1, 2),
            client_dialect="openai_chat",
            provider=f"provider-{model % 5}",
            provider_dialect="openai_chat",
            model_asked=f"model-{model}",
            model=f"model-{model}",
            status=500 if number % 40 == 0 else 200,
            outcome="error" if number % 40 == 0 else "ok",
            error_class="UpstreamFailed" if number % 40 == 0 else None,
            visibility="visible",
            input_tokens=chance.randrange(10, 9000),
            output_tokens=chance.randrange(10, 3000),
            reasoning_tokens=chance.randrange(2000),
            cost_usd=0.0002,
            cost_nanos=200_000,
            key_id=f"key-{key}",
            subsystem=f"part-{key % 3}",
            request_content='{"messages": [{"role": "user", "content": "Name one small animal."}]}',
            reply_content='[{"type": "text", "text": "A **quokka**."}]',
        )


@contextmanager
def _page() -> Iterator[Page]:
    """Open a browser with one page. Raises CannotStart."""
    program = next((found for name in _PROGRAMS if (found := shutil.which(name))), None)
    if program is None:
        raise CannotStart("no program of Chromium is found")
    from playwright.sync_api import sync_playwright

    with sync_playwright() as driver:
        browser = driver.chromium.launch(executable_path=program, headless=True, args=list(_OPTIONS))
        try:
            yield browser.new_page()
        finally:
            browser.close()


def _views(bench: Bench, gateway: Gateway, page: Page) -> Iterator[Row]:
    """Yield the first paint of each view, and how long the gateway took to answer."""
    for name, path in _pages().items():
        address = f"http://127.0.0.1:{gateway.port}/panel{path}"
        found = [_times(page, address) for _ in range(bench.pace.rounds + 1)][1:]
        columns = {"first paint": [paint for paint, _ in found], "answer of the gateway": [one for _, one in found]}
        figures = {name: figure for name, values in columns.items() if (figure := Figure.of(values)) is not None}
        yield Row(measure=name, unit="ms", figures=figures)


def _pages() -> dict[str, str]:
    """Return the paths of the pages that are opened, by what the table calls them."""
    views = [view for view in VIEWS if "GET" in view.methods and not view.path.startswith("/keys/")]
    pages = [view for view in views if not view.path.endswith(".csv")]
    found = {view.title or view.path: re.sub(r"\{\w+\}", _CALL, view.path).rstrip("/") for view in pages}
    return {name: path + _QUERIES.get(path, "") for name, path in found.items()} | _FURTHER


def _times(page: Page, address: str) -> tuple[float, float]:
    """Return the milliseconds to a page's first paint, and those the gateway took to answer. Raises CannotStart for an error."""
    reply = page.goto(address, wait_until="load")
    if reply is None or reply.status != 200:
        raise CannotStart(f"{address} answers {reply and reply.status}")
    give_up = time.monotonic() + 60
    # The page's policy allows no script that waits in the page.
    while (times := page.evaluate(_TIMES)) is None and time.monotonic() < give_up:
        page.wait_for_timeout(20)
    if times is None:
        raise CannotStart(f"{address} is not painted")
    return float(times[0]), float(times[1])


def _shares(bench: Bench, gateway: Gateway, page: Page) -> Iterator[Row]:
    """Yield the part of a core that the gateway takes for the streams, before a page was opened and with one."""
    # Not in turn: for some minutes after a page was closed the gateway goes on to keep what the next one would show.
    alone = [_share(bench, gateway) for _ in range(bench.pace.rounds)]
    page.goto(f"http://127.0.0.1:{gateway.port}/panel{_LIVE}".rstrip("/"), wait_until="load")
    beside = [_share(bench, gateway) for _ in range(bench.pace.rounds)]
    seen = page.evaluate("document.querySelectorAll('.call details:not([hidden])').length")
    if seen < STREAMS:
        raise CannotStart(f"the live page shows the thinking of {seen} streams")
    for name, values in (("without a page", alone), ("with an open page", beside)):
        figure = Figure.of(values)
        yield Row(measure=name, unit="% of a core", figures={"bardo": figure} if figure else {})


def _share(bench: Bench, gateway: Gateway) -> float:
    """Return the part of a core that the gateway takes, in percent, while it streams to as many clients as there may be."""
    asked = (gateway.contestant.lanes[0].asked("thinking-200"),)
    sample = bench.measure(gateway, asked, concurrency=STREAMS, seconds=bench.pace.seconds, least=STREAMS)
    return sample.cpu * sample.result.requests / 1e6 / sample.result.seconds * 100


def _share_of_the_page(rows: Sequence[Row]) -> float | None:
    without, with_page = (row.figures.get("bardo") for row in rows)
    return None if without is None or with_page is None else with_page.median - without.median


def files_kilobytes() -> float:
    """Return the size of all files that a browser loads for the panel."""
    folder = resources.files("bardo.surfaces.panel") / "static"
    return sum(len(file.read_bytes()) for file in folder.iterdir() if file.is_file()) / 1000
