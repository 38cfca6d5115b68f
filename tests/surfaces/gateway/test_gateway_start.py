"""How a gateway comes to its providers: from a file, from keys in the environment, from servers that run on this machine."""

from __future__ import annotations

from pathlib import Path

import msgspec
import pytest

from bardo.adapters.config.settings import LogSettings, Settings, parse_settings
from bardo.catalog.load import Catalog, builtin
from bardo.catalog.rows import ProviderRow
from bardo.server.serving import BackgroundServer
from bardo.services.facts import directory
from bardo.surfaces.gateway.main import create_app, gateway_of
from bardo.values.errors import ConfigError
from support.any_model import Simulator
from support.gateway import KEY_VARIABLE
from support.talk import ask, request

SILENT = Settings(log=LogSettings(enabled=False))


def row_at(preset: str, base_url: str) -> ProviderRow:
    row = builtin().provider(preset)
    assert row is not None
    return msgspec.structs.replace(row, base_url=base_url)


def test_keys_and_local_servers_are_found_without_a_file(monkeypatch: pytest.MonkeyPatch) -> None:
    hosted, local = Simulator("anthropic", key="sk-1"), Simulator("vllm", models=("qwen3-32b",))
    with hosted.running() as far, local.running() as near:
        rows = [row_at("anthropic", far.base_url), row_at("vllm", near.base_url)]
        monkeypatch.setattr(directory, "builtin", lambda: Catalog(rows))
        with BackgroundServer(gateway_of(SILENT, {"ANTHROPIC_API_KEY": "sk-1"})) as server:
            assert request(server.address, "GET", "/readyz").json["providers"] == ["anthropic", "vllm"]
            listed = [model["id"] for model in request(server.address, "GET", "/v1/models").json["data"]]
            assert "qwen3-32b" in listed
            assert ask(server.address, "openai_chat", "qwen3-32b").headers["x-bardo-provider"] == "vllm"
            assert ask(server.address, "openai_chat", "claude-opus-4-8").headers["x-bardo-provider"] == "anthropic"


def test_with_nobody_at_all_it_serves_and_says_what_to_do(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setattr(directory, "builtin", lambda: Catalog([]))
    with BackgroundServer(gateway_of(SILENT, {})) as server:
        assert request(server.address, "GET", "/v1/models").json["data"] == []
        assert request(server.address, "GET", "/healthz").status == 200
        unready = request(server.address, "GET", "/readyz")
        assert (unready.status, "no provider is configured" in unready.text) == (503, True)
        answer = ask(server.address, "openai_chat", "gpt-5")
    assert answer.status == 404
    assert "set a provider's key in the environment, or write a bardo.toml" in answer.text
    assert "no provider: set a provider's key" in caplog.text


def test_configured_providers_are_all_there_is() -> None:
    with Simulator("vllm").running() as near:
        file = f'[log]\nenabled = false\n[[providers]]\nid = "lab"\npreset = "vllm"\nbase_url = "{near.base_url}"\n'
        with BackgroundServer(gateway_of(parse_settings(file), {"OPENAI_API_KEY": "k"})) as server:
            assert request(server.address, "GET", "/readyz").json["providers"] == ["lab"]


def test_the_server_process_reads_its_file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with Simulator("deepseek").running() as far:
        file = tmp_path / "mine.toml"
        file.write_text(
            f'[log]\npath = "{tmp_path / "log.db"}"\n[[providers]]\nid = "far"\npreset = "deepseek"\n'
            f'base_url = "{far.base_url}"\napi_key_env = "{KEY_VARIABLE}"\n'
        )
        monkeypatch.setenv("BARDO_CONFIG", str(file))
        monkeypatch.setenv(KEY_VARIABLE, "k")
        with BackgroundServer(create_app()) as server:
            assert "1161" in ask(server.address, "openai_chat", "far/m").text
    assert (tmp_path / "log.db").is_file()


def test_a_file_that_is_wrong_stops_the_start(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    file = tmp_path / "mine.toml"
    file.write_text("[gateway]\nprot = 1\n")
    monkeypatch.setenv("BARDO_CONFIG", str(file))
    with pytest.raises(ConfigError, match="line 2: unknown key 'prot'"):
        create_app()
