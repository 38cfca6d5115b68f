"""Run bardo with the lowest versions that pyproject.toml allows, or with the newest: `check_versions.py oldest`, or `newest`.

Each has an environment of its own, `.venv-oldest` and `.venv-newest`, with all extras but those of LEFT_OUT. It is made again once
pyproject.toml or a version of TOOLS has changed, the one with the newest versions also on another day. In it run the demo, a gateway in
processes of its own, which is asked in three dialects, and the tests of TESTS. The exit status is 1 where something does not work, and 0
where no registry of packages can be reached.

This program needs no package; uv is installed into `.venv-lock`.
"""

from __future__ import annotations

import datetime
import hashlib
import http.client
import json
import os
import re
import shutil
import signal
import subprocess
import sys
import tempfile
import threading
import time
import tomllib
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any, NamedTuple

ROOT = Path(__file__).resolve().parents[1]
UV = ROOT / ".venv-lock" / "bin" / "uv"

LEFT_OUT = {
    "presidio": "spaCy, which it brings, has 120 MB and keeps numpy below its newest",
}
"""Extras that are not installed, and why."""
TOOLS = ("pytest", "pytest-timeout", "pytest-xdist", "hypothesis", "cryptography", "packaging", "pyte")
"""What the tests need, in the versions of tools/constraints.txt."""
TESTS = {
    "httptools, uvloop, h11": (
        "tests/security/test_one_reading_of_requests.py",
        "tests/server/test_server_protocol.py",
        "tests/server/test_server_reply.py",
        "tests/server/test_serving.py",
        "tests/server/test_worker_events.py",
    ),
    "uvicorn": ("tests/server/test_uvicorn.py",),
    "httptools, uvloop, aiohappyeyeballs": (
        "tests/adapters/net/test_http.py",
        "tests/adapters/net/test_http_connections.py",
        "tests/adapters/net/test_http_destinations.py",
        "tests/adapters/net/test_http_errors.py",
        "tests/adapters/net/test_http_hang_up.py",
        "tests/adapters/net/test_http_resend.py",
        "tests/adapters/net/test_http_tunnel.py",
        "tests/adapters/net/test_direct_addresses.py",
    ),
    "sqlalchemy, alembic, psycopg, redis": (
        "tests/adapters/stores/database",
        "tests/adapters/stores/test_earlier_databases.py",
        "tests/adapters/stores/log/test_log_contract.py",
        "tests/adapters/stores/log/test_log_stores.py",
        "tests/adapters/stores/log/test_log_revisions.py",
        "tests/adapters/stores/log/test_insert.py",
        "tests/adapters/stores/memory/test_memory_contract.py",
        "tests/adapters/stores/state/test_store_contract.py",
        "tests/adapters/stores/state/test_shared_stores.py",
        "tests/services/pipeline/reply_cache/test_stores.py",
        "tests/services/accounts/test_key_tables.py",
        "tests/services/accounts/test_redis_leases.py",
        "tests/batches/test_batch_stores.py",
        "tests/batches/test_batch_schema.py",
    ),
    "prometheus-client, opentelemetry": (
        "tests/services/telemetry/test_telemetry.py",
        "tests/services/telemetry/test_hostile_labels.py",
    ),
    "x402, eth-account": ("tests/services/payments/test_packages.py",),
    "pyarrow, numpy, onnxruntime, tokenizers": (
        "tests/adapters/stores/export/test_files.py",
        "tests/adapters/embedding/test_head_training.py",
        "tests/adapters/embedding/test_onnx_embedding.py",
    ),
    "phonenumbers": ("tests/adapters/embedding/test_personal_data.py",),
    "msgspec, tomli, jsonschema-rs, json-repair": (
        "tests/adapters/config/test_settings.py",
        "tests/structured/test_validate.py",
        "tests/structured/test_validate_defaults.py",
        "tests/structured/test_repair.py",
    ),
    "typer, rich": (
        "tests/surfaces/cli/test_cli_program.py",
        "tests/surfaces/cli/test_cli_words.py",
        "tests/surfaces/cli/test_markdown_blocks.py",
    ),
    "jinja2, markdown-it-py, pygments": (
        "tests/surfaces/panel/test_markdown.py",
        "tests/surfaces/panel/test_panel_values.py",
    ),
    "python-telegram-bot, discord.py": ("tests/surfaces/chat",),
    "google-auth": ("tests/surfaces/gateway/test_clouds.py",),
}
"""The tests of what is imported."""
OLDEST_PYTHON = "3.11"
"""The lowest versions are tried on it: some have no wheel for a later one."""

