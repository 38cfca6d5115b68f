"""A gateway that asks for keys, put together as `bardo serve` does, over simulated providers and with a log and a state database."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import msgspec

from bardo.accounting.limits import KeyLimits
from bardo.adapters.config.accounts import Account, nanos_of_usd
from bardo.adapters.config.settings import Settings, log_path, parse_settings, state_path
from bardo.server.serving import BackgroundServer
from bardo.services.accounts.key_store import KeyStore, open_keys
from bardo.simulators import Running
from bardo.surfaces.gateway.main import gateway_of
from support.any_model import AnySimulator
from support.gateway import KEY_VARIABLE, SECRET, entry

PRICE = """
[[prices]]
match = "*"
input = 1.0
output = 10.0
"""


def make_key(place: str | Path, **said: Any) -> tuple[Account, str]:
    """Store a key, and return its account and the key. Money is in US dollars."""
    limits = {name: said.pop(name) for name in KeyLimits.__struct_fields__ if name in said}
    limits |= {name: nanos_of_usd(value) for name, value in limits.items() if name.startswith("usd")}
    engine = open_keys(place)
    try:
        account, key = KeyStore(engine).create(Account(id="", limits=KeyLimits(**limits), **said))
        return account, key.text
    finally:
        engine.dispose()


@dataclass
class KeyedGateway:
    """A running gateway that asks for keys."""

    address: str
    settings: Settings
    variables: Mapping[str, str]
    servers: Mapping[str, Running]

    @property
    def state(self) -> str | Path:
        """Where its keys are."""
        return state_path(self.settings, self.variables)

    @property
    def log(self) -> str | Path:
        """Where its log is."""
        return log_path(self.settings, self.variables)

    def key(self, **said: Any) -> str:
        """Make a key."""
        return make_key(self.state, **said)[1]


@contextmanager
def keyed_gateway(
    folder: Path,
    simulators: Sequence[AnySimulator],
    *,
    toml: str = "",
    variables: Mapping[str, str] | None = None,
    first_key: bool = True,
    changes: Mapping[str, Mapping[str, Any]] | None = None,
) -> Iterator[KeyedGateway]:
    """Run a gateway whose files are in `folder`. `first_key`: there is a key, so that it asks for keys. `changes` are keys of
    the tables of providers, by their names.
    """
    with ExitStack() as stack:
        servers = {one.provider.name: stack.enter_context(one.running()) for one in simulators}
        changed = changes or {}
        names = [one.provider.name for one in simulators]
        bases = [servers[name].base_url for name in names]
        each = zip(simulators, names, bases, strict=True)
        own = [entry(one, **{"base_url": base, **changed.get(name, {})}) for one, name, base in each]
        environment = {KEY_VARIABLE: SECRET, "XDG_DATA_HOME": str(folder), **(variables or {})}
        settings = msgspec.structs.replace(parse_settings(toml), providers=tuple(own))
        if first_key:
            make_key(state_path(settings, environment), name="first")
        server = stack.enter_context(BackgroundServer(gateway_of(settings, environment)))
        yield KeyedGateway(server.address, settings, environment, servers)
