"""Whether a reply begins inside a block: by position, never by name."""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any, NamedTuple

import pytest

from bardo.reasoning import find_format, format_for_model, split
from bardo.reasoning.formats import ReasoningFormat
from bardo.reasoning.starting import Start, explain_start, starting_state

CHATML = "<|im_start|>user\nWhat does <think> mean?<|im_end|>\n<|im_start|>assistant\n"

PROMPTS = {
    "a bare header": ("qwen3", CHATML, False),
    "an opener": ("qwen3", CHATML + "<think>\n", True),
    "an opener, and the newline cut off": ("qwen3", CHATML + "<think>", True),
    "an empty pair": ("qwen3", CHATML + "<think>\n\n</think>\n\n", False),
    "a closer alone": ("glm47", "<|user|>hi<|assistant|></think>", False),
    "part of a thought": ("qwen3", CHATML + "<think>\nThe user asks", True),
    "part of an answer": ("qwen3", CHATML + "<think>\nThe user asks</think>It is", False),
    "an opener in an earlier turn": ("qwen3", "<|im_start|>assistant\n<think>a<|im_end|>\n" + CHATML, False),
    "a closer in the example of a tool, then an opener": (
        "mimo",
        "<|im_start|>system\nAnswer after <think></think>.<|im_end|>\n<|im_start|>assistant\n<think>",
        True,
    ),
    "a call ended the thought": ("qwen3", CHATML + "<think>a<tool_call>{}", False),
    "only the tail, an opener": ("qwen3", "<think>\n", True),
    "only the tail, a thought": ("qwen3", "<think>\nThe user", True),
    "only the tail, a pair": ("qwen3", "<think></think>", False),
    "an unknown header, an opener": ("deepseek_v31", "USER: hi ASSISTANT: <think>\n", True),
    "an unknown header, a pair": ("deepseek_v31", "USER: hi ASSISTANT: <think></think>", False),
    "an unknown header, a word about tags": ("deepseek_v31", "USER: what is <think>? ASSISTANT:", False),
    "a row that starts inside, a closed pair": ("nemotron_nano_v2", "<SPECIAL_11>Assistant\n<think></think>", False),
    "a row that starts inside, a bare header": ("deepseek_r1", "<｜User｜>hi<｜Assistant｜>", False),
    "harmony, a bare role": ("gpt_oss", "<|start|>user<|message|>hi<|end|><|start|>assistant", False),
    "harmony, a channel of reasoning": ("gpt_oss", "<|start|>assistant<|channel|>analysis<|message|>", True),
    "harmony, part of a thought": ("gpt_oss", "<|start|>assistant<|channel|>analysis<|message|>The", True),
    "harmony, the final channel": ("gpt_oss", "<|start|>assistant<|channel|>final<|message|>", False),
    "harmony, reasoning that ended": (
        "gpt_oss",
        "<|start|>assistant<|channel|>analysis<|message|>a<|end|><|start|>assistant",
        False,
    ),
    "gemma, an open channel after a tool": (
        "gemma4",
        "<|turn>model\n<|tool_call>f{}<tool_call|><|tool_response>1<tool_response|><|channel>thought\n",
        True,
    ),
    "gemma, an empty channel": ("gemma4", "<|turn>model\n<|channel>thought\n<channel|>", False),
    "gemma, the label cut off": ("gemma4", "<|turn>model\n<|channel>thought", True),
    "kimi_k3, the opener": ("kimi_k3", "…<|open|>think<|sep|>", True),
    "kimi_k3, the opener of the response": ("kimi_k3", "…<|open|>response<|sep|>", False),
    "hy_v3, with a suffix": ("hy_v3", "…<think:opensource>", True),
    "muse, to itself": ("muse", "<|start|>assistant to=self<|message|>", True),
    "apriel, a phrase": ("apriel", "<|assistant|>\nHere are my reasoning steps:\n", True),
    "cohere": ("cohere_cmd3", "<|START_OF_TURN_TOKEN|><|CHATBOT_TOKEN|><|START_THINKING|>", True),
    "cohere, off": ("cohere_cmd3", "<|CHATBOT_TOKEN|><|START_THINKING|><|END_THINKING|>", False),
    "append_think": ("minimax_m2_append_think", "]~b]ai\n<think>\n", True),
}


@pytest.mark.parametrize(("name", "prompt", "inside"), PROMPTS.values(), ids=PROMPTS.keys())
def test_the_end_of_the_prompt_says_where_a_reply_begins(name: str, prompt: str, inside: bool) -> None:
    assert explain_start(find_format(name), prompt=prompt) == Start(inside, "prompt")


