"""Every layer that a row names can be made, and every builder has its row."""

from __future__ import annotations

import subprocess
import sys

import pytest

from bardo.catalog.layer_rows import layer_rows, layers_of_profile, profile_rows
from bardo.golem.rows import pipeline_rows
from bardo.services.pipeline.layers import BUILDERS
from support.any_model import Simulator
from support.gateway import house
from support.talk import ask


def test_rows_and_builders_are_the_same() -> None:
    missing, extra = sorted(layer_rows().keys() - BUILDERS), sorted(BUILDERS.keys() - layer_rows())
    assert not missing, f"BUILDERS in src/bardo/services/pipeline/layers.py has no builder for {', '.join(missing)}"
    assert not extra, f"catalog/data/pipeline.toml has no row for {', '.join(extra)}"


def test_each_layer_says_of_a_call_what_it_did_by_the_name_of_its_row() -> None:
    with house([Simulator("deepseek")]) as running:
        answer = ask(running.address, "openai_chat", "deepseek/m", bardo={"layers": dict.fromkeys(layer_rows(), True)})
        assert answer.status == 200
        row = running.log.row(answer.headers["x-bardo-request-id"])
        assert row.pipeline is not None
        assert [one["layer"] for one in row.pipeline["layers"]] == [
            one.name for place in ("before_route", "after_route") for one in layer_rows().values() if one.place == place
        ]


@pytest.mark.parametrize("name", list(profile_rows()))
def test_a_profile_is_the_levels_of_the_documents(name: str) -> None:
    documents = {row.name: row.layers for row in pipeline_rows().profile}
    assert tuple(f"L{level}" for level in profile_rows()[name].levels) == documents[name]
    assert list(layers_of_profile(name)) == [one for one in layer_rows() if one in layers_of_profile(name)]


def test_a_configuration_without_a_profile_loads_no_layer() -> None:
    code = (
        "import sys; from bardo.wiring import assemble; from bardo.adapters.config.settings import parse_settings\n"
        "assemble(parse_settings('[log]\\nenabled = false\\n'))\n"
        "print(*sys.modules)"
    )
    ran = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    loaded = set(ran.stdout.split())
    assert "bardo.context.layer" in loaded
    packages = {"affinity", "cache", "classify", "injection", "privacy", "tool_choice"}
    assert not {f"bardo.context.{package}.layer" for package in packages} & loaded
    assert not {"bardo.context.prefilter", "bardo.context.steps.compress", "bardo.context.steps.editing"} & loaded
    assert not {"numpy", "phonenumbers", "redis", "bardo.embedding", "bardo.services.pipeline.reply_cache"} & loaded
