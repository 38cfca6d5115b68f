"""Authentication at AWS: a bearer token, or a signature of the request (Signature Version 4).

Pure: the environment and the time arrive as arguments. Source: "Create a signed AWS API request" of the IAM user guide; the paths of all
services but S3 are encoded once more for signing.
"""

from __future__ import annotations

import hashlib
import hmac
import re
from collections.abc import Mapping
from datetime import UTC, datetime
from urllib.parse import parse_qsl, quote, urlsplit

import msgspec

from bardo.values.errors import ConfigError, MissingKey

BEARER = "AWS_BEARER_TOKEN_BEDROCK"
KEY_ID = "AWS_ACCESS_KEY_ID"
SECRET = "AWS_SECRET_ACCESS_KEY"
SESSION = "AWS_SESSION_TOKEN"
SECRET_VARIABLES = frozenset((BEARER, KEY_ID, SECRET, SESSION))
REGIONS = ("AWS_REGION", "AWS_DEFAULT_REGION")

_ALGORITHM = "AWS4-HMAC-SHA256"
_SAFE = "-_.~"
# Bedrock's hosts and the names under which they sign: bedrock-runtime.us-east-1.amazonaws.com is `bedrock`, and
# bedrock-mantle.us-east-1.api.aws is `bedrock-mantle` (anthropic 2.12.0, lib/bedrock/_mantle.py).
_HOST = re.compile(
    r"(?P<service>[a-z0-9-]+?)(?:-runtime)?(?:-fips)?\.(?P<region>[a-z]{2}(?:-[a-z]+)+-\d+)\."
    r"(?:amazonaws\.com(?:\.cn)?|api\.aws)"
)
# Proxies on the way may change these, so they are not signed.
_UNSIGNED = frozenset(("authorization", "connection", "expect", "transfer-encoding", "user-agent", "x-amzn-trace-id"))


class Credentials(msgspec.Struct, frozen=True):
    """A key pair, and the token of a session where they are temporary."""

    key_id: str
    secret: str
    session: str = ""

    def __repr__(self) -> str:
        return "Credentials(…)"


class Scope(msgspec.Struct, frozen=True):
    """Where a signature is valid."""

    region: str
    service: str = "bedrock"


def authorize(
    method: str, url: str, headers: Mapping[str, str], body: bytes, *, environment: Mapping[str, str], now: float
) -> dict[str, str]:
    """Return the headers that prove who pays, to be added to `headers`; the request sent must be exactly the one given here.

    `now` is in seconds since 1970. The bearer token goes before the key pair. Raises MissingKey where neither is set.
    """
    token = _set(environment, BEARER)
    if token:
        return {"authorization": f"Bearer {token}"}
    credentials = find_credentials(environment)
    if credentials is None:
        raise MissingKey("no key for AWS", hint=f"set {BEARER}, or {KEY_ID} and {SECRET}, where bardo runs")
    return sign(method, url, headers, body, credentials=credentials, scope=scope_of(url, environment), now=now)


def find_credentials(environment: Mapping[str, str]) -> Credentials | None:
    """Return the key pair of the environment, or None if it is not whole."""
    key_id, secret = _set(environment, KEY_ID), _set(environment, SECRET)
    return Credentials(key_id, secret, _set(environment, SESSION)) if key_id and secret else None


def scope_of(url: str, environment: Mapping[str, str]) -> Scope:
    """Return what a signature is for: as AWS's host names say, else the environment's region (for a proxy or a private endpoint).

    Raises ConfigError where neither tells.
    """
    host = _HOST.fullmatch(urlsplit(url).hostname or "")
    if host:
        return Scope(host["region"], host["service"])
    region = next((value for name in REGIONS if (value := _set(environment, name))), "")
    if not region:
        raise ConfigError("the AWS region is not known", hint=f"set {REGIONS[0]}, or use a base_url that names it")
    return Scope(region)


def sign(
    method: str,
    url: str,
    headers: Mapping[str, str],
    body: bytes,
    *,
    credentials: Credentials,
    scope: Scope,
    now: float,
) -> dict[str, str]:
    """Return the headers of a signed request that are new: the date, the session's token and the signature."""
    moment = datetime.fromtimestamp(now, UTC).strftime("%Y%m%dT%H%M%SZ")
    added = {"x-amz-date": moment}
    if credentials.session:
        added["x-amz-security-token"] = credentials.session
    signed = _signed_headers(url, {**headers, **added})
    names = ";".join(signed)
    within = f"{moment[:8]}/{scope.region}/{scope.service}/aws4_request"
    parts = urlsplit(url)
    lines = [f"{name}:{value}\n" for name, value in signed.items()]
    content = hashlib.sha256(body).hexdigest()
    steps: list[str] = []
    for step in parts.path.split("/"):
        if step == "..":
            steps = steps[:-1]
        elif step not in ("", "."):
            steps.append(step)
    ends = "/" if steps and parts.path.endswith("/") else ""
    path = quote("/" + "/".join(steps) + ends, safe="/" + _SAFE)
    digest = hashlib.sha256(
        "\n".join((method, path, _query(parts.query), "".join(lines), ";".join(signed), content)).encode()
    ).hexdigest()
    key = f"AWS4{credentials.secret}".encode()
    for part in (moment[:8], scope.region, scope.service, "aws4_request"):
        key = hmac.new(key, part.encode(), hashlib.sha256).digest()
    signature = hmac.new(key, "\n".join((_ALGORITHM, moment, within, digest)).encode(), hashlib.sha256).hexdigest()
    claim = f"Credential={credentials.key_id}/{within}, SignedHeaders={names}, Signature={signature}"
    return {**added, "authorization": f"{_ALGORITHM} {claim}"}


def _signed_headers(url: str, headers: Mapping[str, str]) -> dict[str, str]:
    """Return the headers to sign by their names in lower case, sorted, the host among them."""
    parts = urlsplit(url)
    usual = {"http": 80, "https": 443}.get(parts.scheme)
    host = parts.hostname or ""
    if parts.port not in (None, usual):
        host = f"{host}:{parts.port}"
    named = {"host": host, **{name.lower(): " ".join(value.split()) for name, value in headers.items()}}
    return {name: named[name] for name in sorted(named) if name not in _UNSIGNED}


def _query(query: str) -> str:
    given = parse_qsl(query, keep_blank_values=True)
    pairs = [(quote(name, safe=_SAFE), quote(value, safe=_SAFE)) for name, value in given]
    return "&".join(f"{name}={value}" for name, value in sorted(pairs))


def _set(environment: Mapping[str, str], name: str) -> str:
    return (environment.get(name) or "").strip()
