"""Gateways with a panel over a simulated provider: one that asks for keys, and one that does not."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import closing

import pytest

from support.any_model import Simulator
from support.keyed_gateway import PRICE, KeyedGateway, keyed_gateway
from support.panel_pages import PanelReader

QUIET = f"[reasoning]\nintrospect = false\n{PRICE}"
CONTENT = f"[log]\ncontent = true\n{QUIET}"
MODEL = "deepseek/deepseek-chat"


@pytest.fixture(scope="module")
def keyed(tmp_path_factory: pytest.TempPathFactory) -> Iterator[KeyedGateway]:
    """Return a gateway that asks for keys and logs content."""
    folder = tmp_path_factory.mktemp("keyed")
    with keyed_gateway(folder, [Simulator("deepseek")], toml=CONTENT) as running:
        yield running


@pytest.fixture(scope="module")
def keyless(tmp_path_factory: pytest.TempPathFactory) -> Iterator[KeyedGateway]:
    """Return a gateway that asks for no keys and logs content."""
    folder = tmp_path_factory.mktemp("keyless")
    with keyed_gateway(folder, [Simulator("deepseek")], toml=CONTENT, first_key=False) as running:
        yield running


@pytest.fixture
def operator(keyed: KeyedGateway) -> Iterator[PanelReader]:
    """Return an operator's browser."""
    with closing(PanelReader(keyed.address, keyed.key(name="Ada", operator=True))) as reader:
        yield reader


@pytest.fixture
def anybody(keyless: KeyedGateway) -> Iterator[PanelReader]:
    """Return a browser on the machine of a gateway without keys."""
    with closing(PanelReader(keyless.address)) as reader:
        yield reader
