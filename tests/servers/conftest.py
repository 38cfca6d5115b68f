"""One process of llama.cpp servers, one for each template, and one gateway over all of them, for the tests of a worker."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from pathlib import Path

import msgspec
import pytest

from bardo.adapters.config.settings import LogSettings, ProviderEntry, Settings
from bardo.server.serving import BackgroundServer
from bardo.surfaces.gateway.main import gateway_of
from servers.llama_cpp import INSTALLED, WHY_NOT, llama_cpp
from servers.templates import TEMPLATES

_VENDORS = Path(__file__).resolve().parents[3] / "shared" / "introspection" / "llama-server"


class Served(msgspec.Struct, frozen=True):
    """A gateway, and the servers behind it by the names of their templates: they are its providers."""

    gateway: str
    servers: Mapping[str, str]


def vendor_templates() -> dict[str, str]:
    """Return the chat templates of vendors that lie beside the project, by the names of their models."""
    return {
        folder.name: json.loads((folder / "props.json").read_text(encoding="utf-8"))["body"]["chat_template"]
        for folder in (sorted(_VENDORS.iterdir()) if _VENDORS.is_dir() else ())
    }


def name_of(template: str) -> str:
    """Return a template's name as a provider's."""
    return template.lower().replace(".", "-")


@pytest.fixture(scope="session")
def served() -> Iterator[Served]:
    if not INSTALLED:
        pytest.skip(WHY_NOT)
    templates = {name_of(name): {"template": text} for name, text in {**TEMPLATES, **vendor_templates()}.items()}
    with llama_cpp(templates) as servers:
        entries = tuple(
            ProviderEntry(id=name, preset="llama-server", base_url=f"{address}/v1") for name, address in servers.items()
        )
        settings = Settings(providers=entries, log=LogSettings(enabled=False))
        with BackgroundServer(gateway_of(settings, {})) as gateway:
            yield Served(gateway.address, servers)
