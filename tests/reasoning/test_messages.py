"""Formats that write a reply as messages with headers: gpt-oss, Beam, Muse and Inkling."""

import re
from typing import NamedTuple

import pytest
from hypothesis import given
from hypothesis import strategies as st

from bardo.reasoning import Splitter, find_format
from bardo.reasoning.phases import STRIPPED
from bardo.reasoning.splitter import MALFORMED
from support.splitting import cuts, is_what_deleting_leaves, notes, pieces_of, read


class Case(NamedTuple):
    format: str
    text: str
    expected: str
    noted: tuple[str, ...] = ()
    inside: bool | None = None


ANALYSIS = "<|channel|>analysis<|message|>plan<|end|>"
FINAL = "<|start|>assistant<|channel|>final<|message|>answer<|return|>"
CALL = '<|start|>assistant<|channel|>commentary to=functions.f <|constrain|>json<|message|>{"a": 1}<|call|>'
ROLE_CALL = '<|start|>assistant to=functions.f<|channel|>commentary json<|message|>{"a": 1}<|call|>'

CASES = {
    # Harmony
    "analysis, then final": Case("gpt_oss", ANALYSIS + FINAL, "‹plan›answer"),
    "whitespace stays": Case(
        "gpt_oss",
        "<|channel|>analysis<|message|>\n a \n<|end|>\n<|start|>assistant<|channel|>final<|message|> b\n<|return|>\n",
        "‹\n a \n›\n b\n\n",
    ),
    "final alone": Case("gpt_oss", "<|channel|>final<|message|>answer<|return|>", "answer"),
    "no structure at all": Case("gpt_oss", "The answer is 4.", "The answer is 4."),
    "nothing": Case("gpt_oss", "", ""),
    "a header without channel": Case("gpt_oss", "<|start|>assistant<|message|>hi<|end|>", "hi"),
    "commentary without a recipient": Case(
        "gpt_oss",
        ANALYSIS + "<|start|>assistant<|channel|>commentary<|message|>I will look.<|end|>",
        "‹plan›I will look.",
    ),
    "commentary that never ends": Case("gpt_oss", "<|channel|>commentary<|message|>I will", "I will"),
    "analysis that never ends": Case("gpt_oss", "<|channel|>analysis<|message|>plan", "‹plan›"),
    "several analysis messages": Case(
        "gpt_oss",
        ANALYSIS + "<|start|>assistant<|channel|>analysis<|message|>more<|end|>" + FINAL,
        "‹plan›‹more›answer",
    ),
    "an analysis that has no end before the next": Case(
        "gpt_oss",
        "<|channel|>analysis<|message|>a<|start|>assistant<|channel|>analysis<|message|>b<|end|>" + FINAL,
        "‹a›‹b›answer",
    ),
    "an analysis that has no end before the answer": Case(
        "gpt_oss", "<|channel|>analysis<|message|>a<|channel|>final<|message|>b<|return|>", "‹a›b"
    ),
    "a call after analysis": Case("gpt_oss", ANALYSIS + CALL, "‹plan›" + CALL),
    "a recipient in the role": Case("gpt_oss", ANALYSIS + ROLE_CALL, "‹plan›" + ROLE_CALL),
    "a recipient that goes on with the prompt's role": Case(
        "gpt_oss", ROLE_CALL.removeprefix("<|start|>assistant"), ROLE_CALL.removeprefix("<|start|>assistant")
    ),
    "a role that goes on with the prompt": Case("gpt_oss", "assistant<|channel|>analysis<|message|>a<|end|>b", "‹a›b"),
    "a call on the channel of reasoning": Case(
        "gpt_oss",
        "<|channel|>analysis to=python code<|message|>1+1<|call|>",
        "<|channel|>analysis to=python code<|message|>1+1<|call|>",
    ),
    "a call that never ends": Case(
        "gpt_oss",
        ANALYSIS + "<|channel|>commentary to=functions.f<|message|>{",
        "‹plan›<|channel|>commentary to=functions.f<|message|>{",
    ),
    "a call, then the answer": Case("gpt_oss", CALL + FINAL, CALL + "answer"),
    "an answer for the user by name": Case("gpt_oss", "<|channel|>final to=user<|message|>hi<|return|>", "hi"),
    "a stray commentary header": Case(
        "gpt_oss", "<|channel|>commentary<|channel|>analysis<|message|>a<|end|>" + FINAL, "‹a›answer"
    ),
    "a stray header with a recipient": Case(
        "gpt_oss", "<|channel|>commentary to=assistant<|channel|>analysis<|message|>a<|end|>b", "‹a›b"
    ),
    "a bare opener in a block is text": Case(
        "gpt_oss",
        "<|channel|>analysis<|message|>a<|channel|>analysis<|message|>b<|end|>c",
        "‹a<|channel|>analysis<|message|>b›c",
    ),
    "a channel nobody knows": Case(
        "gpt_oss", "<|channel|>analysisX<|message|>a<|end|>", "<|channel|>analysisX<|message|>a<|end|>", (MALFORMED,)
    ),
    "a header without a message": Case(
        "gpt_oss", "<|channel|>analysis<|end|>" + FINAL, "<|channel|>analysis<|end|>answer", (MALFORMED,)
    ),
    "a header over two lines": Case(
        "gpt_oss", "<|channel|>ana\nlysis<|message|>a", "<|channel|>ana\nlysis<|message|>a", (MALFORMED,)
    ),
    "a header that is far too long": Case(
        "gpt_oss", f"<|channel|>{'x' * 300}" + FINAL, f"<|channel|>{'x' * 300}answer", (MALFORMED,)
    ),
    "a header that never ends": Case("gpt_oss", "<|channel|>anal", "<|channel|>anal", (MALFORMED,)),
    "a header of somebody else": Case(
        "gpt_oss", "<|start|>user<|message|>hi<|end|>", "<|start|>user<|message|>hi<|end|>", (MALFORMED,)
    ),
    "a header in an open block that cannot be read": Case(
        "gpt_oss",
        "<|channel|>analysis<|message|>see <|channel|> there<|end|>b",
        "‹see <|channel|> there›b",
        (MALFORMED,),
    ),
    "the end of an end": Case("gpt_oss", "<|channel|>analysis<|message|>a<|en", "‹a<|en›"),
    "an end without a header": Case("gpt_oss", "a<|end|>b<|return|>", "a<|end|>b<|return|>"),
    "a header in fenced code of the answer": Case(
        "gpt_oss",
        "<|channel|>final<|message|>so:\n```\n<|channel|>analysis<|message|>x\n```\n<|return|>",
        "so:\n```\n<|channel|>analysis<|message|>x\n```\n",
    ),
    "special tokens were stripped": Case(
        "gpt_oss", "analysisWe need to.assistantfinalHi", "analysisWe need to.assistantfinalHi", (STRIPPED,)
    ),
    "prefilled": Case("gpt_oss", "plan<|end|>" + FINAL, "‹plan›answer", inside=True),
    "prefilled and echoed": Case("gpt_oss", ANALYSIS + FINAL, "‹plan›answer", inside=True),
    "prefilled, a call at once": Case("gpt_oss", CALL, "‹›" + CALL, inside=True),
    # LLM-jp
    "llm-jp": Case(
        "llm_jp",
        "<|channel|> analysis<|message|> a<|end|><|start|> assistant<|channel|> final <|constrain|>  json<|message|>  b<|return|>",
        "‹a› b",
    ),
    "llm-jp, a call": Case(
        "llm_jp",
        "<|start|> assistant to=functions.f<|channel|> commentary<|message|> {}<|end|>" * 2,
        "<|start|> assistant to=functions.f<|channel|> commentary<|message|> {}<|end|>" * 2,
    ),
    "llm-jp, without spaces": Case("llm_jp", ANALYSIS + FINAL, "‹plan›answer"),
    "llm-jp, prefilled": Case(
        "llm_jp", "a<|end|><|start|> assistant<|channel|> final<|message|> b", "‹a›b", inside=True
    ),
    # Beam
    "beam": Case("beam", ANALYSIS + "<|start|>assistant<|channel|>final<|message|>b<|return|>", "‹plan›b"),
    "beam, one block": Case("beam", ANALYSIS + ANALYSIS, "‹plan›<|channel|>analysis<|message|>plan<|end|>"),
    "beam, cut after the end": Case("beam", ANALYSIS + "<|start|>assis", "‹plan›<|start|>assis", (MALFORMED,)),
    "beam, a call in XML": Case(
        "beam",
        ANALYSIS + "<|start|>assistant<|channel|>commentary to=f<|message|><a>1</a><|call|>",
        "‹plan›<|channel|>commentary to=f<|message|><a>1</a><|call|>",
    ),
    # Muse
    "muse": Case("muse", " to=self<|message|>a<|eom|><|start|>assistant to=user<|message|>b<|eot|>", "‹a›b"),
    "muse, commentary": Case("muse", " to=commentary<|message|>a<|eom|>", "a"),
    "muse, a call": Case(
        "muse",
        " to=self<|message|>a<|eom|><|start|>assistant to=get.weather<|message|>{}<|eom|>",
        "‹a›<|start|>assistant to=get.weather<|message|>{}<|eom|>",
    ),
    "muse, another recipient ends a block": Case("muse", " to=self<|message|>a to=user<|message|>b", "‹a›b"),
    "muse, no recipient": Case("muse", "<|start|>assistant<|message|>b<|eot|>", "‹b›"),
    "muse, no recipient, in the prompt's header": Case(
        "muse", "<|message|>a<|eom|><|start|>assistant to=user<|message|>b<|eot|>", "‹a›b"
    ),
    "muse, to the developer": Case("muse", "to=developer<|message|>a<|eom|> to=user<|message|>b", "‹a›b"),
    "glimmer, no recipient": Case("muse_glimmer", "<|start|>assistant<|message|>b<|eot|>", "b"),
    "glimmer, no recipient, in the prompt's header": Case("muse_glimmer", "<|message|>b<|eot|>", "b"),
    "muse, a recipient without a name": Case("muse", " to=<|message|>b", " to=<|message|>b", (MALFORMED,)),
    "muse, mail is no header": Case("muse", "write to=bob and to=self now", "write to=bob and to=self now"),
    "muse, no structure": Case("muse", "hi", "hi"),
    "muse, two blocks": Case(
        "muse", " to=self<|message|>a<|eom|><|start|>assistant to=self<|message|>b<|eom|>", "‹a›‹b›"
    ),
    "muse, prefilled": Case("muse", "a<|eom|><|start|>assistant to=user<|message|>b", "‹a›b", inside=True),
    # Inkling
    "inkling": Case(
        "inkling",
        "<|content_thinking|>a<|end_message|><|message_model|><|content_text|>b<|end_message|><|content_model_end_sampling|>",
        "‹a›b",
    ),
    "inkling, with all headers": Case(
        "inkling", "<|message_model|><|content_thinking|>a<|end_message|><|message_model|><|content_text|>b", "‹a›b"
    ),
    "inkling, a call": Case(
        "inkling",
        "<|content_thinking|>a<|end_message|><|message_model|>f<|content_invoke_tool_json|>{}<|end_message|>",
        "‹a›<|message_model|>f<|content_invoke_tool_json|>{}<|end_message|>",
    ),
    "inkling, the turn ends in a block": Case("inkling", "<|content_thinking|>a<|content_model_end_sampling|>", "‹a›"),
    "inkling, the error of a tool": Case("inkling", "<|message_model|>f<|content_tool_error|>no<|end_message|>", "no"),
    "inkling, no structure": Case("inkling", "hi", "hi"),
    "inkling, a header without content": Case(
        "inkling", "<|message_model|>hi\n", "<|message_model|>hi\n", (MALFORMED,)
    ),
}


