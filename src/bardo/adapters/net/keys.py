"""Providers' keys: read from the environment or of the machine's Google Cloud credentials, put on a request, and never shown."""

from __future__ import annotations

import asyncio
import base64
import json
import logging
import os
import time
from collections.abc import Callable, Collection, Iterable, Mapping
from datetime import UTC
from functools import lru_cache
from pathlib import Path
from typing import Any
from urllib.parse import parse_qsl, unquote, urlsplit, urlunsplit

import msgspec

from bardo.adapters.net import aws
from bardo.adapters.net.calls import Call
from bardo.catalog.load import builtin
from bardo.catalog.rows import ProviderRow
from bardo.planning.route import Provider
from bardo.routing.key_rests import KeyRests, KeyRotation
from bardo.values.errors import MissingKey
from bardo.values.request import how_to_install
from bardo.values.secrets import Secrets, may_be_secret, secrets_of

CREDENTIALS_FILE = "GOOGLE_APPLICATION_CREDENTIALS"
_SCOPE = "https://www.googleapis.com/auth/cloud-platform"
_EARLY_SECONDS = 120.0
"""A token that ends so soon is not used any more: the call may be long on its way."""
_USUAL_SECONDS = 3300.0


class GoogleTokens:
    """The access token of this process, made when it is needed and again before it ends. `clock` gives seconds that never go back."""

    def __init__(self, environment: Mapping[str, str], *, clock: Callable[[], float] = time.monotonic) -> None:
        self._environment = environment
        self._clock = clock
        self._credentials: Any = None
        self._token = ""
        self._ends = 0.0
        self._asking: asyncio.Lock | None = None

    def __repr__(self) -> str:
        return "GoogleTokens(…)"

    @property
    def token(self) -> str:
        """The token, empty where there is none that holds."""
        return self._token if self._clock() < self._ends else ""

    async def renew(self, provider: str) -> None:
        """Make a token unless there is one. Raises MissingKey where there are no credentials, or they are refused."""
        if self.token:
            return
        self._asking = self._asking or asyncio.Lock()
        async with self._asking:
            if self._clock() < self._ends:
                return
            try:
                self._token, seconds = await asyncio.to_thread(self._ask)
            except Exception as problem:
                # google-auth and its transport raise errors of many kinds; none of their texts is shown, for they may hold a key.
                hint = f"set {CREDENTIALS_FILE} to a key file, or run `gcloud auth application-default login`"
                message = f"no access token for {provider}: {type(problem).__name__}"
                raise MissingKey(message, hint=hint) from problem
            self._ends = self._clock() + max(0.0, seconds - _EARLY_SECONDS)

    def _ask(self) -> tuple[str, float]:
        try:
            from google.auth.transport.requests import Request
        except ImportError as problem:
            raise MissingKey("google-auth is not installed", hint=how_to_install("vertex")) from problem
        if self._credentials is None:
            self._credentials = _credentials(self._environment.get(CREDENTIALS_FILE))
        self._credentials.refresh(Request())
        expiry = self._credentials.expiry
        # google-auth gives the time in UTC, without saying so.
        left = _USUAL_SECONDS if expiry is None else expiry.replace(tzinfo=UTC).timestamp() - time.time()
        return str(self._credentials.token), left


def _credentials(file: str | None) -> Any:
    """Return the credentials of a key file; those that google-auth finds itself where there is none, or the file is of another kind."""
    import google.auth
    from google.oauth2 import credentials, service_account

    account = json.loads(Path(file).read_bytes()) if file else {}
    make: Any
    if account.get("type") == "service_account":
        make = service_account.Credentials.from_service_account_info
        return make(account, scopes=[_SCOPE])
    if account.get("type") == "authorized_user":
        make = credentials.Credentials.from_authorized_user_info
        return make(account, scopes=[_SCOPE])
    login, _ = google.auth.default(scopes=[_SCOPE])
    return login


_CREDENTIALS = frozenset({"authorization", "x-api-key", "x-goog-api-key", "api-key"})
_SCHEMES = ("bearer ", "basic ", "token ", "apikey ")

_log = logging.getLogger("bardo.keys")


