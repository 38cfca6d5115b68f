"""Seal texts that a client keeps for the gateway: only the gateway can read them, and a changed one is not opened.

A sealed text is bound to a purpose and to whose it is. The key is the operator's, or one that is made when the first text is sealed and is
kept beside the state database, so that what was sealed can be opened after a restart.

A text is encrypted with a stream of SHAKE-256 over a key and a nonce that is used once, and then signed with HMAC-SHA-256 under
another key: both are the standard library's.
"""

from __future__ import annotations

import hashlib
import hmac
import logging
import os
import secrets
from base64 import urlsafe_b64decode, urlsafe_b64encode
from collections.abc import Callable, Mapping
from pathlib import Path

from bardo.adapters.config.environment import WORKERS_FOLDER
from bardo.adapters.config.settings import Settings, state_path
from bardo.values.errors import ConfigError
from bardo.values.once import once

_log = logging.getLogger("bardo.sealing")
_KEY_FILE = "sealing.key"
_KEY_BYTES = 32
_LEAST_KEY = 16
_NONCE_BYTES, _SIGNATURE_BYTES = 16, 32


class Sealer:
    """Seals and opens texts. `load_key` is asked once, when a text is first sealed or opened."""

    def __init__(self, load_key: Callable[[], bytes]) -> None:
        self._load_key = load_key

    @once
    def _keys(self) -> tuple[bytes, bytes]:
        key = self._load_key()
        return tuple(hmac.digest(key, use, "sha256") for use in (b"bardo: encrypt", b"bardo: sign"))  # type: ignore[return-value]

    def seal(self, text: bytes, purpose: str, owner: str) -> str:
        """Return a text sealed for a purpose, as base64 that is safe in addresses: only `open` with the same purpose and owner reads it."""
        nonce = secrets.token_bytes(_NONCE_BYTES)
        hidden = self._with_stream(text, nonce)
        return urlsafe_b64encode(nonce + self._signature(nonce, hidden, purpose, owner) + hidden).decode()

    def open(self, sealed: str, purpose: str, owner: str) -> bytes | None:
        """Return what was sealed; None for what was cut or changed, or was sealed with another key, for another purpose or owner."""
        try:
            raw = urlsafe_b64decode(sealed.encode("ascii"))
        except ValueError:
            return None
        nonce, signature = raw[:_NONCE_BYTES], raw[_NONCE_BYTES : _NONCE_BYTES + _SIGNATURE_BYTES]
        hidden = raw[_NONCE_BYTES + _SIGNATURE_BYTES :]
        # One text has one spelling: base64 is read with letters in it that stand for nothing.
        is_plain = urlsafe_b64encode(raw).decode() == sealed
        if not hmac.compare_digest(signature, self._signature(nonce, hidden, purpose, owner)) or not is_plain:
            return None
        return self._with_stream(hidden, nonce)

    def _with_stream(self, text: bytes, nonce: bytes) -> bytes:
        stream = hashlib.shake_256(self._keys[0] + nonce).digest(len(text))
        return (int.from_bytes(text) ^ int.from_bytes(stream)).to_bytes(len(text))

    def _signature(self, nonce: bytes, hidden: bytes, purpose: str, owner: str) -> bytes:
        # Each part is told with its length, so that none can be taken for the beginning of the next.
        parts = (purpose.encode(), owner.encode("utf-8", "replace"), nonce, hidden)
        signed = b"".join(len(part).to_bytes(8) + part for part in parts)
        return hmac.digest(self._keys[1], signed, "sha256")


def new_sealer() -> Sealer:
    """Return a sealer whose texts cannot be opened after this process."""
    return Sealer(lambda: secrets.token_bytes(_KEY_BYTES))


def open_sealer(settings: Settings, environment: Mapping[str, str] | None = None) -> Sealer:
    """Return the sealer of a configuration. Raises ConfigError where the variable of its key is not set, or its key is too short."""
    variables = os.environ if environment is None else environment
    variable = settings.responses.seal_key_env
    if variable:
        key = variables.get(variable, "").encode()
        if not key:
            message = f"{variable}, which holds the key that seals compacted conversations, is not set"
            raise ConfigError(message, hint=f"set {variable}, or leave out responses.seal_key_env")
        if len(key) < _LEAST_KEY:
            message = f"the key in {variable} has {len(key)} bytes, and at least {_LEAST_KEY} are needed"
            raise ConfigError(message, hint="make one with `openssl rand -base64 32`")
        return Sealer(lambda: key)
    state = state_path(settings, environment)
    folder = state.parent if isinstance(state, Path) else None
    if folder is None and (shared := variables.get(WORKERS_FOLDER)):
        folder = Path(shared)
    return new_sealer() if folder is None else Sealer(lambda: _kept_key(folder / _KEY_FILE))


def _kept_key(path: Path) -> bytes:
    """Return the key in a file that its owner alone may read, made where there is none; one of this process where it cannot be kept."""
    made = secrets.token_bytes(_KEY_BYTES)
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        beside = path.with_name(f"{path.name}.{secrets.token_hex(8)}")
        beside.touch(mode=0o600, exist_ok=False)
        try:
            beside.write_text(made.hex())
            # Whoever is first gives the file its name whole; the others read that one.
            os.link(beside, path)
        except FileExistsError:
            made = bytes.fromhex(path.read_text().strip())
        finally:
            beside.unlink()
        if len(made) < _LEAST_KEY:
            raise ValueError("too short")
    except (OSError, ValueError) as problem:
        _log.warning(
            "the key in %s cannot be used (%s): conversations that are compacted now cannot be read after a restart",
            path,
            type(problem).__name__,
        )
        return secrets.token_bytes(_KEY_BYTES)
    return made
