"""The bots run in the event loop of each test, over a simulated provider, with a log and state of their own."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from bardo.adapters.config.settings import Settings, parse_settings
from support.any_model import Simulator

KEY = "sk-simulated-0123456789abcdef"


def asked_of(simulator: Simulator) -> list[dict[str, Any]]:
    """Return the bodies of the requests that a simulator got."""
    return [dict(request.body) for request in simulator.requests if isinstance(request.body, dict)]


@pytest.fixture
def simulator() -> Simulator:
    return Simulator("deepseek")


@pytest.fixture
def make_settings(simulator: Simulator, tmp_path: Path) -> Iterator[Callable[[str], Settings]]:
    """Return the settings of a provider that is simulated, and of what is given besides."""
    with simulator.running() as server:

        def make(toml: str) -> Settings:
            provider = f'[[providers]]\nid = "sim"\npreset = "deepseek"\nbase_url = "{server.base_url}"\n'
            own = f'api_key_env = "SIM_KEY"\nmodels = ["m1", "m2"]\n\n[log]\npath = "{tmp_path / "log.db"}"\n\n'
            return parse_settings(f"{provider}{own}{toml}")

        yield make
