"""Formats are found by name and by model, and rows that make no sense are refused."""

from __future__ import annotations

from typing import Any

import msgspec
import pytest

from bardo.tools import (
    ToolCallFormat,
    ToolCallReader,
    UnknownToolFormat,
    find_tool_call_format,
    tool_call_format_for_model,
    tool_call_formats,
)
from bardo.tools.scanner import shapes_of
from bardo.values.errors import CallerError, InvalidRequest
from support.offenders import each_case

MODELS = {
    "deepseek-ai/DeepSeek-V4.1": "deepseek_v41",
    "deepseek-v4-pro": "deepseek_v4",
    "deepseek-ai/DeepSeek-V3.2-Exp": "deepseek_v32",
    "deepseek-ai/DeepSeek-V3.1-Terminus": "deepseek_v31",
    "deepseek-ai/DeepSeek-V3-0324": "deepseek_v3",
    "deepseek-ai/DeepSeek-R1-0528": "deepseek_v3",
    "Qwen/Qwen3-Coder-480B-A35B-Instruct": "qwen3_coder",
    "qwen/qwen3.5-397b-a17b": "qwen3_coder",
    "Qwen/Qwen3.8-2.4T-A95B": "qwen3_coder",
    "nvidia/NVIDIA-Nemotron-3.5-Lightning-30B-A3B-NVFP4": "qwen3_coder",
    "tencent/Hy4-preview-FP8": "hy_v4",
    "MiniMaxAI/MiniMax-M3": "minimax_m3",
    "RekaAI/reka-edge-2603": "hermes",
    "iflytek/Spark-X2.5": "glm45",
    "ServiceNow-AI/Apriel-1.6-15b-Thinker": "apriel",
    "meta/muse-glimmer": "muse",
    "meetkai/functionary-medium-v3.2": "functionary_v32",
    "meetkai/functionary-small-v3.1": "functionary",
    "fireworks-ai/llama-3-firefunction-v2": "firefunction",
    "CohereLabs/c4ai-command-r-plus-08-2024": "cohere_action",
    "CohereLabs/c4ai-command-r7b-12-2024": "cohere",
    "Salesforce/Llama-xLAM-2-8b-fc-r": "xlam",
    "rednote-hilab/dots.llm2": "dots",
    "Qwen/Qwen3-32B": "qwen",
    "qwen2.5:7b": "qwen",
    "ByteDance-Seed/Seed-OSS-36B-Instruct": "seed_oss",
    "zai-org/GLM-4.5-Air": "glm45",
    "z-ai/glm-5": "glm45",
    "moonshotai/Kimi-K2-Instruct": "kimi_k2",
    "moonshotai/kimi_k3": "kimi_k3",
    "MiniMaxAI/MiniMax-M2": "minimax_m2",
    "mistralai/Mistral-Small-3.2-24B-Instruct-2506": "mistral",
    "mistralai/Devstral-Small-2507": "mistral",
    "openai/gpt-oss-120b": "harmony",
    "llm-jp/llm-jp-4.1-8b-thinking": "llm_jp",
    "meta-llama/Llama-4-Scout-17B-16E-Instruct": "llama4_pythonic",
    "meta-llama/Llama-3.3-70B-Instruct": "llama3_json",
    "nvidia/NVIDIA-Nemotron-3-Nano-30B-A3B": "qwen3_coder",
    "stepfun-ai/Step-3.5-Flash": "qwen3_coder",
    "XiaomiMiMo/MiMo-V2-Flash": "mimo",
    "stepfun-ai/step3": "step3",
    "stepfun-ai/Step-5": "qwen3_coder",
    "internlm/Intern-S1-mini": "internlm",
    "ibm-granite/granite-3.3-8b-instruct": "granite3",
    "ibm-granite/granite-4.0-h-small": "hermes",
    "NousResearch/Hermes-3-Llama-3.1-8B": "hermes",
    "CohereLabs/command-a-reasoning-08-2025": "cohere",
    "google/gemma-4-31b-it": "gemma4",
    "LiquidAI/LFM2-8B-A1B": "lfm2",
    "tencent/Hunyuan-A13B-Instruct": "hunyuan_a13b",
}


