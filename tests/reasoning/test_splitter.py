"""What the splitter makes of replies, format by format, and that no cut changes it.

An expectation is written as the reply with each block of reasoning in ‹ ›: consumed delimiters are gone, all else
is there, in order and to the character.
"""

from collections.abc import Iterator
from functools import cache
from typing import Any, NamedTuple

import pytest
from hypothesis import given
from hypothesis import strategies as st

from bardo.reasoning import ReasoningFormat, Segment, Splitter, find_format, formats, lacks_opener, split
from bardo.reasoning.formats import spellings
from support.splitting import cuts, is_what_deleting_leaves, pieces_of, read

pytestmark = pytest.mark.each_python


class Case(NamedTuple):
    format: str
    inside: bool | None
    text: str
    expected: str


CASES = {
    # Plain blocks
    "a block, then the answer": Case("qwen3", None, "<think>plan</think>answer", "‹plan›answer"),
    "whitespace stays": Case("qwen3", None, "\n<think>\n plan \n</think>\n\n answer\n", "\n‹\n plan \n›\n\n answer\n"),
    "no block": Case("qwen3", None, "answer", "answer"),
    "nothing": Case("qwen3", None, "", ""),
    "text before the opener is answer": Case("qwen3", None, "Hi <think>plan</think>answer", "Hi ‹plan›answer"),
    "an empty block shows": Case("qwen3", None, "<think></think>answer", "‹›answer"),
    "a block without end": Case("qwen3", None, "<think>plan", "‹plan›"),
    "an opener alone": Case("qwen3", None, "<think>", "‹›"),
    "ends at the closer": Case("qwen3", None, "<think>plan</think>", "‹plan›"),
    # Beginning inside
    "begins inside": Case("deepseek_r1", None, "plan</think>answer", "‹plan›answer"),
    "begins inside, at once over": Case("deepseek_r1", None, "</think>answer", "‹›answer"),
    "begins inside, never ends": Case("deepseek_r1", None, "plan", "‹plan›"),
    "begins inside, nothing comes": Case("deepseek_r1", None, "", ""),
    "the caller says it does": Case("qwen3", True, "plan</think>answer", "‹plan›answer"),
    "the caller says it does not": Case("deepseek_r1", False, "answer", "answer"),
    "a prompt nobody spoke of": Case("deepseek_v31", None, "answer", "answer"),
    "an echoed opener": Case("deepseek_r1", None, "<think>\nplan</think>answer", "‹\nplan›answer"),
    "an echo after whitespace": Case("deepseek_r1", None, "\n <think>plan</think>answer", "‹\n plan›answer"),
    "only one echo": Case("deepseek_r1", None, "<think><think>plan</think>answer", "‹<think>plan›answer"),
    "no echo after text": Case("deepseek_r1", None, "a<think>b</think>answer", "‹a<think>b›answer"),
    # Tags that are text
    "an opener that the reply repeats": Case("qwen3", None, "<think>\n<think>\nplan</think>answer", "‹\n\nplan›answer"),
    "a nested opener": Case("qwen3", None, "<think>a<think>b</think>c</think>d", "‹a<think>b›c</think>d"),
    "a closer without opener": Case("qwen3", None, "answer</think>more", "answer</think>more"),
    "a second block of a single format": Case(
        "qwen3", None, "<think>a</think>b<think>c</think>d", "‹a›b<think>c</think>d"
    ),
    "tags in fenced code after the block": Case(
        "qwen3", None, "<think>a</think>\n```\n<think>\n</think>\n```", "‹a›\n```\n<think>\n</think>\n```"
    ),
    "tags in fenced code without any block": Case(
        "qwen3", None, "See:\n```xml\n<think>x</think>\n```\n", "See:\n```xml\n<think>x</think>\n```\n"
    ),
    "near misses": Case(
        "qwen3", None, "<Think>< think><thinks></ think><think", "<Think>< think><thinks></ think><think"
    ),
    "the mismatch is looked at again": Case("qwen3", None, "<<think>a<</think>b", "<‹a<›b"),
    "a tag that turns into text": Case("qwen3", None, "<think>a</answer</think>b", "‹a</answer›b"),
    "a partial closer at the end": Case("qwen3", None, "<think>a</thi", "‹a</thi›"),
    "a partial opener at the end": Case("qwen3", None, "a<thi", "a<thi"),
    "a partial echo at the end": Case("deepseek_r1", None, "<thi", "‹<thi›"),
    # Ends that stay in the text
    "a tool call ends the block": Case(
        "qwen3", None, "<think>a<tool_call>{}</tool_call>", "‹a›<tool_call>{}</tool_call>"
    ),
    "the first end counts": Case("qwen3", None, "<think>a<tool_call>b</think>c", "‹a›<tool_call>b</think>c"),
    "a tool call at once": Case("qwen3", True, "<tool_call>{}", "‹›<tool_call>{}"),
    "bars of full width": Case("deepseek_v4", True, "a<｜DSML｜tool_calls>b", "‹a›<｜DSML｜tool_calls>b"),
    # Several blocks
    "two blocks": Case("glm45", None, "<think>a</think>b<think>c</think>d", "‹a›b‹c›d"),
    "two blocks, one right after the other": Case("glm45", None, "<think>a</think><think>b</think>c", "‹a›‹b›c"),
    "two empty blocks": Case("glm45", None, "<think></think><think></think>", "‹›‹›"),
    "fenced code between blocks": Case(
        "glm45",
        None,
        "<think>a</think>\n```\n<think>b</think>\n```\n<think>c</think>d",
        "‹a›\n```\n<think>b</think>\n```\n‹c›d",
    ),
    "a fence inside a block does not last": Case("glm45", None, "<think>```\n</think>a<think>b", "‹```\n›a‹b›"),
    "a fence in reasoning hides no end": Case(
        "glm45", None, "<think>```\n</think>\n```\n</think>", "‹```\n›\n```\n</think>"
    ),
    # Families
    "kimi": Case("kimi", None, "◁think▷plan◁/think▷answer◁", "‹plan›answer◁"),
    "kimi_k3": Case(
        "kimi_k3",
        True,
        "plan<|close|>think<|sep|><|open|>response<|sep|>hi<|close|>response<|sep|><|close|>message<|sep|>",
        "‹plan›hi",
    ),
    "kimi_k3, thinking was skipped": Case("kimi_k3", True, "a<|close|>response<|sep|>b", "‹a›b"),
    "kimi_k3, no closer": Case("kimi_k3", True, "plan<|open|>response<|sep|>hi", "‹plan›hi"),
    "mistral": Case("mistral", None, "[THINK]a[/THINK]b[TOOL_CALLS][THINK]c", "‹a›b[TOOL_CALLS]‹c›"),
    "granite32": Case("granite32", None, "Here's my thought process: a\nHere is my response: b", "‹ a\n› b"),
    "apriel": Case(
        "apriel", None, "Here are my reasoning steps:\na\n[BEGIN FINAL RESPONSE]\nb[END FINAL RESPONSE]", "‹a\n›\nb"
    ),
    "hunyuan": Case("hunyuan_a13b", None, "<think>\na\n\n</think>\n<answer>\nb\n</answer>", "‹a\n›b"),
    "hunyuan, bare tags": Case("hunyuan_a13b", None, "<think>a\n</think>\nb", "‹a\n›\nb"),
    "hunyuan, cut in the closer": Case("hunyuan_a13b", None, "<think>\na\n</think>\n<ans", "‹a\n›\n<ans"),
    "hy_v3 with a suffix": Case("hy_v3", None, "<think:opensource>a</think:opensource>b", "‹a›b"),
    "hy_v3, a suffix nobody knows": Case("hy_v3", None, "<think:x-1>a<tool_calls:x-1>b", "‹a›<tool_calls:x-1>b"),
    "hy_v3, no suffix after all": Case("hy_v3", None, "<think:>a<think:x y>b", "<think:>a<think:x y>b"),
    "hy_v3, cut in the suffix": Case("hy_v3", True, "a</think:open", "‹a</think:open›"),
    "hy_v3 without": Case("hy_v3", True, "a<tool_calls>b", "‹a›<tool_calls>b"),
    "granite33, a wrapped answer": Case(
        "granite33", None, "<think>a</think>\n<response>\nb\n</response>c</response>", "‹a›\nbc</response>"
    ),
    "granite33, nothing is wrapped": Case("granite33", None, "<think>a</think>b<response>c", "‹a›b<response>c"),
    "granite33, no block, no wrapper": Case("granite33", None, "<response>b</response>", "<response>b</response>"),
    "ernie45, a wrapper without end": Case("ernie45", None, "a</think><response>b", "‹a›b"),
    "ernie45, cut in the wrapper": Case("ernie45", None, "a</think>\n\n<respon", "‹a›\n\n<respon"),
    "apertus": Case("apertus", None, "<|inner_prefix|>a<|inner_suffix|>b", "‹a›b"),
    "apertus, a call in the block": Case(
        "apertus",
        None,
        '<|inner_prefix|>a<|tools_prefix|>[{"f": {}}]<|tools_suffix|>b<|inner_suffix|>c',
        '‹a›<|tools_prefix|>[{"f": {}}]<|tools_suffix|>‹b›c',
    ),
    "apertus, a call ends the reply": Case(
        "apertus", None, "<|inner_prefix|>a<|tools_prefix|>[]<|tools_suffix|>", "‹a›<|tools_prefix|>[]<|tools_suffix|>"
    ),
    "apertus, nothing after a call": Case(
        "apertus",
        None,
        "<|inner_prefix|>a<|tools_prefix|>[]<|tools_suffix|><|inner_suffix|>b",
        "‹a›<|tools_prefix|>[]<|tools_suffix|>b",
    ),
    "apertus, two calls": Case(
        "apertus",
        None,
        "<|inner_prefix|><|tools_prefix|>1<|tools_suffix|><|tools_prefix|>2<|tools_suffix|>",
        "‹›<|tools_prefix|>1<|tools_suffix|><|tools_prefix|>2<|tools_suffix|>",
    ),
    "append_think": Case("minimax_m2_append_think", None, "a</think>b", "<think>a</think>b"),
    "append_think, an echoed opener": Case("minimax_m2_append_think", None, "<think>a", "<think>a"),
    "append_think, a beginning of one": Case("minimax_m2_append_think", None, "<thi", "<think><thi"),
    "append_think, nothing to restore": Case("minimax_m2_append_think", False, "a</think>b", "a</think>b"),
    "append_think, nothing comes": Case("minimax_m2_append_think", None, "", ""),
    "response_template, not known": Case("response_template", None, "<think>a</think>b", "<think>a</think>b"),
    "gemma4": Case("gemma4", None, "<|channel>thought\na<channel|>b<|channel>c<channel|>", "‹a›b‹c›"),
    "gemma4, another word": Case("gemma4", None, "<|channel>thousand years<channel|>b", "‹thousand years›b"),
    "gemma4, cut in the label": Case("gemma4", None, "<|channel>thou", "‹thou›"),
    "minimax_m3 without thinking": Case("minimax_m3", False, "\n</mm:think>b</mm:think>", "\nb</mm:think>"),
    "cohere": Case(
        "cohere_cmd4", True, "a<|END_THINKING|><|START_TEXT|>b<|END_TEXT|><|START_ACTION|>", "‹a›b<|START_ACTION|>"
    ),
    "solar": Case("solar_open", None, "<|think|>a<|end|><|begin|>assistant<|content|>b<|end|>", "‹a›b"),
    "solar, framing in fenced code": Case("solar_open", None, "```\n<|content|><|think|>b", "```\n<|think|>b"),
    "k2_horizon": Case("k2_horizon", None, "<ifm|think_fast>a</ifm|think_faster>b", "‹a›b"),
    # Tags of unknown families
    "think": Case("think", None, "<think>a</think>b", "‹a›b"),
    "thinking": Case("think", None, " \n<thinking>a</thinking>b", " \n‹a›b"),
    "think, only at the start": Case("think", None, "The tag <think> opens.", "The tag <think> opens."),
    "think, one block": Case("think", None, "<think>a</think><think>b</think>", "‹a›<think>b</think>"),
    "think, closer alone": Case("think", None, "a</think>b", "a</think>b"),
    "think, told to begin inside": Case("think", True, "a</think>b", "‹a›b"),
    "passthrough": Case("passthrough", None, "<think>a</think>b", "<think>a</think>b"),
}


