"""What holds for all tests."""

from __future__ import annotations

import gc
import os
import signal
import sys
from collections.abc import Iterator

import pytest
from hypothesis import HealthCheck, settings

pytest_plugins = ["support.chromium", "support.postgres", "support.redis"]

# How long an example takes is the machine's affair: a busy one must not make a law untrue. The same commit tries the same examples;
# BARDO_HYPOTHESIS=random tries others each time, and finds what these do not.
settings.register_profile("bardo", deadline=None, derandomize=True, suppress_health_check=[HealthCheck.too_slow])
settings.register_profile("random", settings.get_profile("bardo"), derandomize=False, print_blob=True)
settings.load_profile(os.environ.get("BARDO_HYPOTHESIS", "bardo"))

# Each of the many programs that tests start, and each worker, would compile all of bardo and all tests again.
sys.dont_write_bytecode = False
os.environ.pop("PYTHONDONTWRITEBYTECODE", None)

# A shell that starts the tests in the background has interrupts ignored, and so would the programs that tests start and interrupt.
if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
    signal.signal(signal.SIGINT, signal.default_int_handler)


@pytest.fixture(scope="session", autouse=True)
def data_folder(tmp_path_factory: pytest.TempPathFactory) -> Iterator[None]:
    """Keep logs that a test does not place in a folder of the tests, and out of the developer's own."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("XDG_DATA_HOME", str(tmp_path_factory.mktemp("data")))
        yield


@pytest.hookimpl(trylast=True)
def pytest_collection_finish() -> None:
    """Leave what was imported and collected out of every later garbage collection: there are millions of objects, and they stay."""
    gc.collect()
    gc.freeze()
    gc.set_threshold(20_000, 20, 50)
