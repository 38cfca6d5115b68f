"""`bardo run`: a program finds the gateway by its environment, its exit code is bardo's, and the gateway ends with it."""

from __future__ import annotations

import json
import subprocess
import sys
import threading
import urllib.error
import urllib.request
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import pytest

from bardo.adapters.config.settings import parse_settings
from bardo.catalog.agent_rows import agent_rows
from bardo.surfaces.cli.run import find_running_gateway
from bardo.surfaces.cli.running_gateway import gateway_key
from support.any_model import Simulator
from support.patience import PATIENCE
from surfaces.cli.support import bardo, line_with, running, simulated

AGENT = f"""#!{sys.executable}
import json, os, sys, urllib.request
from pathlib import Path
address = os.environ.get("ANTHROPIC_BASE_URL") or os.environ["OPENAI_BASE_URL"]
body = json.dumps({{"model": os.environ.get("ANTHROPIC_MODEL", "anthropic/m"), "max_tokens": 50,
                    "messages": [{{"role": "user", "content": "What is 27 * 43?"}}]}}).encode()
headers = {{"content-type": "application/json", "x-api-key": "any"}}
with urllib.request.urlopen(urllib.request.Request(address + "/v1/messages", body, headers)) as reply:
    said = json.load(reply)
told = {{"address": address, "arguments": sys.argv[1:], "said": said["content"][-1]["text"], "model": said["model"],
         "key": os.environ.get("ANTHROPIC_API_KEY"), "token": os.environ.get("ANTHROPIC_AUTH_TOKEN")}}
Path("told.json").write_text(json.dumps(told))
sys.exit(3)
"""


@pytest.fixture
def program_of(folder: Path, monkeypatch: pytest.MonkeyPatch) -> Any:
    monkeypatch.setenv("PATH", str(folder / "bin"), prepend=":")
    monkeypatch.setenv("ANTHROPIC_API_KEY", "sk-the-users-own")
    monkeypatch.setenv("SIMULATED_KEY", "sk-simulated")

    def make(name: str) -> None:
        (folder / "bin").mkdir(exist_ok=True)
        file = folder / "bin" / name
        file.write_text(AGENT)
        file.chmod(0o755)

    return make


def told(folder: Path) -> dict[str, Any]:
    return json.loads((folder / "told.json").read_text())  # type: ignore[no-any-return]


def test_a_program_runs_with_a_gateway_of_its_own(folder: Path, program_of: Any) -> None:
    program_of("claude")
    with simulated(Simulator("anthropic"), folder=folder):
        done = bardo("run", "--own", "--model", "anthropic/claude-x", "claude", "--", "-p", "--model", "its own")
    assert done.code == 3, done.err
    found = told(folder)
    assert found["said"] == "1161"
    first, told_first, *others = found["arguments"]
    discovery = {"CLAUDE_CODE_ENABLE_GATEWAY_MODEL_DISCOVERY": "1"}
    assert (first, json.loads(told_first)) == (
        "--settings",
        {"env": {"ANTHROPIC_BASE_URL": found["address"], **discovery}},
    )
    assert others == ["--model", "anthropic/claude-x", "-p", "--model", "its own"]
    assert found["model"] == "anthropic/claude-x"
    assert (found["key"], found["token"]) == (None, "any")
    with pytest.raises(urllib.error.URLError):
        urllib.request.urlopen(f"{found['address']}/healthz", timeout=PATIENCE)


def test_it_uses_the_gateway_that_runs(folder: Path, program_of: Any) -> None:
    program_of("some-tool")
    with simulated(Simulator("anthropic"), folder=folder), running("serve", "--port", "0") as process:
        address = line_with(process.stderr, "bardo listens on").split()[3]
        line_with(process.stderr, "OPENAI_BASE_URL")
        with (folder / "bardo.toml").open("a") as settings:
            settings.write(f"\n[gateway]\nport = {address.rpartition(':')[2]}\n")
        for _ in range(50):
            done = bardo("run", "some-tool")
            if told(folder)["address"] == address:
                break
    assert done.code == 3
    assert told(folder)["address"] == address


class OtherServer(BaseHTTPRequestHandler):
    """A server of something else that looks well."""

    body = b""

    def do_GET(self) -> None:
        self.send_response(200)
        self.send_header("content-length", str(len(self.body)))
        self.end_headers()
        self.wfile.write(self.body)

    def log_message(self, *_: Any) -> None:
        return None


@pytest.mark.parametrize(
    "body", [b'{"status": "ok"}', b'["server", "bardo"]', b"ok", b'{"status": "ok", "server": "x"}']
)
def test_another_server_is_not_taken_for_a_gateway(body: bytes) -> None:
    handler = type("Handler", (OtherServer,), {"body": body})
    with ThreadingHTTPServer(("127.0.0.1", 0), handler) as server:
        serving = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01})
        serving.start()
        try:
            settings = parse_settings(f"[gateway]\nport = {server.server_address[1]}\n")
            assert find_running_gateway(settings) == ""
        finally:
            server.shutdown()
            serving.join()