@pytest.mark.parametrize("case", CASES.values(), ids=CASES.keys())
def test_a_reply_is_split_the_same_wherever_it_is_cut(case: Case) -> None:
    row = find_format(case.format)
    assert read(row, [case.text], inside=case.inside) == case.expected
    assert {read(row, pieces, inside=case.inside) for pieces in cuts(case.text)} == {case.expected}


CALLS = {
    "qwen3": ("<tool_call>", "</tool_call>"),
    "glm47": ("<tool_call>", "</tool_call>"),
    "dots": ("<tool_call>", "</tool_call>"),
    "deepseek_v41": ("<｜DSML｜ calls>", "</｜DSML｜ calls>"),
    "deepseek_v4": ('<｜DSML｜invoke name="', "</｜DSML｜invoke>"),
    "kimi_k2": ("<|tool_calls_section_begin|>", "<|tool_calls_section_end|>"),
    "kimi_k3": ("<|open|>tools<|sep|>", "<|close|>tools<|sep|>"),
    "minimax_m2": ("<minimax:tool_call>", "</minimax:tool_call>"),
    "minimax_m3": ("]<]minimax[>[<tool_call>", "]<]minimax[>[</tool_call>"),
    "k2_horizon": ("<ifm|tool_calls>", "</ifm|tool_calls>"),
    "seed_oss": ("<seed:tool_call>", "</seed:tool_call>"),
    "cohere_cmd3": ("<|START_ACTION|>", "<|END_ACTION|>"),
    "hy_v3": ("<tool_calls>", "</tool_calls>"),
    "plamo3": ("<|plamo:begin_tool_requests:plamo|>", "<|plamo:end_tool_requests:plamo|>"),
}
"""The call that ends a block in these formats, and what ends that call."""


