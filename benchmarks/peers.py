"""The peers: LiteLLM's proxy, sglang-router and TensorZero, each in a virtual environment of its own under `.bench/`.

Installed by name when first needed. A peer that cannot be installed or started is left out with a note.
"""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Callable, Sequence
from pathlib import Path

from benchmarks.contestants import KEY, MODELS, CannotStart, Contestant, Lane, Place
from benchmarks.processes import ROOT, free_port

HOME = ROOT / ".bench"
_SECONDS_TO_INSTALL = 900
_CHAT = Lane(name="forwarded")
_REBUILT = Lane(name="rebuilt")
_ANTHROPIC = Lane(name="translated", path="/v1/messages", dialect="anthropic_messages")


def python_of(contestant: Contestant, tell: Callable[[str], None]) -> str:
    """Return the Python that has a contestant, installing it first where need be. Raises CannotStart."""
    if not contestant.venv:
        return sys.executable
    folder = HOME / contestant.venv
    python, done = folder / "bin" / "python", folder / ".installed"
    wanted = " ".join(contestant.packages)
    if not done.is_file() or done.read_text() != wanted:
        tell(f"installing {wanted} into {folder.relative_to(ROOT)}")
        _install(folder, python, contestant.packages)
        done.write_text(wanted)
    return str(python)


def _install(folder: Path, python: Path, packages: Sequence[str]) -> None:
    HOME.mkdir(exist_ok=True)
    # The folder keeps itself out of the repository.
    (HOME / ".gitignore").write_text("*\n")
    quiet = ("--quiet", "--disable-pip-version-check")
    steps = ([sys.executable, "-m", "venv", str(folder)], [str(python), "-m", "pip", "install", *quiet, *packages])
    for step in steps:
        try:
            subprocess.run(step, check=True, capture_output=True, text=True, timeout=_SECONDS_TO_INSTALL)
        except (subprocess.SubprocessError, OSError) as failure:
            said = getattr(failure, "stderr", "") or ""
            raise CannotStart(f"{' '.join(packages)} could not be installed: {said[-300:] or failure}") from failure


def version_of(contestant: Contestant, python: str) -> str:
    """Return the installed version of a peer."""
    name = contestant.packages[0].partition("==")[0].partition("[")[0]
    code = f"import importlib.metadata as m; print(m.version({name!r}), end='')"
    found = subprocess.run([python, "-c", code], capture_output=True, text=True, timeout=60, check=False)
    return found.stdout or "unknown"


def litellm(place: Place, *more: str, models: Sequence[dict[str, object]] = ()) -> list[str]:
    """Return what starts LiteLLM's proxy; `models` are served beside the canned ones."""
    config = place.folder / "litellm.json"  # JSON is YAML.
    config.write_text(json.dumps(_litellm_config(place.upstream, models)))
    own = Path(place.python).parent / "litellm"
    return [str(own), "--config", str(config), "--host", "127.0.0.1", "--port", str(place.port), *more]


def _litellm_config(upstream: str, models: Sequence[dict[str, object]]) -> dict[str, object]:
    rows: list[dict[str, object]] = [
        {"model_name": name, "litellm_params": {"model": f"openai/{name}", "api_base": upstream, "api_key": "k"}}
        for name in MODELS
    ]
    settings = {"callbacks": [], "num_retries": 0, "use_chat_completions_url_for_anthropic_messages": True}
    return {"model_list": [*rows, *models], "litellm_settings": settings, "general_settings": {"master_key": KEY}}


def _litellm_on_granian(place: Place) -> list[str]:
    return litellm(place, "--run_granian")


def _sglang(place: Place) -> list[str]:
    address = ["--host", "127.0.0.1", "--port", str(place.port), "--prometheus-port", str(free_port())]
    worker = ["--backend", "openai", "--worker-urls", place.upstream.removesuffix("/v1"), "--log-level", "error"]
    return [place.python, "-m", "sglang_router.launch_router", *address, *worker]


def tensorzero(place: Place, models: str = "") -> list[str]:
    """Return what starts TensorZero's gateway; `models`, tables of its configuration, are served beside the canned ones."""
    config = place.folder / "tensorzero.toml"
    rows = (_TENSORZERO_MODEL.format(name=name, upstream=place.upstream) for name in MODELS)
    config.write_text("[gateway]\nobservability.enabled = false\n" + "".join(rows) + models)
    return [place.python, str(ROOT / "benchmarks" / "start_tensorzero.py"), str(config)]


_TENSORZERO_MODEL = """
[models.{name}]
routing = ["up"]

[models.{name}.providers.up]
type = "openai"
model_name = "{name}"
api_base = "{upstream}/"
api_key_location = "none"
"""

_TENSORZERO_CHAT = {"path": "/openai/v1/chat/completions", "model": "tensorzero::model_name::{}"}
_LITELLM_LANES = (_CHAT, _REBUILT, _ANTHROPIC)
_LITELLM = ("litellm[proxy]==1.104.4",)
_NO_DOWNLOADS = {"LITELLM_LOCAL_MODEL_COST_MAP": "True"}

# LiteLLM and TensorZero rebuild every reply, so the same figure answers bardo's forwarded and its rebuilt one.
PEERS: tuple[Contestant, ...] = (
    Contestant(
        name="LiteLLM",
        venv="litellm",
        packages=_LITELLM,
        lanes=_LITELLM_LANES,
        command=litellm,
        environment=_NO_DOWNLOADS,
        slow=True,
    ),
    Contestant(
        name="LiteLLM on granian",
        venv="litellm",
        packages=_LITELLM,
        lanes=_LITELLM_LANES,
        command=_litellm_on_granian,
        environment=_NO_DOWNLOADS,
        slow=True,
        variant=True,
    ),
    Contestant(
        name="sglang-router",
        venv="sglang-router",
        packages=("sglang-router==0.3.2",),
        lanes=(_CHAT,),
        command=_sglang,
    ),
    Contestant(
        name="TensorZero",
        venv="tensorzero",
        packages=("tensorzero==2026.6.0",),
        lanes=(Lane(name="forwarded", **_TENSORZERO_CHAT), Lane(name="rebuilt", **_TENSORZERO_CHAT)),
        command=tensorzero,
        says_port=r"http://127\.0\.0\.1:(\d+)/openai/v1",
    ),
)
