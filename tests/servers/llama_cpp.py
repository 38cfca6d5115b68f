"""llama.cpp's real HTTP server over the scripted model, as a process of its own, and what it says when it is asked directly."""

from __future__ import annotations

import hashlib
import json
import subprocess
import sys
import tempfile
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import msgspec

from servers import gguf, scripted_model, write_model
from support.patience import read_line
from support.talk import request

INSTALLED = find_spec("xllamacpp") is not None
WHY_NOT = "llama.cpp's server is not installed: the wheel `xllamacpp` is not there for every platform"
_TESTS = Path(__file__).resolve().parents[1]


class Answered(msgspec.Struct, frozen=True):
    """One reply in words that all servers and clients share. `calls` are names with their arguments."""

    thinking: str
    text: str
    calls: tuple[tuple[str, Any], ...] = ()


def model_path() -> Path:
    """Return the scripted model's file, written where it is not there yet: 0.6 MB in the folder for temporary files."""
    sources = b"".join(Path(str(module.__file__)).read_bytes() for module in (gguf, scripted_model, write_model))
    version = hashlib.sha256(sources).hexdigest()[:16]
    path = Path(tempfile.gettempdir()) / f"bardo-scripted-{version}.gguf"
    if not path.is_file():
        write_model.write_llama_cpp(path)
    return path


@contextmanager
def llama_cpp(servers: Mapping[str, Mapping[str, Any]]) -> Iterator[Mapping[str, str]]:
    """Run a server for each template, and yield their addresses by name. They end with the block, or with this process."""
    asked = json.dumps({"model": str(model_path()), "servers": servers})
    command = [sys.executable, "-m", "servers.run_llama_cpp"]
    with subprocess.Popen(command, cwd=_TESTS, stdin=subprocess.PIPE, stdout=subprocess.PIPE) as process:
        assert process.stdin is not None
        try:
            process.stdin.write(f"{asked}\n".encode())
            process.stdin.flush()
            yield json.loads(read_line(process.stdout))
        finally:
            process.stdin.close()
            # Its threads hold nothing that is worth an orderly end.
            process.kill()


def ask_directly(address: str, body: Mapping[str, Any]) -> Answered:
    """Return what a server answers to a request in its own words: what it separates, and what it leaves in the text."""
    answer = request(
        address, "POST", "/v1/chat/completions", {"model": "m", "max_tokens": 200, "temperature": 0, **body}
    )
    assert answer.status == 200, answer.text
    message = answer.json["choices"][0]["message"]
    calls = tuple(
        (call["function"]["name"], json.loads(call["function"]["arguments"]))
        for call in message.get("tool_calls") or ()
    )
    return Answered(
        message.get("reasoning_content") or message.get("reasoning") or "", message.get("content") or "", calls
    )