REASONING = "Seven times six: 6 × 7."
ANSWER = "It is forty-two: “42” €."
_QUESTION = "What is six times seven?"
_UNREACHABLE = re.compile(
    "error sending request|dns error|Temporary failure in name resolution|Connection (?:refused|reset|broken)|"
    "No matching distribution found for uv|Could not find a version that satisfies the requirement uv"
)
_START_SECONDS = 120.0


class Unreachable(Exception):
    """No registry of packages can be reached, or the Python that is needed is not on this machine."""


class Failed(Exception):
    """Something does not work with these versions."""


# The environment


def extras() -> list[str]:
    """Return the extras that are installed: all but those of LEFT_OUT."""
    return [name for name in _project()["project"]["optional-dependencies"] if name not in LEFT_OUT]


def tools() -> list[str]:
    """Return what the tests need, in exact versions."""
    lines = (ROOT / "tools" / "constraints.txt").read_text().splitlines()
    return [line for line in lines if line.partition("==")[0] in TOOLS]


def make_environment(which: str) -> Path:
    """Make the environment where it is not there or out of date, and return the folder of its programs. Raises Unreachable, Failed."""
    folder = ROOT / f".venv-{which}"
    programs, made = folder / "bin", folder / ".ready"
    state = hashlib.sha256("\n".join([(ROOT / "pyproject.toml").read_text(), *extras(), *tools()]).encode()).hexdigest()
    if which == "newest":
        state += f" {datetime.date.today()}"
    if made.exists() and made.read_text() == state:
        return programs
    if not UV.exists():
        _install([sys.executable, "-m", "venv", str(UV.parents[1])])
        _install([str(UV.with_name("python")), "-m", "pip", "install", "--quiet", "--disable-pip-version-check", "uv"])
    shutil.rmtree(folder, ignore_errors=True)
    _install([str(UV), "venv", "--quiet", "--python", _python(which), str(folder)])
    install = [str(UV), "pip", "install", "--quiet", "--python", str(programs / "python")]
    resolution = "lowest-direct" if which == "oldest" else "highest"
    _install([*install, "--resolution", resolution, "--editable", f"{ROOT}[{','.join(extras())}]", *tools()])
    made.write_text(state)
    return programs


def _project() -> dict[str, Any]:
    return tomllib.loads((ROOT / "pyproject.toml").read_text())


def _python(which: str) -> str:
    """Return the Python of an environment. Raises Unreachable where there is none."""
    if which == "newest" or f"{sys.version_info.major}.{sys.version_info.minor}" == OLDEST_PYTHON:
        return sys.executable
    kept = sorted(Path.home().glob(f".pyenv/versions/{OLDEST_PYTHON}.*/bin/python"))
    found = next(map(str, kept), None) or shutil.which(f"python{OLDEST_PYTHON}")
    if found is None:
        raise Unreachable(f"Python {OLDEST_PYTHON} is not on this machine")
    return found