@pytest.mark.parametrize("case", CASES.values(), ids=CASES.keys())
def test_a_reply_is_split_the_same_wherever_it_is_cut(case: Case) -> None:
    row = find_format(case.format)
    assert read(row, [case.text], inside=case.inside) == case.expected
    assert {read(row, pieces, inside=case.inside) for pieces in cuts(case.text)} == {case.expected}


@pytest.mark.parametrize("case", CASES.values(), ids=CASES.keys())
def test_no_cut_changes_what_is_noted(case: Case) -> None:
    row = find_format(case.format)
    assert {tuple(notes(row, pieces, inside=case.inside)) for pieces in cuts(case.text)} == {case.noted}


PARTS = {
    "gpt_oss": [
        *(
            "<|start|>",
            "assistant",
            "<|channel|>",
            "analysis",
            "final",
            "commentary",
            " to=functions.f",
            "<|constrain|>",
        ),
        *("json", "<|message|>", "<|end|>", "<|return|>", "<|call|>", " to=user"),
    ],
    "muse": ["<|start|>", "assistant", " to=", "self", "user", "f.g", "<|message|>", "<|eom|>", "<|eot|>"],
    "inkling": [
        *("<|message_model|>", "<|content_", "thinking|>", "text|>", "invoke_tool_json|>", "<|end_message|>", "f"),
        "<|content_model_end_sampling|>",
    ],
}
PARTS["beam"] = PARTS["gpt_oss"]
ANY = ["\n", " ", "\n```\n", "a", "é🧠", "<", "<|", "|>", "to="]
HEADERS = {
    "gpt_oss": re.compile(
        r"(<\|start\|>assistant|assistant)?( ?to=[^\s<]+ ?|[^<\n]*)?(<\|channel\|>[^<\n]*)*(<\|constrain\|>[^<\n]*)?<\|message\|>"
    ),
    "muse": re.compile(r"(<\|start\|>assistant)?( ?to=[^\s<]+)?<\|message\|>"),
    "inkling": re.compile(r"(<\|message_model\|>[^<\n]*)?<\|content_(thinking|text)\|>"),
}
HEADERS["beam"] = HEADERS["gpt_oss"]


