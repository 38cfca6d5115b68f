"""What the examples of the pages need around them: simulated providers, a gateway over them, and a folder with a bardo.toml."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from pathlib import Path
from urllib.request import Request, urlopen

import pytest

from bardo.adapters.config.settings import load_settings
from bardo.server.serving import BackgroundServer
from bardo.simulators import Running, running_many
from bardo.surfaces.gateway.main import gateway_of
from support.any_model import Simulator
from support.patience import PATIENCE

KEY = "DOCS_KEY"
# The ids that the pages use for their providers, and who plays them.
PROVIDERS = {"anthropic": "anthropic", "openai": "openai_responses", "gemini": "gemini", "deepseek": "deepseek"}
SETTINGS = "[gateway]\nport = 0\n\n[log]\nenabled = false\n"
ENTRY = '\n[[providers]]\nid = "{id}"\nbase_url = "{base_url}"\napi_key_env = "{key}"\n'
STREAMED = b'{"model": "qwen/qwen3-32b", "messages": [{"role": "user", "content": "What is 27 * 43?"}], "stream": true}'


@pytest.fixture(scope="session")
def servers() -> Iterator[Mapping[str, Running]]:
    with running_many([Simulator(name) for name in (*PROVIDERS.values(), "groq")]) as running:
        yield running


@pytest.fixture(scope="session")
def configuration(servers: Mapping[str, Running]) -> str:
    """The bardo.toml of the examples."""
    entries = [ENTRY.format(id=name, base_url=servers[who].base_url, key=KEY) for name, who in PROVIDERS.items()]
    return SETTINGS + "".join(entries)


@pytest.fixture(scope="session")
def gateway(configuration: str, tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """The address of a running gateway."""
    file = tmp_path_factory.mktemp("gateway") / "bardo.toml"
    file.write_text(configuration, encoding="utf-8")
    environment = {KEY: "any"}
    app = gateway_of(load_settings(file, environment), environment)
    with BackgroundServer(app) as server:
        yield server.address


@pytest.fixture(scope="session")
def recorded(servers: Mapping[str, Running]) -> bytes:
    """A streamed reply of Groq's form."""
    headers = {"content-type": "application/json", "authorization": "Bearer any"}
    call = Request(f"{servers['groq'].base_url}/chat/completions", STREAMED, headers)
    with urlopen(call, timeout=PATIENCE) as reply:
        body: bytes = reply.read()
        return body


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, configuration: str, recorded: bytes) -> Path:
    """The folder an example runs in, with the files it may read and an environment without anybody's keys."""
    (tmp_path / "bardo.toml").write_text(configuration, encoding="utf-8")
    (tmp_path / "reply.sse").write_bytes(recorded)
    monkeypatch.chdir(tmp_path)
    for name in ("BARDO_CONFIG", "BARDO_HOST", "BARDO_PORT", "BARDO_WORKERS", "BARDO_LOG_PATH"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("XDG_DATA_HOME", str(tmp_path))
    monkeypatch.setenv(KEY, "any")
    return tmp_path