class Keyring:
    """The keys of the configured providers."""

    def __init__(self, environment: Mapping[str, str] | None = None) -> None:
        self._environment = os.environ if environment is None else environment
        self._quotable: dict[tuple[str, ...], Secrets] = {}
        self._google = GoogleTokens(self._environment)
        self._missing: set[tuple[str, str]] = set()
        self.rotation = KeyRotation()
        self.pays = False
        """Whether a wallet pays providers that ask for a payment of each call: they need no key then."""

    def __repr__(self) -> str:
        return "Keyring(…)"

    def secrets_of(self, provider: Provider) -> Secrets:
        """Return the secrets that calls to `provider` hold, and that it may quote."""
        row = provider.row
        key = self._find(row) or (self._google.token if row.auth == "google" else "")
        own = self._variables(row) if row.header_variables else {}
        place = (provider.id, provider.base_url, key, *own.values(), *(self._keys(row) if row.several_keys else ()))
        secrets = self._quotable.get(place)
        if secrets is None:
            values = {*secret_values(row.headers, provider.base_url), *place[2:]}
            secrets = self._quotable[place] = secrets_of(tuple(sorted(values)))
        return secrets

    def labels(self, provider: Provider) -> tuple[str, ...]:
        """Return the variables that hold a provider's keys, if several take turns, or none if it has no more than one.

        A variable that is not set is warned of once, and the others are used.
        """
        row = provider.row
        if not row.several_keys:
            return ()
        names = tuple([name for name in row.key_variables if self._environment.get(name, "").strip()])
        for name in row.key_variables if len(names) < len(row.key_variables) else ():
            if name not in names and (provider.id, name) not in self._missing:
                self._missing.add((provider.id, name))
                _log.warning(
                    "%s, one of the keys of %s, is not set", name, provider.id, extra={"provider": provider.id}
                )
        return names

    def choose(
        self,
        provider: Provider,
        model: str,
        rests: KeyRests,
        now: float,
        *,
        conversation: bytes = b"",
        tried: Collection[str] = (),
    ) -> str:
        """Return the label of the key that a call uses, by which `sign` finds it; empty where the provider has no more than one.

        `now` is of a clock that never jumps, by which `rests` are. `conversation` identifies the head of a prompt that may be cached with
        one of the keys; `tried` are labels of keys that failed in this call.
        """
        labels = self.labels(provider)
        if not labels:
            return ""
        rests.register(provider.place, labels)
        return self.rotation.choose(provider.place, model, labels, rests, now, conversation=conversation, tried=tried)

    def secrets(self, providers: Iterable[Provider] = (), further: Iterable[str] = ()) -> Secrets:
        """Return every secret of this process: all keys that are set, and what `providers` are configured with.

        Looks at the whole environment for the variables of all providers: for errors, not for every call.
        """
        configured = [*providers]
        rows = [*(provider.row for provider in configured), *builtin().providers]
        names = {variable for row in rows for variable in row.key_variables} | aws.SECRET_VARIABLES
        # A variable that is not set takes the environment of a process as long to say as ten that are.
        values = [self._environment.get(name, "").strip() for name in self._environment if name in names]
        for provider in configured:
            for url in provider.base_urls:
                values += secret_values(provider.row.headers, url)
            values += self._variables(provider.row).values()
        return secrets_of(tuple(sorted({*values, *further})))

    async def prepare(self, provider: Provider) -> None:
        """Make what `sign` needs and cannot wait for: the access token of a provider at Google Cloud. Raises MissingKey."""
        if provider.row.auth == "google" and self._find(provider.row) is None:
            await self._google.renew(provider.id)

    def key_of(self, provider: Provider) -> str:
        """Return a provider's key, of several the first that is set; empty where it has none."""
        return self._find(provider.row) or ""

    def headers_of(self, row: ProviderRow) -> list[tuple[str, str]]:
        """Return the headers that are configured for a provider, with the values of those that stand in variables."""
        return sorted({**row.headers, **self._variables(row)}.items())

    def has(self, row: ProviderRow) -> bool:
        """Whether one of the row's variables is set."""
        return self._find(row) is not None

    def lacks(self, provider: Provider) -> bool:
        """Whether calls to `provider` need a key or the value of a header that is not set, so that `sign` would raise MissingKey."""
        row = provider.row
        return self._lacks_key(row) or len(self._variables(row)) < len(row.header_variables)

    def _lacks_key(self, row: ProviderRow) -> bool:
        # Whether a machine has credentials of Google's, only `prepare` finds out.
        takes_one = bool(row.key_variables) and row.auth not in ("none", "google") and not row.local
        if self.pays and "x402" in row.payment:
            return False
        return row.auth == "client" or (takes_one and not self.has(row))

    def sign(
        self,
        call: Call,
        provider: Provider,
        *,
        clock: Callable[[], float],
        key: str = "",
        login: Mapping[str, str] | None = None,
    ) -> Call:
        """Return the call with the headers that prove who pays: nothing of it may change afterwards.

        `clock` gives Unix time, for signatures that bear a date; `key` is what `choose` returned, and `login` are the headers of the
        client's own credential, for a provider that asks for one.

        Raises MissingKey where a hosted provider's key is not set.
        """
        if "@" in call.url:
            call = _with_basic_authorization(call)
        if provider.row.auth == "client":
            return self._with_login(call, provider, login)
        own = self._aws(call, provider, clock, key) if provider.row.auth == "aws" else self._headers(provider, key)
        if provider.row.header_variables:
            own = {**self._further(provider), **own}
        return msgspec.structs.replace(call, headers={**call.headers, **own}) if own else call

    def _with_login(self, call: Call, provider: Provider, login: Mapping[str, str] | None) -> Call:
        if not login:
            hint = "send your own in its usual header, and this gateway's key in X-Bardo-Key"
            raise MissingKey(f"{provider.id} asks each client for a login of its own", hint=hint)
        headers = {**call.headers, **self._further(provider)}
        for name, value in login.items():
            before = headers.get(name, "") if name not in _CREDENTIALS else ""
            named = [value.strip() for value in before.split(",") if value.strip()]
            headers[name] = ", ".join([*named, value]) if value not in named else before
        return msgspec.structs.replace(call, headers=headers)

    def _further(self, provider: Provider) -> dict[str, str]:
        """Return the headers whose values stand in variables. Raises MissingKey where one is not set."""
        variables, row = self._variables(provider.row), provider.row
        for name, variable in row.header_variables.items():
            if name not in variables:
                hint = f"set {variable} where bardo runs"
                raise MissingKey(f"no value for the header {name} of {provider.id}", hint=hint)
        return variables

    def _variables(self, row: ProviderRow) -> dict[str, str]:
        """Return the headers of the row whose variables are set."""
        if not row.header_variables:
            return {}
        named = {name: self._environment.get(variable, "").strip() for name, variable in row.header_variables.items()}
        return {name: value for name, value in named.items() if value}

    def _aws(self, call: Call, provider: Provider, clock: Callable[[], float], label: str) -> dict[str, str]:
        row = provider.row
        if aws.BEARER not in row.key_variables:
            # A variable that the configuration names holds a bearer token.
            return self._headers(provider, label)
        return aws.authorize(call.method, call.url, call.headers, call.body, environment=self._environment, now=clock())

    def _headers(self, provider: Provider, label: str) -> dict[str, str]:
        row = provider.row
        key = self._environment.get(label, "").strip() if label else self._find(row)
        key = key or (self._google.token if row.auth == "google" else None)
        if not key:
            if not self._lacks_key(row):
                return {}
            variables = " or ".join(row.key_variables)
            raise MissingKey(f"no key for {provider.id}", hint=f"set {variables} where bardo runs")
        # A server that asks for no key may stand behind something that does: then the operator names one.
        in_bearer = row.auth in ("bearer", "aws", "google", "none")
        return {"authorization": f"Bearer {key}"} if in_bearer else {row.auth: key}

    def _keys(self, row: ProviderRow) -> tuple[str, ...]:
        """Return the values of the row's variables that are set."""
        return tuple([key for name in row.key_variables if (key := self._environment.get(name, "").strip())])

    def _find(self, row: ProviderRow) -> str | None:
        for variable in row.key_variables:
            key = self._environment.get(variable, "").strip()
            if key:
                return key
        return None


