"""Providers' keys: read from the environment, put on a request, and never shown."""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping

import msgspec

from bardo.catalog.rows import ProviderRow
from bardo.edge import aws
from bardo.edge.http import Call
from bardo.engine.route import Provider
from bardo.values.errors import MissingKey


class Keyring:
    """The keys of the configured providers."""

    def __init__(self, environment: Mapping[str, str] | None = None) -> None:
        self._environment = os.environ if environment is None else environment

    def __repr__(self) -> str:
        return "Keyring(…)"

    def without_key(self, body: bytes, row: ProviderRow) -> bytes:
        """Return an error body without the provider's key: some quote the one they refuse."""
        key = self._find(row)
        return body.replace(key.encode(), b"[key]") if key else body

    def has(self, row: ProviderRow) -> bool:
        """Whether one of the row's variables is set."""
        return self._find(row) is not None

    def sign(self, call: Call, provider: Provider, *, clock: Callable[[], float]) -> Call:
        """Return the call with the headers that prove who pays: nothing of it may change afterwards.

        `clock` gives Unix time, for signatures that bear a date. Raises MissingKey where a hosted provider's key is not set.
        """
        own = self._aws(call, provider, clock) if provider.row.auth == "aws" else self._headers(provider)
        return msgspec.structs.replace(call, headers={**call.headers, **own}) if own else call

    def _aws(self, call: Call, provider: Provider, clock: Callable[[], float]) -> dict[str, str]:
        row = provider.row
        if aws.BEARER not in row.key_variables:
            # A variable that the configuration names holds a bearer token.
            return self._headers(provider)
        now = clock()
        return aws.authorize(call.method, call.url, call.headers, call.body, environment=self._environment, now=now)

    def _headers(self, provider: Provider) -> dict[str, str]:
        row = provider.row
        key = self._find(row)
        if key is None:
            if row.local or row.auth == "none" or not row.key_variables:
                return {}
            variables = " or ".join(row.key_variables)
            raise MissingKey(f"no key for {provider.id}", hint=f"set {variables} where bardo runs")
        return {"authorization": f"Bearer {key}"} if row.auth in ("bearer", "aws") else {row.auth: key}

    def _find(self, row: ProviderRow) -> str | None:
        found = (self._environment.get(variable) for variable in row.key_variables)
        return next((key.strip() for key in found if key and key.strip()), None)