def _install(command: Sequence[str]) -> None:
    """Run a program that may need a registry, with this machine's settings."""
    variables = {name: value for name, value in os.environ.items() if name not in ("PYTHONPATH", "VIRTUAL_ENV")}
    ended = subprocess.run(
        command, env=variables | {"UV_PYTHON_DOWNLOADS": "never"}, capture_output=True, text=True, check=False
    )
    if not ended.returncode:
        return
    if _UNREACHABLE.search(ended.stderr):
        raise Unreachable("no registry of packages can be reached")
    raise Failed(f"{' '.join(command[:4])} … ended with {ended.returncode}:\n{ended.stderr[-3000:]}")


# What runs in it


def run(command: Sequence[str | Path], variables: Mapping[str, str], *, shown: bool = False) -> str:
    """Run a program of the environment and return what it printed; where it is `shown`, it prints for itself. Raises Failed."""
    output = None if shown else subprocess.PIPE
    ended = subprocess.run(list(map(str, command)), env=variables, stdout=output, stderr=output, cwd=ROOT, check=False)
    if ended.returncode:
        told = "" if shown else f":\n{(ended.stdout + ended.stderr).decode(errors='replace')[-3000:]}"
        raise Failed(f"{Path(command[0]).name} {command[1]} ended with {ended.returncode}{told}")
    return "" if shown else str(ended.stdout.decode())


@contextmanager
def running(
    command: Sequence[str | Path], told: str, variables: Mapping[str, str], folder: Path
) -> Iterator[list[str]]:
    """Run a program that serves until it is interrupted, and give what it has told on stderr up to a line with `told`.

    Its stdout goes into a file called `output` in `folder`. Raises Failed, with what it told, where it does not start, where what is done
    meanwhile raises anything, and where it does not end well.
    """
    with (folder / "output").open("wb") as output:
        # A session of its own: its workers are ended with it.
        process = subprocess.Popen(
            list(map(str, command)),
            env=variables,
            stdout=output,
            stderr=subprocess.PIPE,
            cwd=folder,
            text=True,
            start_new_session=True,
        )
    assert process.stderr is not None
    # Where it does not start, its end ends the reading below.
    timer = threading.Timer(_START_SECONDS, _kill, [process])
    timer.start()
    try:
        lines: list[str] = []
        for line in process.stderr:
            lines.append(line)
            if told in line:
                break
        else:
            raise Failed(f"bardo {command[1]} does not start:\n{''.join(lines)}")
        timer.cancel()
        problem: Exception | None = None
        try:
            yield lines
        except Exception as error:  # noqa: BLE001 - Whatever it is, what the program told says more.
            problem = error
        process.send_signal(signal.SIGINT)
        _, rest = process.communicate(timeout=_START_SECONDS)
        if problem is not None:
            raise Failed(f"bardo {command[1]}: {type(problem).__name__}: {problem}\n{rest[-3000:]}") from problem
        if process.returncode or "Traceback" in rest:
            raise Failed(f"bardo {command[1]} ended with {process.returncode}:\n{rest[-3000:]}")
    except subprocess.TimeoutExpired as late:
        raise Failed(f"bardo {command[1]} does not end") from late
    finally:
        timer.cancel()
        _kill(process)
        process.wait()
        process.stderr.close()


def _kill(process: subprocess.Popen[str]) -> None:
    with suppress(ProcessLookupError):
        os.killpg(process.pid, signal.SIGKILL)


class Dialect(NamedTuple):
    """How a client asks in one dialect, and where the reply has its thinking and its text."""

    name: str
    provider: str
    """Which of the simulated providers is asked, one of another dialect."""
    path: str
    streamed_path: str
    body: Mapping[str, Any]


DIALECTS = (
    Dialect(
        name="Chat",
        provider="anthropic",
        path="/v1/chat/completions",
        streamed_path="/v1/chat/completions",
        body={"messages": [{"role": "user", "content": _QUESTION}], "reasoning_effort": "high"},
    ),
    Dialect(
        name="Messages",
        provider="gemini",
        path="/v1/messages",
        streamed_path="/v1/messages",
        body={
            "messages": [{"role": "user", "content": _QUESTION}],
            "max_tokens": 9000,
            "thinking": {"type": "enabled", "budget_tokens": 2000},
        },
    ),
    Dialect(
        name="Gemini",
        provider="deepseek",
        path="/v1beta/models/{model}:generateContent",
        streamed_path="/v1beta/models/{model}:streamGenerateContent?alt=sse",
        body={
            "contents": [{"role": "user", "parts": [{"text": _QUESTION}]}],
            "generationConfig": {"thinkingConfig": {"includeThoughts": True}},
        },
    ),
)