def test_a_program_that_is_not_there(folder: Path) -> None:
    done = bardo("run", "--own", "no-such-agent")
    assert done.code == 127
    assert "no-such-agent" in done.err


def test_a_file_that_the_system_cannot_run(folder: Path, program_of: Any) -> None:
    program_of("claude")
    (folder / "bin" / "claude").write_text("echo a script without its first line\n")
    with simulated(Simulator("anthropic"), folder=folder):
        done = bardo("run", "--own", "claude")
    assert done.code == 126
    assert "cannot run" in done.err
    assert "Traceback" not in done.err


def test_codex_is_told_by_its_arguments() -> None:
    row = agent_rows()["codex"]
    start = row.start(["exec", "hello"], {"PATH": "x"}, address="http://127.0.0.1:1", key="k", model="m")
    assert start.arguments[-2:] == ["exec", "hello"]
    assert 'model_providers.bardo.base_url="http://127.0.0.1:1/v1"' in start.arguments
    assert 'model="m"' in start.arguments
    assert start.environment["BARDO_API_KEY"] == "k"
    assert "127.0.0.1" in start.environment["NO_PROXY"]


def test_no_placeholder_is_left() -> None:
    for row in agent_rows().values():
        start = row.start([], {}, address="A", key="K", model="M", folder="F", context="9")
        files = row.told(address="A", key="K", model="M", folder="F").files
        said = "".join((*start.arguments, *start.environment.values(), *files.values()))
        assert [name for name in ("{address}", "{key}", "{model}", "{folder}", "{context}") if name in said] == []
        for value in (*start.arguments, *start.environment.values(), *files.values()):
            assert not value.startswith("{") or json.loads(value)


def test_keys_are_in_no_arguments() -> None:
    """What a process was started with is seen by every user of a machine."""
    for row in agent_rows().values():
        start = row.start([], {}, address="A", key="THE-KEY", model="M")
        assert [one for one in start.arguments if "THE-KEY" in one] == []


def test_the_key_of_the_gateway_has_one_name_and_an_older_one() -> None:
    assert gateway_key(environment={"BARDO_API_KEY": " new ", "BARDO_KEY": "old"}) == "new"
    assert gateway_key(environment={"BARDO_API_KEY": " ", "BARDO_KEY": "old"}) == "old"
    assert gateway_key("given", {"BARDO_API_KEY": "new"}) == "given"
    assert gateway_key(environment={}) == ""


SHOWS = f"""#!{sys.executable}
import json, os, sys
from pathlib import Path
names = [name for name in os.environ if name.startswith(("ANTHROPIC_", "CLAUDE_", "OPENCODE_", "CODEX_", "BARDO_"))]
Path("told.json").write_text(json.dumps({{"arguments": sys.argv[1:], "environment": {{name: os.environ[name] for name in sorted(names)}}}}))
"""


@pytest.mark.parametrize("key", ["", "bardo_a$b\"c'd"], ids=["without a key", "with a key"])
@pytest.mark.parametrize("agent", ["claude", "opencode"])
def test_what_is_printed_starts_a_program_as_running_it_does(
    folder: Path, program_of: Any, monkeypatch: pytest.MonkeyPatch, agent: str, key: str
) -> None:
    program_of(agent)
    (folder / "bin" / agent).write_text(SHOWS)
    monkeypatch.setenv("CLAUDE_CODE_USE_BEDROCK", "1")
    if key:
        monkeypatch.setenv("BARDO_API_KEY", key)
    printed = bardo("run", "--print", "--model", "a model", agent, "--", "-p", "it's $HOME {key}", "", "'")
    assert printed.code == 0, printed.err
    assert not key or key not in printed.out
    subprocess.run(["sh", "-e", "-c", printed.out], check=True, cwd=folder)
    found = told(folder)
    row = agent_rows()[agent]
    wanted = row.start(
        ["-p", "it's $HOME {key}", "", "'"], {}, address="http://127.0.0.1:8484", key=key or "any", model="a model"
    )
    assert found["arguments"] == wanted.arguments
    left = {"ANTHROPIC_API_KEY", "CLAUDE_CODE_USE_BEDROCK"}.difference(row.unset)
    told_of = {name: value for name, value in wanted.environment.items() if not name.lower().startswith("no_proxy")}
    environment = {name: value for name, value in found["environment"].items() if name not in left}
    assert environment == {**told_of, **({"BARDO_API_KEY": key} if key else {})}