@pytest.mark.parametrize("name", CALLS)
def test_the_closer_behind_a_call_that_ended_its_block_is_none_of_the_answers(name: str) -> None:
    row, (call, end) = find_format(name), CALLS[name]
    start, closer = row.starts[0], row.ends[0]
    for between in ("", "\n", f"{call}{{}}{end}"):
        whole = f"{start}idea {call}\n{{}}{end}{between}{closer}after"
        assert {read(row, pieces, inside=False) for pieces in cuts(whole)} == {
            f"‹idea ›{call}\n{{}}{end}{between}after"
        }
    quoted = f'{start}idea {call}\n{{"tag": "{closer}"}}{end}after'
    assert read(row, [quoted], inside=False) == f'‹idea ›{call}\n{{"tag": "{closer}"}}{end}after'
    assert read(row, [f"{start}idea {call}\n{{}}{closer}"], inside=False) == f"‹idea ›{call}\n{{}}{closer}"


@pytest.mark.parametrize("name", [name for name, row in formats().items() if row.starts and row.ends])
def test_no_format_leaves_a_closer_behind_a_tagged_call_in_the_answer(name: str) -> None:
    row = find_format(name)
    for call in ("<tool_call>{}</tool_call>", '<tool_call>\n{"name": "f"}\n</tool_call>\n'):
        for start, end in zip(row.starts, row.ends, strict=False):
            whole = f"{start}idea {call}{end}after"
            [said] = {read(row, pieces, inside=False) for pieces in cuts(whole)}
            assert end not in said


