"""uvicorn serves the gateway as well, by its public command: `uvicorn --factory bardo.surfaces.gateway.main:create_app`."""

from __future__ import annotations

import os
import re
import signal
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest
from websockets.exceptions import InvalidStatus

from support.gateway import Watched
from support.patience import PATIENCE, read_line
from support.raw import RawClient, head, post
from support.talk import Caller, ask, body_for, path_for
from surfaces.gateway.test_websockets import talk

pytestmark = [pytest.mark.each_python, pytest.mark.skipif(sys.platform == "win32", reason="is ended by SIGTERM")]

pytest.importorskip("uvicorn")
APP = "bardo.surfaces.gateway.main:create_app"
ENTRY = '\n[[providers]]\nid = "deepseek"\npreset = "deepseek"\nbase_url = "{}"\napi_key_env = "PROVIDER_KEY"\n'


@contextmanager
def served_by_uvicorn(folder: Path, base_url: str) -> Iterator[tuple[str, subprocess.Popen[bytes]]]:
    """Give the address of a gateway over one provider, which uvicorn serves, and its process."""
    file = folder / "bardo.toml"
    file.write_text("[log]\nenabled = false\n" + ENTRY.format(base_url), encoding="utf-8")
    process = subprocess.Popen(
        [sys.executable, "-m", "uvicorn", "--factory", APP, "--port", "0", "--no-access-log"],
        env={**os.environ, "BARDO_CONFIG": str(file), "PROVIDER_KEY": "any", "HOME": str(folder)},
        stderr=subprocess.PIPE,
    )
    with process:
        try:
            address = ""
            while not address:
                line = read_line(process.stderr)
                assert line, "uvicorn has ended"
                address = "".join(re.findall(r"running on (http://\S+)", line))
            yield address, process
        finally:
            process.kill()


def test_whole_and_streamed_calls_are_answered_and_an_end_comes_in_order(tmp_path: Path) -> None:
    with (
        Watched("deepseek").running() as provider,
        served_by_uvicorn(tmp_path, provider.base_url) as (address, process),
    ):
        model = "deepseek/deepseek-reasoner"
        for client in ("openai_chat", "anthropic_messages"):
            for stream in (False, True):
                answer = ask(address, client, model, stream=stream, thinks=True)
                assert answer.status == 200, answer
                assert "1161" in answer.text.replace(",", ""), answer
        with RawClient(address) as raw:
            raw.send(head(raw.host, "/healthz", "GET"))
            assert raw.reply().status == 200
            raw.send(post(raw.host, "/v1/chat/completions", b"{"))
            assert raw.reply().json["error"]["code"] == "invalid_request"
        process.send_signal(signal.SIGTERM)
        assert process.wait(PATIENCE) in (0, -signal.SIGTERM)


def test_websockets_are_served_and_refused(tmp_path: Path) -> None:
    with Watched("deepseek").running() as provider, served_by_uvicorn(tmp_path, provider.base_url) as (address, _):
        with talk(address) as client:
            first = client.ask(model="deepseek/deepseek-reasoner", input="What is 27 * 43?")
            last = client.ask(model="deepseek/deepseek-reasoner", input="And now?", previous_response_id=first["id"])
            assert last["previous_response_id"] == first["id"]
            assert client.refused(model="nobody/has-it", input="Hi.")["status"] == 404
        with pytest.raises(InvalidStatus) as refused, talk(address, path="/v1/models"):
            pass
        # Its older versions can only say 403.
        assert refused.value.response.status_code in (403, 426)


def test_a_client_that_leaves_ends_its_call(tmp_path: Path) -> None:
    provider = Watched("deepseek", silent_first=True)
    with provider.running() as running, served_by_uvicorn(tmp_path, running.base_url) as (address, _):
        model = "deepseek/deepseek-reasoner"
        with Caller(
            address,
            path_for("openai_chat", model, stream=True),
            body_for("openai_chat", model, stream=True, thinks=True),
        ):
            assert provider.asked.wait(PATIENCE)
        assert provider.over.wait(PATIENCE), "the provider's connection stays open"