def check_gateway(programs: Path, *, workers: int) -> None:
    """Ask a gateway with so many workers whole and streamed in each dialect, and read its log. Raises Failed."""
    with tempfile.TemporaryDirectory(prefix="bardo-versions-") as temporary:
        folders = {name: Path(temporary) / name for name in ("simulate", "serve", "data")}
        for folder in folders.values():
            folder.mkdir()
        variables = {
            "PATH": os.defpath,
            "HOME": temporary,
            "XDG_DATA_HOME": str(folders["data"]),
            "SIMULATED_KEY": "any",
        }
        script = folders["simulate"] / "script.toml"
        # A text of JSON is one of TOML.
        script.write_text(f"[[turns]]\nreasoning = {json.dumps(REASONING)}\ntext = {json.dumps(ANSWER)}\n")
        bardo = programs / "bardo"
        simulate: list[str | Path] = [bardo, "simulate", *(one.provider for one in DIALECTS), "--script", script]
        with running(simulate, "Ctrl-C", variables, folders["simulate"]):
            serve: list[str | Path] = [
                bardo,
                "serve",
                "--port",
                "0",
                "--workers",
                str(workers),
                "--config",
                folders["simulate"] / "output",
            ]
            with running(serve, "in a browser", variables, folders["serve"]) as lines:
                address = re.findall(r"http://([^\s/]+)", "".join(lines))[0]
                for dialect in DIALECTS:
                    for streamed in (False, True):
                        _ask(address, dialect, streamed=streamed)
        rows = json.loads(run([bardo, "log", "--json", "--config", folders["simulate"] / "output"], variables))
        if [row["outcome"] for row in rows] != ["ok"] * (2 * len(DIALECTS)):
            raise Failed(f"the log should hold {2 * len(DIALECTS)} calls that were answered, and holds {rows}")


def _ask(address: str, dialect: Dialect, *, streamed: bool) -> None:
    """Ask once and compare thinking and text of the reply with what the provider said."""
    connection = http.client.HTTPConnection(address, timeout=_START_SECONDS)
    try:
        models = json.loads(_exchange(connection, "GET", "/v1/models"))["data"]
        model = next(f"{dialect.provider}/{one['id']}" for one in models if one["owned_by"] == dialect.provider)
        body = dict(dialect.body)
        if "{model}" not in dialect.path:
            body |= {"model": model, "stream": streamed}
        path = (dialect.streamed_path if streamed else dialect.path).replace("{model}", model)
        reply = _exchange(connection, "POST", path, json.dumps(body).encode())
    finally:
        connection.close()
    lines = [line.removeprefix("data: ") for line in reply.splitlines() if line.startswith("data: {")]
    pieces = [json.loads(line) for line in lines] if streamed else [json.loads(reply)]
    found = ["".join(words) for words in zip(*(_words(dialect.name, piece) for piece in pieces), strict=True)]
    if found != [REASONING, ANSWER] or (streamed and len(pieces) < 4):
        raise Failed(f"{dialect.name}, {'streamed' if streamed else 'whole'}: not the provider's words but\n{reply}")


def _exchange(connection: http.client.HTTPConnection, method: str, path: str, body: bytes | None = None) -> str:
    connection.request(method, path, body, {"content-type": "application/json"})
    reply = connection.getresponse()
    text = reply.read().decode()
    if reply.status != http.HTTPStatus.OK:
        raise Failed(f"{method} {path} was answered with {reply.status}: {text}")
    return text