def test_a_closer_that_an_answer_behind_a_call_only_names_stays() -> None:
    said = "<think>idea <tool_call>\n{}</tool_call>Write `</think>` once."
    assert read(find_format("qwen3"), [said]) == "‹idea ›<tool_call>\n{}</tool_call>Write `</think>` once."


def every_delimiter() -> Iterator[tuple[ReasoningFormat, str, str]]:
    for row in formats().values():
        yield from ((row, start, end) for start in row.starts for end in row.ends)


@pytest.mark.parametrize(
    ("row", "start", "end"), [pytest.param(*each, id=f"{each[0].name} {each[1:]}") for each in every_delimiter()]
)
def test_every_row_is_read_as_it_says(row: ReasoningFormat, start: str, end: str) -> None:
    stray = "" if end in row.dropped else end
    again = "‹c›d" if row.blocks == "multi" else f"{start}c{stray}d"
    whole = f"{start}a{end}b{start}c{end}d"
    assert {read(row, pieces, inside=False) for pieces in cuts(whole)} == {f"‹a›b{again}"}
    assert read(row, [f" {start}a{end}b"], inside=True) == "‹ a›b"
    assert read(row, [f"a{end}b"], inside=True) == "‹a›b"
    for marker in row.implicit_ends:
        kept = "" if marker in row.dropped else marker
        assert {read(row, pieces) for pieces in cuts(f"{start}a{marker}b")} == {f"‹a›{kept}b"}
    for marker in row.dropped:
        assert {read(row, pieces) for pieces in cuts(f"{start}a{end}b{marker}c")} == {"‹a›bc"}


