"""The panel of a gateway with several workers: each knows the sessions that another began."""

from __future__ import annotations

import re
import signal
from contextlib import closing
from pathlib import Path

import httpx

from support.keyed_gateway import make_key
from support.panel_pages import PanelReader
from support.patience import PATIENCE
from surfaces.cli.support import line_with, running

_SEVERAL = "This gateway has 2 workers"


def test_a_session_holds_in_every_worker(tmp_path: Path) -> None:
    config = tmp_path / "bardo.toml"
    config.write_text(
        f'[log]\npath = "{tmp_path / "log.db"}"\n[state]\nurl = "{tmp_path / "state.db"}"\n', encoding="utf-8"
    )
    key = make_key(tmp_path / "state.db", operator=True)[1]
    with running("serve", "--config", str(config), "--port", "0", "--workers", "2") as gateway:
        address = re.findall(r"http://\S+", line_with(gateway.stderr, "listens on"))[0]
        with closing(PanelReader(address, key)) as reader:
            cookies = dict(reader.client.cookies)
        for _ in range(16):
            # A connection of its own each time: whichever worker takes it.
            page = httpx.get(f"{address}/panel", cookies=cookies, timeout=PATIENCE)
            assert page.status_code == 200
            assert _SEVERAL in page.text
        gateway.send_signal(signal.SIGTERM)
        gateway.wait(PATIENCE)
