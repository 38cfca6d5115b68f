"""Parameters and tags that models leave incomplete, and further spellings of calls: all are read, and no cut matters."""

from __future__ import annotations

from dataclasses import dataclass

import pytest

from tools.support import cuts, read, show

TWO_CLOCKS = "‹clock #1 {}›‹clock #2 {}›"
SELF_CLOSING = {
    "deepseek_v32": ("｜DSML｜", "<｜DSML｜function_calls>\n", "\n</｜DSML｜function_calls>"),
    "deepseekv32": ("", "<function_calls>\n", "\n</function_calls>"),
    "deepseek_v4": ("｜DSML｜", "<｜DSML｜tool_calls>\n", "\n</｜DSML｜tool_calls>"),
    "deepseek_v41": ("｜DSML｜ ", "<｜DSML｜ calls>\n", "\n</｜DSML｜ calls>"),
    "minimax_m2": ("", "<minimax:tool_call>\n", "\n</minimax:tool_call>"),
    "dots": ("", "<dots_function_call>", "</dots_function_call>"),
}


@dataclass(frozen=True)
class Case:
    format: str
    text: str
    expected: str


def qwen(*lines: str) -> str:
    return "\n".join(("<tool_call>", "<function=weather>", *lines))


CODE = "def f():\n    return '</function>'\n\n</function>\nx"
CASES = {
    **{
        f"a tag that closes itself, {name}": Case(
            name, f'{before}<{tag}invoke name="clock"/>\n<{tag}invoke name="clock" />{after}', TWO_CLOCKS
        )
        for name, (tag, before, after) in SELF_CLOSING.items()
    },
    "words after a tag that closes itself": Case(
        "deepseek_v4", '<｜DSML｜invoke name="clock"/>  then', "‹clock #1 {}›  then"
    ),
    "a tag with something else in it": Case(
        "deepseek_v4", '<｜DSML｜invoke name="clock" x', '<｜DSML｜invoke name="clock" †x'
    ),
    "the section of another version": Case(
        "deepseek_v4",
        '<｜DSML｜function_calls>\n<｜DSML｜invoke name="clock"/>\n</｜DSML｜function_calls>',
        "‹clock #1 {}›",
    ),
    "the section of a later version": Case(
        "deepseek_v32", '<｜DSML｜tool_calls>\n<｜DSML｜invoke name="clock"/>\n</｜DSML｜tool_calls>', "‹clock #1 {}›"
    ),
    **{
        f"a parameter that does not say whether it is text, {name}": Case(
            name,
            f'<{tag}invoke name="weather">\n<{tag}parameter name="city">3</{tag}parameter>\n'
            f'<{tag}parameter name="days">3</{tag}parameter>\n</{tag}invoke>',
            '‹weather #1 {"city": "3", "days": 3}›',
        )
        for name, tag in (("deepseek_v32", "｜DSML｜"), ("deepseek_v4", "｜DSML｜"), ("deepseek_v41", "｜DSML｜ "))
    },
    "minimax m2, calls as m1 writes them": Case(
        "minimax_m2", 'Hi<tool_calls>\n{"name": "clock", "arguments": {}}\n</tool_calls>', "Hi‹clock #1 {}›"
    ),
    "a parameter twice": Case(
        "qwen3_coder",
        qwen(
            *(
                "<parameter=city>",
                "a",
                "</parameter>",
                "<parameter=city>",
                "b",
                "</parameter>",
                "</function>",
                "</tool_call>",
            )
        ),
        '‹weather #1 {"city": "a"†city†, "city": "b"}›',
    ),
    "the last parameter has no end": Case(
        "qwen3_coder",
        qwen("<parameter=city>", "Paris", "</parameter>", "<parameter=days>", "3", "</function>", "</tool_call>Hi"),
        '‹weather #1 {"city": "Paris", "days": 3†days†}›Hi',
    ),
    "no parameter has an end": Case(
        "qwen3_coder",
        qwen("<parameter=city>", "Paris", "<parameter=days>", "3", "</function></tool_call>"),
        '‹weather #1 {"city": "Paris"†city†, "days": 3†days†}›',
    ),
    "no end after a value on the line of its tag": Case(
        "qwen3_coder",
        qwen("<parameter=city>Paris", "</function>", "</tool_call>"),
        '‹weather #1 {"city": "Paris"†city†}›',
    ),
    "no end before the next parameter, on the lines of their tags": Case(
        "qwen3_coder",
        qwen("<parameter=city>Paris", "<parameter=days>3</parameter>", "</function>", "</tool_call>"),
        '‹weather #1 {"city": "Paris"†city†, "days": 3}›',
    ),
    "no end before the next call": Case(
        "seed_oss",
        "<seed:tool_call>\n<function=weather>\n<parameter=city>\nParis\n</function>\n</seed:tool_call>\n"
        "<seed:tool_call>\n<function=clock>\n</function>\n</seed:tool_call>",
        '‹weather #1 {"city": "Paris"†city†}›‹clock #2 {}›',
    ),
    "no end, and the server has cut the section's end off": Case(
        "qwen3_coder", qwen("<parameter=city>", "Paris", "</function>", ""), '‹weather #1 {"city": "Paris"†city†}›\n'
    ),
    "a value that holds the end of a call": Case(
        "qwen3_coder",
        qwen("<parameter=city>", CODE, "</parameter>", "</function>", "</tool_call>"),
        f'‹weather #1 {{"city": "{CODE}"}}›'.replace("\n", "\\n"),
    ),
    "a key without a value": Case(
        "glm45",
        "<tool_call>weather\n<arg_key>city</arg_key></tool_call><tool_call>clock\n</tool_call>",
        "‹weather #1 †<arg_key>city</arg_key>†{}›‹clock #2 {}›",
    ),
    "a key without a value before another": Case(
        "glm45",
        "<tool_call>weather\n<arg_key>city</arg_key><arg_key>days</arg_key><arg_value>3</arg_value>\n</tool_call>",
        '‹weather #1 †<arg_key>city</arg_key>†{"days": 3}›',
    ),
    "a list with its quotes escaped": Case(
        "glm45",
        r"<tool_call>weather<arg_key>spots</arg_key><arg_value>[{\"id\": \"a\\nb\"}]</arg_value></tool_call>",
        r'‹weather #1 {"spots": [{"id": "a\nb"}]}›',
    ),
    "a text with its quotes escaped": Case(
        "glm45",
        r"<tool_call>weather<arg_key>city</arg_key><arg_value>[\"x\"]</arg_value></tool_call>",
        r'‹weather #1 {"city": "[\\\"x\\\"]"}›',
    ),
    "lfm2, an object of JSON": Case(
        "lfm2", 'Hi<|tool_call_start|>{"name": "clock", "arguments": {}}<|tool_call_end|>', "Hi‹clock #1 {}›"
    ),
    "lfm2, a list of JSON": Case(
        "lfm2",
        '<|tool_call_start|>[\n  {"name": "clock", "arguments": {}},\n  {"name": "clock", "parameters": {}}\n]<|tool_call_end|>',
        TWO_CLOCKS,
    ),
    "lfm2, in Python's notation": Case("lfm2", "<|tool_call_start|>[clock(), clock()]<|tool_call_end|>", TWO_CLOCKS),
    "kimi k3, entities in a key": Case(
        "kimi_k3",
        '<|open|>tools<|sep|><|open|>call tool="clock" index="1"<|sep|><|open|>argument key="a&amp;b&quot;" type="string"'
        "<|sep|>&amp;<|close|>argument<|sep|><|close|>call<|sep|><|close|>tools<|sep|>",
        r'‹clock #1 {"a&b\"": "&amp;"}›',
    ),
    "beam": Case(
        "beam",
        ' to=weather<|channel|>analysis <|constrain|>xml<|message|><rfl:parameter name="city">\nParis\n</rfl:parameter>\n'
        '<rfl:parameter name="days">\n3\n</rfl:parameter><|end|><|start|>assistant to=clock<|channel|>analysis<|message|><|call|>',
        ' ‹weather #1 {"city": "Paris", "days": 3}›‹clock #2 {}›',
    ),
    "beam, an answer": Case("beam", " to=be or not", " to=be †or not"),
    "kimi k3, a name with signs": Case(
        "kimi_k3",
        '<|open|>tools<|sep|><|open|>call tool="a&lt;b" index="1"<|sep|><|open|>argument key="c<d" type="number"'
        "<|sep|>1<|close|>argument<|sep|><|close|>call<|sep|><|close|>tools<|sep|>",
        '‹a<b #1 †{"c<d": 1}›',
    ),
    "mimo, line breaks in a value": Case(
        "mimo",
        "<tool_call><function=weather><parameter=city>\nParis\n</parameter></function></tool_call>",
        r'‹weather #1 {"city": "\nParis\n"}›',
    ),
    "inkling": Case(
        "inkling",
        'Hi<|message_model|>clock<|content_invoke_tool_json|>{"name": "clock", "args": {}}<|end_message|>'
        '<|message_model|>clock<|content_invoke_tool_json|>{"name": "clock", "args": {}}<|end_message|>',
        f"Hi{TWO_CLOCKS}",
    ),
    "inkling, a name that goes on with the prompt's header": Case(
        "inkling", 'clock<|content_invoke_tool_json|>{"name": "clock", "args": {}}<|end_message|>', "‹clock #1 {}›"
    ),
    "inkling, an answer that begins with a tool's name": Case("inkling", "clock or not", "clock or not"),
    "inkling, a text for arguments": Case(
        "inkling",
        "<|message_model|>clock<|content_invoke_tool_text|>ten {past}<|end_message|>",
        "‹clock #1 ten {past}†›",
    ),
    "llm-jp": Case(
        "llm_jp",
        '<|start|> assistant to=functions.weather<|channel|> commentary <|constrain|>  json<|message|> {"city": "x"}<|end|>'
        "<|start|> assistant<|channel|> commentary to=functions.clock<|message|> {}<|call|>",
        '‹weather #1 {"city": "x"}›‹clock #2 {}›',
    ),
}


@pytest.mark.parametrize("case", CASES.values(), ids=CASES)
def test_a_call_is_read_the_same_wherever_it_is_cut(case: Case) -> None:
    assert show(read(case.format, [case.text])) == case.expected
    assert {show(read(case.format, pieces)) for pieces in cuts(case.text)} == {case.expected}
