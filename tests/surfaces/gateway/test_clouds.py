"""Azure OpenAI and Vertex AI: their addresses, paths, keys and tokens, over real sockets."""

from __future__ import annotations

import json
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, HTTPServer
from pathlib import Path

import pytest

from support.any_model import Simulator
from support.gateway import SECRET, house
from support.talk import CLIENTS, ask
from surfaces.gateway.cells import whole_and_streamed

MODELS = {
    "azure": "gpt-5",
    "vertex": "gemini-2.5-flash",
    "vertex_anthropic": "claude-sonnet-4-5@20250929",
}


@whole_and_streamed
@pytest.mark.parametrize("client", CLIENTS)
@pytest.mark.parametrize("provider", MODELS)
def test_every_client_is_answered(provider: str, client: str, stream: bool) -> None:
    with house([Simulator(provider, key=SECRET)]) as running:
        answer = ask(running.address, client, f"{provider}/{MODELS[provider]}", stream=stream, thinks=True)
        assert (answer.status, "1161" in answer.text) == (200, True)


def test_azure_takes_its_key_in_a_header_of_its_own() -> None:
    with house([Simulator("azure", key=SECRET)]) as running:
        assert ask(running.address, "openai_chat", "azure/gpt-4.1").status == 200
        (incoming,) = running.arrived("azure")
        assert incoming.headers["api-key"] == SECRET
        assert "authorization" not in incoming.headers
        assert incoming.path == "/openai/v1/chat/completions"


@contextmanager
def token_server() -> Iterator[tuple[str, list[bytes]]]:
    """Run the address where a service account's signed words are changed for a token."""
    asked: list[bytes] = []

    class Handler(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            asked.append(self.rfile.read(int(self.headers["content-length"])))
            body = json.dumps({"access_token": "ya29.made-here", "expires_in": 3600, "token_type": "Bearer"}).encode()
            self.send_response(200)
            self.send_header("content-type", "application/json")
            self.send_header("content-length", str(len(body)))
            self.end_headers()
            self.wfile.write(body)

        def log_message(self, *args: object) -> None:
            """Say nothing."""

    server = HTTPServer(("127.0.0.1", 0), Handler)
    thread = threading.Thread(target=server.serve_forever)
    thread.start()
    try:
        yield f"http://127.0.0.1:{server.server_port}/token", asked
    finally:
        server.shutdown()
        thread.join()
        server.server_close()


def key_file(folder: Path, token_uri: str) -> Path:
    """Write the key file of a service account, with a key made here."""
    serialization = pytest.importorskip("cryptography.hazmat.primitives.serialization")
    rsa = pytest.importorskip("cryptography.hazmat.primitives.asymmetric.rsa")
    pem = rsa.generate_private_key(65537, 2048).private_bytes(
        serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, serialization.NoEncryption()
    )
    account = {
        "type": "service_account",
        "project_id": "simulated",
        "private_key_id": "k",
        "private_key": pem.decode(),
        "client_email": "a@simulated.iam.gserviceaccount.com",
        "token_uri": token_uri,
    }
    file = folder / "account.json"
    file.write_text(json.dumps(account))
    return file


def test_vertex_is_asked_with_the_token_of_the_default_credentials_made_once(tmp_path: Path) -> None:
    pytest.importorskip("google.auth")
    with token_server() as (uri, asked):
        environment = {"GOOGLE_APPLICATION_CREDENTIALS": str(key_file(tmp_path, uri))}
        own = {"api_key_env": ""}
        with house([Simulator("vertex", key="ya29.made-here")], each=own, environment=environment) as running:
            for _ in range(2):
                assert ask(running.address, "openai_chat", "vertex/gemini-2.5-flash").status == 200
            assert running.arrived("vertex")[-1].headers["authorization"] == "Bearer ya29.made-here"
    assert len(asked) == 1


def test_a_token_that_cannot_be_made_is_a_clear_error_without_secrets(tmp_path: Path) -> None:
    pytest.importorskip("google.auth")
    file = tmp_path / "account.json"
    file.write_text('{"type": "service_account", "private_key": "sk-very-secret"}')
    environment = {"GOOGLE_APPLICATION_CREDENTIALS": str(file)}
    with house([Simulator("vertex")], each={"api_key_env": ""}, environment=environment) as running:
        answer = ask(running.address, "openai_chat", "vertex/gemini-2.5-flash")
    assert answer.status == 401
    assert "GOOGLE_APPLICATION_CREDENTIALS" in answer.text
    assert "very-secret" not in answer.text
