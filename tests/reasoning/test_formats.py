"""Formats are found by name and by model, and every row can be read."""

import msgspec
import pytest

from bardo.catalog.matching import canonical
from bardo.reasoning import ReasoningFormat, UnknownFormat, find_format, format_for_model, formats
from bardo.reasoning.registry import PASSTHROUGH
from bardo.values.errors import CallerError
from support.offenders import each_case

MODELS = {
    "deepseek-ai/DeepSeek-R1": "deepseek_r1",
    "deepseek-ai/DeepSeek-R1-Distill-Qwen-7B": "deepseek_r1",
    "us.deepseek.r1-v1:0": "deepseek_r1",
    "deepseek-r1:8b": "deepseek_r1",
    "deepseek-ai/DeepSeek-V3.1-Terminus": "deepseek_v31",
    "deepseek/deepseek-chat-v3.1": "deepseek_v31",
    "deepseek-ai/DeepSeek-V3.2-Exp": "deepseek_v32",
    "deepseek-v4-pro": "deepseek_v4",
    "deepseek-v4.1": "deepseek_v41",
    "Qwen/Qwen3-32B": "qwen3",
    "qwen3:4b": "qwen3",
    "qwen-max": "qwen3",
    "Qwen/Qwen3-30B-A3B-Thinking-2507-FP8": "qwen3_thinking",
    "qwen3-next-80b-a3b-thinking": "qwen3_thinking",
    "qwen-thinking": "qwen3_thinking",
    "Qwen/QwQ-32B": "qwen3_thinking",
    "qwen/qwen3.5-397b-a17b": "qwen35",
    "z-ai/glm-4.5-air": "glm45",
    "zai-org/GLM-4.7": "glm47",
    "zai-org/GLM-5.2": "glm47",
    "zai-org/GLM-5.3-FP8": "glm53",
    "moonshotai/Kimi-VL-A3B-Thinking": "kimi",
    "moonshotai/Kimi-K2-Thinking": "kimi_k2",
    "moonshotai/kimi_k3": "kimi_k3",
    "stepfun-ai/step3": "step3",
    "stepfun-ai/Step-3.5-Flash": "step3p5",
    "MiniMaxAI/MiniMax-M2": "minimax_m2",
    "mistralai/Magistral-Small-2509": "mistral",
    "CohereLabs/command-a-reasoning-08-2025": "cohere_cmd3",
    "nvidia/NVIDIA-Nemotron-Nano-9B-v2": "nemotron_nano_v2",
    "nvidia/NVIDIA-Nemotron-3-Nano-30B-A3B": "nemotron_3",
    "allenai/Olmo-3-7B-Think": "olmo3",
    "microsoft/Phi-4-mini-reasoning": "generic_think",
    "gpt-4o": PASSTHROUGH,
    "": PASSTHROUGH,
}


@each_case("model_id, name", MODELS.items())
def test_a_model_has_the_format_of_its_family(model_id: str, name: str) -> None:
    assert format_for_model(model_id).name == name


@each_case("row", formats().values(), ids=formats().keys())
def test_no_earlier_row_takes_a_pattern_away(row: ReasoningFormat) -> None:
    for pattern in row.patterns:
        found = format_for_model(f"Vendor/{pattern.replace('*', '-9b-').upper()}-FP8")
        assert found is row, (
            f"{found.name} takes {pattern!r} away: put the narrower pattern first in reasoning_formats.toml"
        )


@each_case("row", formats().values(), ids=formats().keys())
def test_every_row_says_where_blocks_begin_and_end(row: ReasoningFormat) -> None:
    reads_nothing = row.name in (PASSTHROUGH, "response_template", "minimax_m2_append_think", "gigachat3")
    assert bool(row.starts) == bool(row.ends) == (not reads_nothing)
    assert row.families


def test_every_name_and_alias_belongs_to_one_row() -> None:
    names = [canonical(name) for row in formats().values() for name in (row.name, *row.aliases)]
    assert len(names) == len(set(names))
    assert all(find_format(name) is not None for name in names)


@pytest.mark.parametrize("name", ["deepseek_r1", "deepseek-r1", "DeepSeek_R1", " deepseek-R1 "])
def test_spelling_makes_no_difference_to_a_name(name: str) -> None:
    assert find_format(name).name == "deepseek_r1"


@pytest.mark.parametrize(
    ("alias", "name"), [("minimax", "minimax_m2"), ("deepseek-v3", "deepseek_v31"), ("base", "generic_think")]
)
def test_the_names_of_other_servers_work(alias: str, name: str) -> None:
    assert find_format(alias).name == name


def test_an_unknown_name_is_answered_with_near_ones() -> None:
    with pytest.raises(UnknownFormat, match=r"'qwen33'.*qwen3") as caught:
        find_format("qwen33")
    assert "qwen3" in caught.value.near
    assert isinstance(caught.value, CallerError)
    assert isinstance(caught.value, ValueError)


def test_a_name_like_no_other_is_answered_with_the_way_to_the_list() -> None:
    with pytest.raises(UnknownFormat, match=r"formats\(\)") as caught:
        find_format("§§§")
    assert caught.value.near == ()


@pytest.mark.parametrize(
    "row",
    [
        {"name": "x", "blocks": "many"},
        {"name": "x", "machine": "unheard_of"},
        {"name": "x", "starts_inside": "sometimes"},
        {"name": "x", "begin": "<t>"},
        {"start": "<t>"},
    ],
    ids=lambda row: str(row),
)
def test_a_row_that_makes_no_sense_is_refused(row: dict[str, str]) -> None:
    with pytest.raises(msgspec.ValidationError):
        msgspec.convert(row, ReasoningFormat)
