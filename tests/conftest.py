"""What holds for all tests."""

from __future__ import annotations

import gc
import os
import signal
import sys
from collections import Counter
from collections.abc import Generator, Iterator, Sequence

import pytest
from _pytest.terminal import TerminalReporter
from hypothesis import HealthCheck, settings

from bardo import reuse
from support import sampling

pytest_plugins = ["support.chromium", "support.ended_processes", "support.postgres", "support.redis"]

# How long an example takes is the machine's affair: a busy one must not make a law untrue. The same commit tries the same examples;
# BARDO_HYPOTHESIS=random tries others each time, and finds what these do not.
settings.register_profile("bardo", deadline=None, derandomize=True, suppress_health_check=[HealthCheck.too_slow])
settings.register_profile("random", settings.get_profile("bardo"), derandomize=False, print_blob=True)
settings.load_profile(os.environ.get("BARDO_HYPOTHESIS", "bardo"))

# The laws hold whether anything is kept of earlier requests or not: BARDO_REUSE=off runs all tests without.
reuse.turn(os.environ.get("BARDO_REUSE") != "off")

# Each of the many programs that tests start, and each worker, would compile all of bardo and all tests again.
sys.dont_write_bytecode = False
os.environ.pop("PYTHONDONTWRITEBYTECODE", None)

# What is imported and collected stays: looking through it again and again while it grows is of no use.
gc.disable()

# A shell that starts the tests in the background has interrupts ignored, and so would the programs that tests start and interrupt.
if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
    signal.signal(signal.SIGINT, signal.default_int_handler)


@pytest.fixture(scope="session", autouse=True)
def data_folder(tmp_path_factory: pytest.TempPathFactory) -> Iterator[None]:
    """Keep logs that a test does not place in a folder of the tests, and out of the developer's own."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("XDG_DATA_HOME", str(tmp_path_factory.mktemp("data")))
        yield


@pytest.fixture
def reused() -> Iterator[None]:
    """Keep what may be kept of earlier requests in one test, whatever BARDO_REUSE says."""
    before = reuse.is_on()
    reuse.turn(True)
    # What other tests of this process have kept takes no room.
    reuse.limit(0)
    reuse.limit(reuse.MOST_BYTES)
    yield
    reuse.turn(before)
    reuse.limit(reuse.MOST_BYTES)


def pytest_configure(config: pytest.Config) -> None:
    """Declare the marks, and let the workers draw the samples that this process draws."""
    for mark in (
        "nightly: runs at night only, where BARDO_NIGHTLY is set",
        "sampled(most, of=None): by day only `most` of its cells run; `of` names a parameter of which each value has that many",
        "each_python: runs on the second Python too, because what it shows may differ between Pythons",
    ):
        config.addinivalue_line("markers", mark)
    os.environ["BARDO_SEED"] = sampling.seed()


def pytest_report_header() -> str:
    """Say which sample is run."""
    if sampling.NIGHTLY:
        return f"night: every law over everything, shard {os.environ.get('SHARD', '1/1')}"
    changed = ", ".join(sorted(sampling.changed_dialects())) or "none"
    return f"day: laws over a sample, BARDO_SEED={sampling.seed()}; whole for the dialects that changed since the release point: {changed}"


@pytest.hookimpl(trylast=True)
def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Leave out what runs at night only, what the samples do not hold, and what belongs to another shard."""
    left_out = set() if sampling.NIGHTLY else _nightly(items)
    if shard := os.environ.get("SHARD"):
        left_out |= {item for item in items if not sampling.in_shard(item.nodeid, shard)}
    if left_out:
        config.hook.pytest_deselected(items=[item for item in items if item in left_out])
        items[:] = [item for item in items if item not in left_out]


def _nightly(items: Sequence[pytest.Item]) -> set[pytest.Item]:
    """Return the items that do not run by day."""
    cells: dict[str, list[pytest.Item]] = {}
    for item in items:
        if (mark := item.get_closest_marker("sampled")) is not None:
            of = mark.kwargs.get("of")
            value = str(getattr(item, "callspec").params[of]) if of else ""  # noqa: B009
            cells.setdefault(f"{item.nodeid.partition('[')[0]} {value}", []).append(item)
    left_out = {item for item in items if item.get_closest_marker("nightly") is not None}
    for law, listed in cells.items():
        (most,) = listed[0].get_closest_marker("sampled").args  # type: ignore[union-attr]
        drawn = set(sampling.sample([item.nodeid for item in listed], most, law=law))
        left_out.update(item for item in listed if item.nodeid not in drawn)
    return left_out


@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport(
    item: pytest.Item, call: pytest.CallInfo[None]
) -> Generator[None, pytest.TestReport, pytest.TestReport]:
    """Tell the process that sums up what an item of a law was checked for."""
    report = yield
    if call.when == "call" and sampling.COVERED:
        report.user_properties.append(("covered", dict(sampling.COVERED)))
        sampling.COVERED.clear()
    return report


def pytest_terminal_summary(terminalreporter: TerminalReporter) -> None:
    """Print what the laws were checked for."""
    covered: Counter[str] = Counter()
    for report in terminalreporter.stats.get("passed", []):
        covered.update(dict(report.user_properties).get("covered", {}))
    if covered and sampling.NIGHTLY:
        terminalreporter.section("covered by the laws")
        for name, count in sorted(covered.items()):
            terminalreporter.write_line(f"{count:>9,}  {name}")


@pytest.hookimpl(trylast=True)
def pytest_collection_finish() -> None:
    """Leave what was imported and collected out of every later garbage collection: there are millions of objects, and they stay."""
    gc.collect()
    gc.freeze()
    gc.enable()
    gc.set_threshold(20_000, 20, 50)
