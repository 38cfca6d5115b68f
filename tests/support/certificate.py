"""A certificate for this machine's own address, made when a test asks for it."""

from __future__ import annotations

import ssl
import tempfile
from functools import cache
from pathlib import Path

import pytest
from benchmarks.certificate import make_certificate


@cache
def certificate() -> bytes:
    """Return a fresh private key and its self-signed certificate (127.0.0.1, provider.example) in PEM. Skips where they cannot be made."""
    pytest.importorskip("cryptography")
    return make_certificate()


def server_context() -> ssl.SSLContext:
    """Return the TLS settings of a server with that certificate."""
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder, "server.pem")
        path.write_bytes(certificate())
        context.load_cert_chain(path)
    return context
