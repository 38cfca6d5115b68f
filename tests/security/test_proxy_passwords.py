"""The password of a proxy reaches the proxy alone: no error, no log and no header that a client gets holds it, whatever the proxy says."""

from __future__ import annotations

import asyncio
import base64
import logging
from pathlib import Path

import pytest

from bardo import AsyncClient, BardoError, LogSettings, ProviderEntry, Settings
from support.tiny_provider import port_of

SECRET = "correct-horse-7-battery"
PROOF = base64.b64encode(f"somebody:{SECRET}".encode()).decode()


async def quoting(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    """Refuse a request, and quote all of it in the reason, in a header and in the body."""
    try:
        head = await reader.readuntil(b"\r\n\r\n")
        told = [line for line in head.split(b"\r\n") if line.lower().startswith(b"proxy-authorization")]
        assert told
        assert PROOF.encode() in told[0]
        body = b'{"error": {"message": "%s of %s and %s"}}' % (b"; ".join(told), SECRET.encode(), b"somebody")
        writer.write(
            b"HTTP/1.1 407 %s\r\nX-Request-Id: %s\r\nX-RateLimit-Told: %s\r\nContent-Type: application/json\r\n"
            b"Content-Length: %d\r\nConnection: close\r\n\r\n" % (told[0], SECRET.encode(), told[0], len(body)) + body
        )
        await writer.drain()
    finally:
        writer.close()


@pytest.mark.parametrize("scheme", ["http", "https"])
def test_what_a_proxy_quotes_of_its_password_is_told_to_nobody(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture, tmp_path: Path, scheme: str
) -> None:
    async def run() -> str:
        server = await asyncio.start_server(quoting, "127.0.0.1", 0)
        for name in ("NO_PROXY", "no_proxy", "http_proxy", "https_proxy"):
            monkeypatch.delenv(name, raising=False)
        monkeypatch.setenv(f"{scheme.upper()}_PROXY", f"http://somebody:{SECRET}@127.0.0.1:{port_of(server)}")
        entry = ProviderEntry(
            id="lab", preset="openai-compatible", base_url=f"{scheme}://provider.example/v1", models=("m",)
        )
        settings = Settings(log=LogSettings(path=str(tmp_path / "log.db"), content=True), providers=(entry,))
        try:
            async with AsyncClient(settings) as client:
                with pytest.raises(BardoError) as caught:
                    await client.respond("hi", model="lab/m")
                return f"{caught.value} {caught.value!r}"
        finally:
            server.close()

    with caplog.at_level(logging.DEBUG, "bardo"):
        told = asyncio.run(run())
    assert "407" in told or "[key]" in told
    stored = b"".join(file.read_bytes() for file in tmp_path.rglob("*") if file.is_file())
    assert b"provider" in stored
    for secret in (SECRET, PROOF):
        assert secret not in told
        assert secret not in caplog.text
        assert secret.encode() not in stored
