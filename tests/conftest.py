"""What holds for all tests."""

from __future__ import annotations

import gc
import os
import sys

import pytest
from hypothesis import HealthCheck, settings

# How long an example takes is the machine's affair: a busy one must not make a law untrue.
settings.register_profile("bardo", deadline=None, suppress_health_check=[HealthCheck.too_slow])
settings.load_profile("bardo")

# Each of the many programs that tests start, and each worker, would compile all of bardo and all tests again.
sys.dont_write_bytecode = False
os.environ.pop("PYTHONDONTWRITEBYTECODE", None)


@pytest.hookimpl(trylast=True)
def pytest_collection_finish() -> None:
    """Leave what was imported and collected out of every later garbage collection: there are millions of objects, and they stay."""
    gc.collect()
    gc.freeze()
    gc.set_threshold(20_000, 20, 50)
