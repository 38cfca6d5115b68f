"""A client's own credential for a provider with `auth = "client"`: to whom it may go, and in which headers.

It goes to one provider. A credential whose form the catalog knows goes to the provider that gives out such, whatever asks for it. Of any
other one only the client knows whose it is: it goes to the provider that the client's request leads to, and speaks its dialect.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Mapping, Sequence
from functools import lru_cache

import msgspec

from bardo.catalog.load import builtin
from bardo.catalog.rows import LoginForm, ProviderRow
from bardo.planning.route import Provider, target_names
from bardo.services.facts.directory import Placement
from bardo.values.degradation import Degradation
from bardo.values.errors import Unauthorized
from bardo.values.secrets import looks_like_key

CLIENT = "client"
"""The word of a provider's `auth` that asks each client for its own credential."""
CREDENTIAL_HEADERS = ("authorization", "x-api-key", "x-goog-api-key", "api-key")
_BEARER = "bearer "
_GATEWAY_KEY = "bardo_"
_WITHOUT_LOGIN = "its provider asks for a login of the client's own, and the call has none for it"


class ClientLogin:
    """The credential of one client. `headers` hold it as they came, `beside` are headers that go with some credentials.

    `secrets` is what nothing may quote, and `keys` what of it looks like a key, rather than like a word that stands for none.
    """

    __slots__ = ("_headers", "beside", "keys", "secrets")

    def __init__(self, headers: Mapping[str, str], beside: Mapping[str, str]) -> None:
        self._headers = dict(headers)
        self.beside = dict(beside)
        self.secrets = tuple(dict.fromkeys((*headers.values(), *map(_bare, headers.values()))))
        self.keys = tuple([secret for secret in self.secrets if looks_like_key(secret)])

    def __repr__(self) -> str:
        return "ClientLogin(…)"

    @property
    def digest(self) -> str:
        """What tells two logins apart, from which neither can be had."""
        said = "\0".join(f"{name}={value}" for name, value in sorted({**self.beside, **self._headers}.items()))
        return hashlib.sha256(f"bardo login {said}".encode()).hexdigest()[:32]

    def headers_for(self, provider: Provider, *, alone: bool) -> dict[str, str]:
        """Return the headers of a call to a provider; none where the login is not for it.

        `alone`: the client's request leads to this provider and to no other that could be meant.
        """
        unknown: dict[str, str] = {}
        for name, value in self._headers.items():
            owners = login_forms(_bare(value), frozenset(self.beside))
            form = owners.get(provider.row.id)
            if form is not None:
                given = f"Bearer {_bare(value)}" if form.header == "authorization" else _bare(value)
                return {**form.headers, **self._passed(form.passes), form.header: given}
            if not owners and not unknown:
                unknown = {name: value}
        if not unknown or not alone:
            return {}
        return {**self._passed([one for form in provider.row.logins for one in form.passes]), **unknown}

    def _passed(self, names: Iterable[str]) -> dict[str, str]:
        return {name: self.beside[name] for name in names if name in self.beside}


def login_of_headers(fields: Mapping[str, str], *, gateway_key: str = "") -> ClientLogin | None:
    """Return the login in the headers of a request, or None if there is none beside the gateway's own key."""
    found = {
        name: value
        for name in CREDENTIAL_HEADERS
        if (value := fields.get(name, "").strip())
        and _bare(value).lower() not in ("", "bearer", gateway_key.lower())
        and not value.startswith("AWS4-")
        and not _bare(value).startswith(_GATEWAY_KEY)
    }
    beside = {name: fields[name] for name in headers_beside() if fields.get(name)}
    return ClientLogin(found, beside) if found else None


@lru_cache(maxsize=1)
def headers_beside() -> frozenset[str]:
    """Return the headers that go with some credential to its provider, in lower case."""
    return frozenset(name for row in builtin().providers for form in row.logins for name in form.passes)


def login_forms(value: str, beside: frozenset[str]) -> dict[str, LoginForm]:
    """Return whose credential one is by its form, by the ids of the catalog's rows: by the form that says most of it."""
    fitting = [
        (len(form.begins) + (1000 if form.beside else 0), row.id, form)
        for row in builtin().providers
        for form in row.logins
        if value.startswith(form.begins) and (not form.beside or form.beside in beside)
    ]
    most = max((score for score, _, _ in fitting), default=0)
    return {owner: form for score, owner, form in fitting if score == most}


def with_logins(
    placement: Placement, login: ClientLogin | None, providers: Sequence[Provider], dialect: str
) -> tuple[Placement, dict[str, Mapping[str, str]]]:
    """Return whom a call may be put to, with the headers of the client's login by the ids of the providers that get it.

    `providers` are all that are configured, `dialect` is the client's. Raises Unauthorized where only a login is missing.
    """
    asked = [target.provider for target in placement.targets]
    open_to = [one for one in providers if one.row.auth == CLIENT and _speaks(one.row, dialect)]
    logins: dict[str, Mapping[str, str]] = {}
    for provider in {one.id: one for one in asked if one.row.auth == CLIENT}.values():
        # Where several could be meant, the client has to name the one.
        first = asked[0].id == provider.id
        alone = _speaks(provider.row, dialect) and (first or [one.id for one in open_to] == [provider.id])
        headers = {} if login is None else login.headers_for(provider, alone=alone)
        if headers:
            logins[provider.id] = headers
    if len(logins) > 1:
        # One credential is one provider's: the first that the request leads to.
        logins = dict([next(iter(logins.items()))])
    targets = tuple(one for one in placement.targets if one.provider.row.auth != CLIENT or one.provider.id in logins)
    if len(targets) == len(placement.targets):
        return placement, logins
    if not targets:
        names = " and ".join(dict.fromkeys(one.id for one in asked))
        missing = "has none" if login is None else "brought none of its own form"
        message = f"{names} asks each client for a login of its own, and this request {missing}"
        hint = (
            "send the provider's token or key in its usual header (Authorization, x-api-key), and the key of this gateway, "
            "where it asks for one, in X-Bardo-Key"
        )
        raise Unauthorized(message, hint=hint)
    dropped = [one for one in placement.targets if one not in targets]
    lost = tuple(Degradation("model", asked=name, why=_WITHOUT_LOGIN) for name in target_names(dropped))
    return msgspec.structs.replace(placement, targets=targets, skipped=(*placement.skipped, *lost)), logins


def _speaks(row: ProviderRow, dialect: str) -> bool:
    """Whether a provider has the dialect of a client, or one of the same family."""
    family = dialect.partition("_")[0]
    return any(endpoint.dialect.partition("_")[0] == family for endpoint in row.at_endpoints)


def _bare(value: str) -> str:
    return value[len(_BEARER) :].strip() if value[: len(_BEARER)].lower() == _BEARER else value
