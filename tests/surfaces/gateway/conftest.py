"""One gateway over every simulated provider, and the official libraries, for the tests that need no other."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import ExitStack, closing

import pytest

from support.gateway import House, all_simulators, house
from support.sdk import SDKS, Sdk


@pytest.fixture(scope="session")
def town() -> Iterator[House]:
    with house(all_simulators()) as running:
        yield running


@pytest.fixture(scope="session")
def sdks(town: House) -> Iterator[dict[str, Sdk]]:
    with ExitStack() as stack:
        yield {name: stack.enter_context(closing(kind(town.address))) for name, kind in SDKS.items()}


@pytest.fixture
def sdk(request: pytest.FixtureRequest, sdks: dict[str, Sdk]) -> Sdk:
    """The library a test names: `@each_sdk`."""
    return sdks[request.param]