ON, OFF = True, False
TOGGLES: dict[str, tuple[str, Mapping[str, Any], bool, str]] = {
    "turned on": ("glm47", {"enable_thinking": True}, ON, "toggles"),
    "turned off": ("glm47", {"enable_thinking": False}, OFF, "toggles"),
    "the other name": ("deepseek_v31", {"enable_thinking": True}, ON, "toggles"),
    "its own name first": ("deepseek_v31", {"thinking": False, "enable_thinking": True}, OFF, "toggles"),
    "an effort of none": ("glm47", {"reasoning_effort": "none"}, OFF, "toggles"),
    "an effort": ("exaone4", {"reasoning_effort": "high"}, ON, "toggles"),
    "the switch beats the effort": ("glm47", {"enable_thinking": False, "reasoning_effort": "high"}, OFF, "toggles"),
    "a word": ("minimax_m3", {"thinking_mode": "enabled"}, ON, "toggles"),
    "a word that says no": ("minimax_m3", {"thinking_mode": "disabled"}, OFF, "toggles"),
    "hunyuan's word that says no": ("hy_v3", {"reasoning_effort": "no_think"}, OFF, "toggles"),
    "the model writes its opener itself": ("qwen3", {"enable_thinking": True}, OFF, "toggles"),
    "a budget of 0": ("seed_oss", {"thinking_budget": 0}, OFF, "toggles"),
    "a word in the system message": ("nemotron_nano_v2", {"/no_think": True}, OFF, "toggles"),
    "that word, not used": ("nemotron_nano_v2", {"/no_think": False}, ON, "toggles"),
    "nothing asked, thinks by default": ("glm47", {}, ON, "toggles"),
    "its template thinks whatever is asked": ("glm53", {"enable_thinking": False}, ON, "toggles"),
    "its template always opens": ("olmo3", {}, ON, "toggles"),
    "nothing asked, does not by default": ("deepseek_v31", {}, OFF, "row"),
    "a toggle of something else": ("deepseek_v31", {"preserve_thinking": True}, OFF, "row"),
    "nothing said": ("deepseek_v31", {"thinking": None}, OFF, "row"),
    "a model that cannot be turned off": ("deepseek_r1", {"enable_thinking": False}, ON, "row"),
    "a model that never begins inside": ("gemma4", {}, OFF, "row"),
}


@pytest.mark.parametrize(("name", "toggles", "inside", "because"), TOGGLES.values(), ids=TOGGLES.keys())
def test_the_toggles_say_where_a_reply_begins(
    name: str, toggles: Mapping[str, Any], inside: bool, because: str
) -> None:
    said = explain_start(find_format(name), toggles=toggles)
    assert (said.inside, said.because) == (inside, because)


def test_who_knows_best_is_asked_first() -> None:
    row, prompt = find_format("glm47"), "<|assistant|><think>"
    assert explain_start(row, starts_inside=False, prompt=prompt, toggles={}) == Start(False, "asked")
    assert explain_start(row, prompt=prompt, toggles={"enable_thinking": False}) == Start(True, "prompt")
    assert explain_start(row, prompt="", toggles={"enable_thinking": True}) == Start(True, "toggles")
    assert explain_start(row) == Start(False, "row")
    assert explain_start(find_format("deepseek_r1")) == Start(True, "row")
    assert starting_state(row, prompt=prompt) is True


def test_a_format_without_delimiters_asks_no_prompt() -> None:
    assert explain_start(find_format("passthrough"), prompt="<think>") == Start(False, "row")


def test_a_row_may_name_the_header_of_its_turns() -> None:
    row = ReasoningFormat(name="odd", start="<t>", end="</t>", turns=("BOT:",))
    assert starting_state(row, prompt="ME: <t> BOT: <t> so I") is True
    assert starting_state(row, prompt="ME: <t> BOT: ") is False


# --- What a real server rendered --------------------------------------------------------------------------------------

FOLDER = Path(__file__).resolve().parents[3] / "shared" / "introspection" / "llama-server"
RENDERED = sorted(FOLDER.glob("*/apply-template.*.json"))
OPENERS = ("<think>", "<|channel>thought")
CLOSERS = ("</think>", "<channel|>")
# This server asks for thinking itself, where the template alone would not.
ASKED_BY_THE_SERVER = ("deepseek-ai-DeepSeek-V3.1", "deepseek-ai-DeepSeek-V4")


class Rendered(NamedTuple):
    row: ReasoningFormat
    prompt: str
    toggles: dict[str, Any]

    @classmethod
    def of(cls, path: Path) -> Rendered:
        kept = json.loads(path.read_text(encoding="utf-8"))
        body = kept["request"]["body"]
        effort = {"reasoning_effort": body["reasoning_effort"]} if "reasoning_effort" in body else {}
        row = format_for_model(path.parent.name)
        return cls(row, kept["body"]["prompt"], {**body.get("chat_template_kwargs", {}), **effort})

    @property
    def reply(self) -> str:
        """What the model writes after this prompt."""
        if self.prompt.rstrip().endswith(CLOSERS) or not self.row.starts:
            return "answer"
        opener = "" if self.prompt.rstrip().endswith(OPENERS) else self.row.starts[0]
        return f"{opener}plan{self.row.ends[0]}answer"


@pytest.mark.skipif(not RENDERED, reason="no introspection here")
@pytest.mark.parametrize("path", RENDERED, ids=lambda path: f"{path.parent.name} {path.stem.partition('.')[2]}")
class TestRenderedPrompts:
    def test_the_prompt_gives_the_right_state(self, path: Path) -> None:
        rendered = Rendered.of(path)
        open_at_the_end = rendered.prompt.rstrip().endswith(OPENERS)
        assert starting_state(rendered.row, prompt=rendered.prompt) is open_at_the_end
        assert starting_state(rendered.row, prompt=rendered.prompt[-40:]) is open_at_the_end

    def test_the_toggles_read_the_reply_as_the_prompt_does(self, path: Path) -> None:
        rendered = Rendered.of(path)
        if not rendered.toggles and path.parent.name in ASKED_BY_THE_SERVER:
            pytest.skip("the server asks for thinking by itself")
        by_prompt = starting_state(rendered.row, prompt=rendered.prompt)
        by_toggles = starting_state(rendered.row, toggles=rendered.toggles)
        read = split(rendered.reply, rendered.row, starts_inside=by_prompt)
        assert split(rendered.reply, rendered.row, starts_inside=by_toggles) == read
        assert read == (("", "answer") if rendered.reply == "answer" else ("plan", "answer"))