@st.composite
def replies(draw: st.DrawFn, name: str) -> str:
    return "".join(draw(st.lists(st.sampled_from([*PARTS[name], *ANY]), max_size=16)))


@given(st.data(), st.sampled_from(sorted(PARTS)), st.sampled_from([None, True]))
def test_any_cut_says_the_same_and_nothing_is_lost(data: st.DataObject, name: str, inside: bool | None) -> None:
    row, text = find_format(name), data.draw(replies(name))
    whole = read(row, [text], inside=inside)
    assert read(row, list(text), inside=inside) == whole
    assert read(row, pieces_of(data, text), inside=inside) == whole
    ends = ("<|end|>", "<|return|>", "<|call|>", "<|eom|>", "<|eot|>", "<|end_message|>", *row.ends, *row.dropped)
    assert is_what_deleting_leaves(whole.replace("‹", "").replace("›", ""), text, ends, HEADERS[name])


@given(st.data(), st.sampled_from(sorted(PARTS)))
def test_what_is_held_is_bounded(data: st.DataObject, name: str) -> None:
    filler = data.draw(st.sampled_from(["x", " ", "<", "<|channel|>", " to=", "<|start|>assistant"]))
    splitter = Splitter(find_format(name))
    for character in data.draw(replies(name)) + filler * 400:
        splitter.feed(character)
        assert len(splitter._held) < 1100