def _with_basic_authorization(call: Call) -> Call:
    """Return the call with the user and password of its address in a header. Another `authorization` of its own comes before them."""
    parts = urlsplit(call.url)
    user, at, place = parts.netloc.rpartition("@")
    if not at:
        return call
    named = {name.lower() for name in call.headers}
    headers = call.headers if "authorization" in named else {**call.headers, "authorization": f"Basic {_basic(user)}"}
    return msgspec.structs.replace(call, url=urlunsplit(parts._replace(netloc=place)), headers=headers)


def secret_values(headers: Mapping[str, str], url: str = "") -> list[str]:
    """Return what must never be shown: values of configured headers that may be secrets, and what an address holds of the kind."""
    parts = [part for name, value in headers.items() if may_be_secret(name, value) for part in _parts(value)]
    return [*parts, *_in_address(url)] if "@" in url or "?" in url else parts


def _parts(value: str) -> list[str]:
    """Return a value of a header, and what of it follows the name of a scheme."""
    scheme = next((scheme for scheme in _SCHEMES if value.lower().startswith(scheme)), "")
    return [value, value[len(scheme) :].strip()] if scheme else [value]


@lru_cache(maxsize=256)
def _in_address(url: str) -> tuple[str, ...]:
    """Return the user, the password and their header of an address, and what its query holds."""
    try:
        parts = urlsplit(url)
        query = [value for name, value in parse_qsl(parts.query) if may_be_secret(name, value)]
    except ValueError:
        return ()
    user = parts.netloc.rpartition("@")[0]
    proof = (_basic(user),) if user else ()
    own = (unquote(part) for part in (parts.username, parts.password) if part)
    return (*own, *proof, *query)


def _basic(user: str) -> str:
    """Return the user and password of an address as a basic `authorization` has them."""
    return base64.b64encode(unquote(user).encode()).decode()
