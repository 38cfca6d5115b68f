"""Authentication at Google Cloud: an access token made from the application-default credentials of the machine.

google-auth reads them (a service account's file, a user's own, or the metadata server) and asks for tokens. It is an extra, loaded with the
first call that needs it.
"""

from __future__ import annotations

import asyncio
import json
import time
from collections.abc import Callable, Mapping
from datetime import UTC
from pathlib import Path
from typing import Any

from bardo.values.errors import MissingKey
from bardo.values.extras import how_to_install

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
    found, _ = google.auth.default(scopes=[_SCOPE])
    return found
