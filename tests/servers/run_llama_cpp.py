"""Run llama.cpp's HTTP server for each of some chat templates, in one process, until standard input closes.

Reads one line: {"model": path, "servers": {name: {"template": text, "reasoning_format": number}}}. Writes one line: {name: address}.
"""

from __future__ import annotations

import json
import sys
from typing import Any

import xllamacpp  # type: ignore[import-untyped,import-not-found,unused-ignore]


def main() -> None:
    """Start all servers, say where they are, and wait."""
    asked = json.loads(sys.stdin.readline())
    # A server lives as long as somebody holds it.
    servers = {name: _started(asked["model"], options) for name, options in asked["servers"].items()}
    print(json.dumps({name: server.listening_address for name, server in servers.items()}), flush=True)
    sys.stdin.read()


def _started(model: str, options: dict[str, Any]) -> Any:
    parameters = xllamacpp.CommonParams()
    parameters.model.path = model
    parameters.hostnames = ["127.0.0.1"]
    parameters.port = 0
    parameters.chat_template = options["template"]
    parameters.use_jinja = True
    parameters.endpoint_props = True
    parameters.n_ctx = 8192
    parameters.n_parallel = 1
    parameters.n_threads_http = 2
    parameters.cpuparams.n_threads = parameters.cpuparams_batch.n_threads = 1
    # What speeds up models of a useful size costs this one more than it computes.
    parameters.warmup = parameters.fit_params = False
    parameters.cache_ram_mib = 0
    parameters.verbosity = -1
    for name, value in options.get("parameters", {}).items():
        setattr(parameters, name, type(getattr(parameters, name))(value))
    return xllamacpp.Server(parameters)


if __name__ == "__main__":
    main()
