"""Lists in a terminal of 60, 80 and 100 columns: what a line is about is there in full, and no line is wider than the screen."""

from __future__ import annotations

from pathlib import Path

import pytest

from bardo.adapters.config.settings import Settings, state_path
from bardo.adapters.stores.log import LogRow
from support.keyed_gateway import make_key
from support.terminal import terminal
from surfaces.cli.support import write_log

PROVIDER, MODEL = "openrouter-of-our-team", "anthropic/claude-sonnet-5-20261101-preview"
KEY = "the-key-of-the-evaluation-team"
CONFIGURATION = f"""
[[providers]]
id = "{PROVIDER}"
preset = "openrouter"
models = ["{MODEL}"]
"""
COMMANDS = {
    "costs": (("costs", "--by", "provider,model,key"), (PROVIDER, MODEL, "k1")),
    "log": (("log",), ("req_0000aaaa", f"{PROVIDER}/{MODEL}")),
    "models": (("models",), (MODEL, PROVIDER)),
    "keys": (("keys", "list"), (KEY,)),
    "catalog": (("catalog", "providers"), ("openrouter", "anthropic")),
}


@pytest.mark.sampled(1)
@pytest.mark.parametrize("columns", [60, 80, 100])
def test_no_list_shortens_what_a_line_is_about(columns: int, folder: Path) -> None:
    (folder / "bardo.toml").write_text(CONFIGURATION)
    make_key(state_path(Settings()), name=KEY, models=("anthropic/*", "openai/*", "google/*"), usd_per_day=5)
    write_log(
        [
            LogRow(
                request_id="req_0000aaaa", started_at=1.0, provider=PROVIDER, model=MODEL, key_id="k1", cost_nanos=10**9,
                input_tokens=10**6, output_tokens=10**5, reasoning_tokens=10**4, client_dialect="anthropic_messages",
                provider_dialect="openai_chat", seconds=75.0, outcome="broken", tokens_approx=True,
            )
        ]
    )  # fmt: skip
    wrong = {}
    for name, (command, wanted) in COMMANDS.items():
        with terminal(*command, columns=columns, lines=60) as shown:
            assert shown.end() == 0, shown.text
        text = "\n".join(shown.whole)
        # A name that is wider than the screen goes on in the next line.
        joined = "".join(text.split())
        lost = [one for one in wanted if one not in joined]
        # Of the catalog's lines the end of an address may be missing, which is not what they are about.
        if lost or ("\N{HORIZONTAL ELLIPSIS}" in text and name != "catalog"):
            wrong[name] = (lost, text)
    assert wrong == {}