PLAIN = sorted(name for name, row in formats().items() if row.machine == "delimiters")


def consumed(row: ReasoningFormat) -> tuple[str, ...]:
    return (*row.starts, *row.ends, *row.dropped, *spellings(row.answer_start), *spellings(row.answer_end))


def markers_of(row: ReasoningFormat) -> tuple[str, ...]:
    calls = (*spellings(row.call_start), *spellings(row.call_end))
    return (*consumed(row), *row.implicit_ends, *calls, *row.stripped)


@cache
def vocabulary(name: str) -> list[str]:
    markers = markers_of(find_format(name))
    parts = [marker[:at] for marker in markers for at in (1, len(marker) // 2, len(marker) - 1)]
    return sorted({*markers, *parts, "\n", " ", "```", "\n```\n", "~~~", "word", "é🧠", "<", ">"} - {""})


def replies(name: str) -> st.SearchStrategy[str]:
    return st.lists(st.sampled_from(vocabulary(name)), max_size=14).map("".join)


@given(st.data(), st.sampled_from(PLAIN), st.sampled_from([None, False, True]))
def test_any_cut_says_the_same_and_nothing_is_lost(data: st.DataObject, name: str, inside: bool | None) -> None:
    row, text = find_format(name), data.draw(replies(name))
    whole = read(row, [text], inside=inside)
    assert read(row, list(text), inside=inside) == whole
    assert read(row, pieces_of(data, text), inside=inside) == whole
    assert is_what_deleting_leaves(whole.replace("‹", "").replace("›", ""), text, consumed(row))


MARKERS = st.lists(st.text("ab<\n`", min_size=1, max_size=4), max_size=3).map(tuple)


def odd_format(*, start: tuple[str, ...], end: tuple[str, ...], **fields: Any) -> ReasoningFormat:
    """Return a format whose delimiters overlap in any way but one: an opener is no closer."""
    return ReasoningFormat(name="odd", start=start, end=tuple(one for one in end if one not in start), **fields)


ODD_FORMATS = st.builds(
    odd_format,
    start=MARKERS,
    end=MARKERS,
    implicit_ends=MARKERS,
    dropped=MARKERS,
    blocks=st.sampled_from(["single", "multi"]),
    opens=st.sampled_from(["anywhere", "start"]),
    leading_closer=st.booleans(),
)


@given(ODD_FORMATS, st.lists(st.sampled_from([*"ab<\n` ", "\n```\n"]), max_size=20), st.booleans(), st.data())
def test_delimiters_may_overlap_in_any_way(
    row: ReasoningFormat, parts: list[str], inside: bool, data: st.DataObject
) -> None:
    text = "".join(parts)
    whole = read(row, [text], inside=inside)
    assert read(row, list(text), inside=inside) == whole
    assert read(row, pieces_of(data, text), inside=inside) == whole
    markers = (*row.starts, *row.ends, *row.dropped)
    assert is_what_deleting_leaves(whole.replace("‹", "").replace("›", ""), text, markers)


def test_an_opener_in_fenced_code_hides_no_other_delimiter() -> None:
    row = ReasoningFormat(name="odd", start="<<a>", end="</a>", dropped=("<a>",))
    assert {read(row, pieces) for pieces in cuts("```\n<<a>")} == {"```\n<"}


def test_an_opener_in_fenced_code_hides_no_shorter_delimiter_that_begins_with_it() -> None:
    row = ReasoningFormat(name="odd", start="ab<", end="</a>", dropped=("a",))
    assert {read(row, pieces) for pieces in cuts("```\naba")} == {"```\nb"}
    assert {read(row, pieces) for pieces in cuts("```\nab<a")} == {"```\nb<"}


@given(st.data(), st.sampled_from(PLAIN), st.booleans())
def test_only_the_beginning_of_a_delimiter_is_held(data: st.DataObject, name: str, inside: bool) -> None:
    row, text = find_format(name), data.draw(replies(name))
    markers = markers_of(row)
    splitter = Splitter(row, starts_inside=inside)
    for character in text:
        splitter.feed(character)
        held = splitter._held
        assert not held or any(marker.startswith(held) for marker in markers)


def test_of_two_delimiters_that_begin_together_the_longer_counts_at_the_finish_too() -> None:
    row = ReasoningFormat(name="odd", end=("b", "bc", "abcd"), starts_inside=True)
    assert {read(row, pieces) for pieces in cuts("abc")} == {"‹a›"}


def test_reasoning_is_given_as_it_arrives() -> None:
    splitter = Splitter(find_format("qwen3"))
    fed = [list(splitter.feed(piece)) for piece in ("<think>", "first", " second<", "/thi", "nk>", "answer")]
    assert fed == [
        [Segment(True, "")],
        [Segment(True, "first")],
        [Segment(True, " second")],
        [],
        [Segment(True, "", closes=True)],
        [Segment(False, "answer")],
    ]


def test_pieces_of_one_kind_are_one_segment_of_a_feed() -> None:
    splitter = Splitter(find_format("cohere_cmd4"), starts_inside=True)
    segments = splitter.feed("a<|END_THINKING|>b<|START_TEXT|>c<|END_TEXT|>d")
    assert segments == [Segment(True, "a", closes=True), Segment(False, "bcd")]


@pytest.mark.parametrize(("text", "inside"), [("<think>a", True), ("<think>a</think>", False), ("", False)])
def test_whether_a_block_never_ended_is_known_before_the_finish(text: str, inside: bool) -> None:
    splitter = Splitter(find_format("qwen3"))
    splitter.feed(text)
    assert splitter.inside is inside


def test_finish_closes_an_open_block_once() -> None:
    splitter = Splitter(find_format("qwen3"))
    splitter.feed("<think>a")
    assert splitter.finish() == [Segment(True, "", closes=True)]
    assert splitter.finish() == []


def test_a_whole_reply_is_split_at_once() -> None:
    assert split("<think>a</think>b<think>c</think>d", "glm45") == ("ac", "bd")
    assert split("a</think>b", find_format("qwen3"), starts_inside=True) == ("a", "b")


@pytest.mark.parametrize(
    ("text", "lacks"),
    [("a</think>b", True), ("</think>", True), ("<think>a</think>b", False), ("a", False), ("a<think>b", False)],
)
def test_a_whole_reply_shows_that_its_opener_is_missing(text: str, lacks: bool) -> None:
    assert lacks_opener(text, find_format("deepseek_v31")) is lacks
