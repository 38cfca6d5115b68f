"""A gateway that runs, for commands that ask it: its address and key, settings that ask it alone, and its errors."""

from __future__ import annotations

import os
from collections.abc import Mapping

import msgspec

from bardo.adapters.config.providers import is_http_address
from bardo.adapters.config.settings import LogSettings, ProviderEntry, Settings
from bardo.values.errors import InvalidRequest, MalformedReply, Unreachable
from bardo.values.secrets import HIDDEN, shown_url

PROVIDER = "gateway"
"""The id of a gateway that is the only provider of a question."""
KEY_VARIABLE = "BARDO_API_KEY"
_PRESET = "bardo-gateway"
KEY_VARIABLES = (KEY_VARIABLE, "BARDO_KEY")
"""Where the key may be: the second name is the older one."""
_EVERYWHERE = {"0.0.0.0": "127.0.0.1", "::": "::1", "": "127.0.0.1"}


def address_of(settings: Settings) -> str:
    """Return where the gateway of these settings is reached from this machine."""
    host = _EVERYWHERE.get(settings.gateway.host, settings.gateway.host)
    return f"http://{f'[{host}]' if ':' in host else host}:{settings.gateway.port}"


def checked_address(address: str, option: str) -> str:
    """Return the address of a gateway without the path of its API. Raises InvalidRequest, naming the option, for no http(s) address."""
    base = address.strip().rstrip("/").removesuffix("/v1").rstrip("/")
    if is_http_address(base):
        return base
    with_scheme = f"http://{base}"
    hint = "give its address, as in http://127.0.0.1:8484"
    if "://" not in base and "@" not in base and is_http_address(with_scheme):
        hint = f"did you mean {shown_url(with_scheme)}?"
    # Without its scheme nothing tells the password of an address from its host.
    shown = HIDDEN if "@" in address else shown_url(address)
    raise InvalidRequest(f"{shown!r} is no address of a gateway", hint=hint, param=option)


def gateway_key(given: str = "", environment: Mapping[str, str] = os.environ) -> str:
    """Return the key for a gateway: the one that was given, else that of the environment; empty where there is none."""
    named = (environment.get(name, "").strip() for name in KEY_VARIABLES)
    return given or next(filter(None, named), "")


def through_gateway(settings: Settings, address: str) -> Settings:
    """Return settings whose only provider is a gateway, which logs the call itself. Raises InvalidRequest for no http(s) address."""
    base = checked_address(address, "--gateway")
    entry = ProviderEntry(id=PROVIDER, preset=_PRESET, base_url=f"{base}/v1")
    fresh = Settings(timeouts=settings.timeouts, providers=(entry,), log=LogSettings(enabled=False))
    return msgspec.structs.replace(fresh, source=settings.source)


def with_key(key: str) -> Mapping[str, str]:
    """Return the environment with the key of a gateway, where one was given."""
    return {**os.environ, KEY_VARIABLE: key} if key else os.environ


def not_running(address: str, problem: Unreachable, option: str) -> Unreachable:
    """Return the error of a gateway that cannot be reached, with what to do about it."""
    hint = f"start it with `bardo serve`, or name the one that runs with {option}"
    return Unreachable(f"no gateway answers at {address}: {problem.message}", hint=hint, provider=problem.provider)


def gateway_error(address: str, status: int, option: str) -> MalformedReply:
    """Return the error of a gateway that answers with no success, or of another server."""
    if status in (401, 403):
        return MalformedReply(
            f"{address} wants a key of a client of this gateway",
            hint=f"put one into {KEY_VARIABLE}; `bardo keys create NAME` makes one",
        )
    return MalformedReply(f"{address} answered with status {status}", hint=f"name a bardo gateway with {option}")