def _words(dialect: str, piece: Any) -> tuple[str, str]:
    """Return thinking and text of a whole reply, or of a piece of a streamed one."""
    match dialect:
        case "Chat":
            [choice] = piece["choices"]
            said = choice.get("message") or choice.get("delta") or {}
            return said.get("reasoning_content") or "", said.get("content") or ""
        case "Messages":
            parts = [*piece.get("content", ()), piece.get("delta", {})]
            return "".join(one.get("thinking", "") for one in parts), "".join(one.get("text", "") for one in parts)
        case _:
            parts = [one for candidate in piece["candidates"] for one in candidate["content"]["parts"]]
            thoughts = [one["text"] for one in parts if one.get("thought")]
            return "".join(thoughts), "".join(one["text"] for one in parts if not one.get("thought"))


def check(which: str) -> None:
    """Make the environment and run everything in it. Raises Unreachable, Failed."""
    programs = make_environment(which)
    variables = {"PATH": os.environ.get("PATH", os.defpath), "HOME": str(Path.home())}
    versions = installed(programs, variables)
    print(f"{which}:", ", ".join(f"{_name(line)} {version}" for line, version in versions.items()), flush=True)
    higher = [f"{line}: {version}" for line, version in versions.items() if not is_lowest(line, version)]
    if which == "oldest" and higher:
        raise Failed(
            f"lowest versions that are not installed, as something else needs a later one: {'; '.join(higher)}"
        )
    if "visible" not in run([programs / "bardo", "demo"], variables):
        raise Failed("`bardo demo` does not show the thinking of any provider")
    for workers in (1, 2):
        check_gateway(programs, workers=workers)
    print(
        f"{which}: the demo, and a gateway in three dialects, whole and streamed, with one worker and with two",
        flush=True,
    )
    run_tests(programs, variables)


def run_tests(programs: Path, variables: Mapping[str, str]) -> None:
    """Run the tests of TESTS. Those that fail run again by themselves: a version is not to blame where they pass there. Raises Failed."""
    tests = [path for paths in TESTS.values() for path in paths]
    cache = f"cache_dir={programs.parent / '.pytest_cache'}"
    run([programs / "python", "tools/run_tests.py", "-o", cache, *tests], variables, shown=True)


def installed(programs: Path, variables: Mapping[str, str]) -> dict[str, str]:
    """Return what bardo and its extras ask for, as they write it, and the version of each that is installed."""
    project = _project()["project"]
    asked = [*project["dependencies"], *(line for name in extras() for line in project["optional-dependencies"][name])]
    code = "import importlib.metadata, sys; print(*map(importlib.metadata.version, sys.argv[1:]))"
    versions = run([programs / "python", "-c", code, *map(_name, asked)], variables).split()
    return dict(zip(asked, versions, strict=True))


def _name(requirement: str) -> str:
    return re.split(r"[^-\w.]", requirement)[0]


def is_lowest(requirement: str, version: str) -> bool:
    """Whether a version is the lowest that a requirement allows. What something else needs may not raise it: it would not have been run."""
    [lowest] = re.findall(r"[>=]=([\d.]+\d)", requirement)
    return lowest.split(".") == version.split(".")[: lowest.count(".") + 1] and not version[len(lowest) :].strip(".0")


def main(arguments: Sequence[str]) -> int:
    """Check each of the environments that are named, and return the exit status."""
    status = 0
    for which in arguments:
        started = time.monotonic()
        try:
            check(which)
        except Unreachable as reason:
            print(f"{which}: skipped, since {reason}", flush=True)
        except Failed as problem:
            print(f"{which}: {problem}", file=sys.stderr, flush=True)
            status = 1
        else:
            print(f"{which}: {time.monotonic() - started:.0f} s; without {', '.join(LEFT_OUT)}", flush=True)
    return status


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:] or ["oldest", "newest"]))