@each_case("model_id, name", MODELS.items())
def test_a_model_has_the_format_of_its_family(model_id: str, name: str) -> None:
    found = tool_call_format_for_model(model_id)
    assert found is not None
    assert found.name == name


@pytest.mark.parametrize("model_id", ["gpt-4o", "claude-opus-4-8", ""])
def test_a_model_without_a_format_of_its_own_has_none(model_id: str) -> None:
    assert tool_call_format_for_model(model_id) is None


@each_case("row", tool_call_formats().values(), ids=tool_call_formats().keys())
def test_no_earlier_row_takes_a_pattern_away(row: ToolCallFormat) -> None:
    for pattern in row.patterns:
        found = tool_call_format_for_model(f"Vendor/{pattern.replace('*', '-9b-').upper()}-FP8")
        assert found is row, (
            f"another row takes {pattern!r} away: put the narrower pattern first in tool_call_formats.toml"
        )


def test_every_name_and_alias_finds_one_row() -> None:
    rows = tool_call_formats()
    aliases = [alias for row in rows.values() for alias in row.aliases]
    assert all(find_tool_call_format(name.upper().replace("_", "-")) is row for name, row in rows.items())
    assert len({find_tool_call_format(alias).name for alias in aliases}) <= len(rows)
    canonical = [alias.lower().replace("-", "_") for alias in aliases]
    assert len(canonical) == len(set(canonical))


@pytest.mark.parametrize(
    ("alias", "name"),
    [
        ("qwen3_xml", "qwen3_coder"),
        ("gpt-oss", "harmony"),
        ("pythonic", "llama4_pythonic"),
        ("llama3", "llama3_json"),
        ("step5", "qwen3_coder"),
        ("interns1", "internlm"),
    ],
)
def test_the_names_of_other_servers_are_understood(alias: str, name: str) -> None:
    assert find_tool_call_format(alias).name == name


def test_an_unknown_name_is_refused_with_those_that_resemble_it() -> None:
    with pytest.raises(UnknownToolFormat) as refused:
        find_tool_call_format("hermess")
    assert refused.value.near[0] == "hermes"
    assert isinstance(refused.value, CallerError)


@pytest.mark.parametrize(
    ("name", "machine"),
    [
        ("hermes", "json"),
        ("kimi_k2", "header"),
        ("glm45", "parameters"),
        ("deepseek_v4", "parameters"),
        ("llama4_pythonic", "notation"),
        ("gemma4", "notation"),
    ],
)
def test_a_row_says_what_it_takes_to_read_it(name: str, machine: str) -> None:
    assert find_tool_call_format(name).machine == machine


@pytest.mark.parametrize(
    "row",
    [
        {"name": "x"},
        {"name": "x", "shapes": [["{json}"]], "opens": "later"},
        {"name": "x", "shapes": [["{json}"]], "start": "<"},
    ],
    ids=repr,
)
def test_a_row_that_makes_no_sense_is_refused(row: dict[str, Any]) -> None:
    with pytest.raises(msgspec.ValidationError):
        msgspec.convert(row, ToolCallFormat)


@pytest.mark.parametrize("shapes", [((),), (("{nothing}",),), (("?{name}",),), (("{key}",),)], ids=repr)
def test_a_shape_that_makes_no_sense_is_refused(shapes: tuple[tuple[str, ...], ...]) -> None:
    row = ToolCallFormat(name="x", shapes=shapes)
    with pytest.raises(InvalidRequest, match="'x'"):
        ToolCallReader(row, make_id=str)


def test_the_steps_of_a_row_are_made_once() -> None:
    row = find_tool_call_format("hermes")
    assert shapes_of(row) is shapes_of(row)