@pytest.mark.parametrize(("model", "tokens"), [("anthropic/long", "65536"), ("anthropic/claude-x", None)])
def test_claude_code_is_told_how_long_the_context_of_its_model_is(
    folder: Path, program_of: Any, model: str, tokens: str | None
) -> None:
    program_of("claude")
    (folder / "bin" / "claude").write_text(SHOWS)
    with simulated(Simulator("anthropic"), folder=folder):
        row = '\n[[models]]\nprovider = "anthropic"\nmatch = ["long"]\ncontext = 65536\n'
        with (folder / "bardo.toml").open("a", encoding="utf-8") as file:
            file.write(row)
        done = bardo("run", "--own", "--model", model, "claude")
    assert done.code == 0, done.err
    assert told(folder)["environment"].get("CLAUDE_CODE_MAX_CONTEXT_TOKENS") == tokens


def test_what_is_printed_needs_no_program_and_no_gateway(folder: Path) -> None:
    printed = bardo("run", "--print", "no-such-agent")
    assert printed.code == 0
    assert "OPENAI_BASE_URL" in printed.out


SHOW = f"""#!{sys.executable}
import json, os, sys
from pathlib import Path
folder = os.environ.get("CRUSH_GLOBAL_DATA") or os.path.dirname(os.environ.get("CLINE_PROVIDER_SETTINGS_PATH", ""))
files = {{one.name: one.read_text() for one in Path(folder).iterdir()}} if folder else {{}}
Path("shown.json").write_text(json.dumps({{"arguments": sys.argv[1:], "environment": dict(os.environ), "files": files}}))
"""


@pytest.mark.parametrize("key", ["", "bardo_$x`y"])
def test_what_is_printed_is_what_a_program_is_told(folder: Path, key: str, monkeypatch: pytest.MonkeyPatch) -> None:
    (folder / "bin").mkdir()
    monkeypatch.setenv("PATH", str(folder / "bin"), prepend=":")
    monkeypatch.setenv("BARDO_API_KEY", key)
    for row in agent_rows().values():
        if row.refused:
            continue
        command = row.command or "some-tool"
        file = folder / "bin" / command
        file.write_text(SHOW)
        file.chmod(0o755)
        done = bardo("run", "--print", "--model", "lab/m", command, "--", "it's", "$HOME")
        assert done.code == 0, done.err
        assert not key or key not in done.out
        subprocess.run(["sh", "-eu", "-c", done.out], cwd=folder, check=True, timeout=PATIENCE)
        shown = json.loads((folder / "shown.json").read_text())
        address = done.out.splitlines()[0].split()[-1]
        place = next((one for one in (shown["environment"].get("CRUSH_GLOBAL_DATA"),) if one and row.files), "")
        place = place or str(Path(shown["environment"].get("CLINE_PROVIDER_SETTINGS_PATH", "")).parent)
        told = row.told(address=address, key=key or "any", model="lab/m", folder=place)
        assert shown["arguments"] == [*told.arguments, "it's", "$HOME"], command
        assert told.environment.items() <= shown["environment"].items(), command
        assert not set(row.unset) & shown["environment"].keys(), command
        assert shown["files"].keys() == told.files.keys()
        for text in shown["files"].values():
            assert "lab/m" in text
            assert address in text
            json.loads(text)


def test_an_agent_that_needs_a_model_or_takes_no_gateway_says_so() -> None:
    done = bardo("run", "--print", "copilot")
    assert done.code == 2
    assert "--model" in done.err
    done = bardo("run", "--model", "lab/m", "amp")
    assert done.code != 0
    assert "its own server" in done.err.replace("\n", " ") or "own server" in done.err


def test_files_of_a_program_are_there_while_it_runs(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (folder / "bin").mkdir()
    (folder / "bin" / "crush").write_text(SHOW)
    (folder / "bin" / "crush").chmod(0o755)
    monkeypatch.setenv("PATH", str(folder / "bin"), prepend=":")
    with simulated(Simulator("anthropic"), folder=folder):
        done = bardo("run", "--own", "--model", "anthropic/claude-x", "crush")
    assert done.code == 0, done.err
    shown = json.loads((folder / "shown.json").read_text())
    assert json.loads(shown["files"]["crush.json"])["models"]["large"]["model"] == "anthropic/claude-x"
    assert not Path(shown["environment"]["CRUSH_GLOBAL_DATA"]).exists()


@pytest.mark.parametrize(
    ("agent", "variable"), [("opencode", "OPENCODE_CONFIG_CONTENT"), ("kilo", "KILO_CONFIG_CONTENT")]
)
def test_agents_that_are_told_what_a_model_takes_send_pictures_to_it(agent: str, variable: str) -> None:
    told = agent_rows()[agent].told(address="http://127.0.0.1:1", key="any", model="gemini/m")
    [model] = json.loads(told.environment[variable])["provider"]["bardo"]["models"].values()
    assert "image" in model["modalities"]["input"]
    assert model["attachment"] is True
