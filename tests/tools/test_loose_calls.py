"""Calls of further families, and calls that models write a little beside their format: all are read, and no cut matters."""

from __future__ import annotations

import random
import re
from dataclasses import dataclass

import pytest

from bardo.tools import CallStart, reader
from bardo.values.request import Tool
from support.sampling import seed
from tools.support import TOOLS, cuts, read, show

ARGUMENTS = '{"city": "Paris", "days": 3}'
JSON = f'{{"name": "weather", "arguments": {ARGUMENTS}}}'
CALL = f"‹weather #1 {ARGUMENTS}›"
BOTH = f"{CALL}‹clock #2 {{}}›"
MARK = "]<]minimax[>["

ROUTE = Tool(
    name="route",
    schema={
        "type": "object",
        "properties": {
            "stops": {"type": "array", "items": {"type": "object", "properties": {"km": {"type": "number"}}}},
            "note": {"type": "string"},
            "item": {"type": "object", "properties": {"item": {"type": "integer"}}},
            "near": {"anyOf": [{"type": "integer"}, {"type": "object", "properties": {"km": {"type": "integer"}}}]},
        },
    },
)


@dataclass(frozen=True)
class Case:
    format: str
    text: str
    expected: str


def minimax(name: str, *elements: str) -> str:
    inner = "".join(f"{MARK}{element}" for element in elements)
    return f'{MARK}<tool_call>\n{MARK}<invoke name="{name}">{inner}{MARK}</invoke>\n{MARK}</tool_call>'


ELEMENTS = {
    "one value for each element": Case(
        "minimax_m3", f"Hi{minimax('weather', '<city>Paris', '</city>', '<days>3', '</days>')}", f"Hi{CALL}"
    ),
    "no elements": Case("minimax_m3", minimax("clock"), "‹clock #1 {}›"),
    "a list of objects": Case(
        "minimax_m3",
        minimax(
            "route",
            "<stops>",
            "<item>",
            "<km>1.5",
            "</km>",
            "</item>",
            "<item>",
            "<km>2",
            "</km>",
            "</item>",
            "</stops>",
        ),
        '‹route #1 {"stops": [{"km": 1.5}, {"km": 2}]}›',
    ),
    "an object that declares an item": Case(
        "minimax_m3", minimax("route", "<item>", "<item>4", "</item>", "</item>"), '‹route #1 {"item": {"item": 4}}›'
    ),
    "a value that may be an object": Case(
        "minimax_m3", minimax("route", "<near>", "<km>4", "</km>", "</near>"), '‹route #1 {"near": {"km": 4}}›'
    ),
    "a value that may be an object, and is none": Case(
        "minimax_m3", minimax("route", "<near>7", "</near>"), '‹route #1 {"near": 7}›'
    ),
    "tags in a text": Case(
        "minimax_m3",
        minimax("route", "<note> a", "<b>c", "</b>", "</note>"),
        f'‹route #1 {{"note": " a{MARK}<b>c{MARK}</b>"}}›',
    ),
    "elements that nobody declared": Case(
        "minimax_m3",
        minimax("clock", "<a>", "<item>x", "</item>", "<item>1", "</item>", "</a>", "<b>", "<c> y", "</c>", "</b>"),
        '‹clock #1 {"a": ["x", "1"], "b": {"c": " y"}}›',
    ),
    "elements of one name": Case(
        "minimax_m3",
        minimax("clock", "<a>", "<t>x", "</t>", "<u>1", "</u>", "<t>y", "</t>", "</a>"),
        '‹clock #1 {"a": {"t": ["x", "y"], "u": "1"}}›',
    ),
    "a broken element behind others": Case(
        "minimax_m3",
        minimax("clock", "<a>", "<t>x", "</t>", "<t>y"),
        f'‹clock #1 {{"a": {{"t": "x"†t†, "t": "y{MARK}</invoke>\\n{MARK}</tool_call>›†',
    ),
    "text between elements": Case(
        "minimax_m3", minimax("weather", "<city>x", "</city> so "), '‹weather #1 {"city": "x"†so †}›'
    ),
    "an element without a name": Case(
        "minimax_m3", minimax("weather", "<>x"), f"‹weather #1 ††>x†›††{MARK}</invoke>\n†"
    ),
    "the reply ends in an element": Case(
        "minimax_m3", f'{MARK}<tool_call>{MARK}<invoke name="clock">{MARK}<a>b', '‹clock #1 {"a": "b›†'
    ),
    "no elements and no end": Case(
        "minimax_m3",
        f'{MARK}<tool_call>{MARK}<invoke name="clock">no',
        f'{MARK}<tool_call>{MARK}<invoke name="clock">†no',
    ),
}

FAMILIES = {
    "reka edge": Case("reka-edge", f"<tool_call>\n{JSON}</tool_call>", CALL),
    "spark": Case("spark25", "<tool_call>clock</tool_call>", "‹clock #1 {}›"),
    "apriel": Case("apriel", f"<tool_calls>[{JSON}]</tool_calls>", CALL),
    "dots": Case(
        "dots",
        '<dots_function_call><invoke name="weather"><parameter name="city">Paris</parameter>'
        '<parameter name="days">3</parameter></invoke><invoke name="clock"></invoke></dots_function_call>',
        BOTH,
    ),
    "dots, in JSON": Case("dots", f"<dots_function_call>{JSON}</dots_function_call>", CALL),
    "firefunction": Case("firefunction_v2", f" functools[{JSON}]", f" {CALL}"),
    "phi 4 mini behind words": Case("phi4_mini", f"Let me look.\nfunctools[{JSON}]", f"Let me look.\n{CALL}"),
    "phi 4 mini's words about Python": Case(
        "phi4_mini", "See functools[0] and functools.", "See functools[0] and functools."
    ),
    "functionary": Case("functionary", f"<function=weather>{ARGUMENTS}</function>", CALL),
    "functionary 3.2": Case("functionary_v32", f"weather\n{ARGUMENTS}>>>clock\n{{}}", BOTH),
    "functionary 3.2, a word that is no tool": Case("functionary_v32", "Hello {you}", "Hello {you}"),
    "hunyuan 4": Case(
        "hy_v4",
        "<tool_calls:6124c78e><tool_call:6124c78e>weather<arg_key:6124c78e>city</arg_key:6124c78e><arg_value:6124c78e>Paris"
        "</arg_value:6124c78e><arg_key:6124c78e>days</arg_key:6124c78e><arg_value:6124c78e>3</arg_value:6124c78e>"
        "</tool_call:6124c78e><tool_call:6124c78e>clock</tool_call:6124c78e></tool_calls:6124c78e>",
        BOTH,
    ),
    "command r": Case("cohere_action", f"Action:\n```json\n[{JSON}]\n```", CALL),
    "command r, an answer with JSON": Case("cohere_action", "So:\n```json\n[1]\n```", "So:\n```json\n[1]\n```"),
    "muse": Case(
        "muse",
        'Hi<|start|>assistant to=weather<|message|><atem:function_calls>\n<atem:invoke name="weather">'
        '<atem:parameter name="city">Paris</atem:parameter><atem:parameter name="days">3</atem:parameter></atem:invoke>\n'
        '<atem:invoke name="clock"></atem:invoke></atem:function_calls><|eom|>',
        f"Hi{BOTH}",
    ),
    "muse, continued": Case(
        "muse",
        ' to=clock<|message|><atem:function_calls><atem:invoke name="clock"></atem:invoke></atem:function_calls><|eot|>',
        " ‹clock #1 {}›",
    ),
    "muse, a doubled name": Case(
        "muse", 'to=clock.clock<|message|><atem:invoke name="clock.clock"></atem:invoke><|eot|>', "‹clock #1 {}›"
    ),
    "muse, a name of another namespace": Case(
        "muse",
        'to=a.clock<|message|><atem:invoke name="a.clock"></atem:invoke><|eot|>',
        "‹a.clock #1 †{}›",
    ),
    "muse, an answer about calls": Case(
        "muse", 'So: <atem:invoke name="clock"></atem:invoke>', 'So: <atem:invoke name="clock"></atem:invoke>'
    ),
    "xlam": Case("xlam", f'[{JSON}, {{"name": "clock", "arguments": {{}}}}]', BOTH),
    "xlam, fenced after words": Case("xlam", f"Hi\n```json\n[{JSON}]\n```", f"Hi\n{CALL}"),
    "xlam, another list": Case("xlam", "[1, 2]", "[1, 2]"),
    "gigachat": Case("gigachat3", f"Hi<|message_sep|>\n\nfunction call<|role_sep|>\n{JSON}</s>", f"Hi{CALL}"),
    "gemma without its word": Case("gemma4", "<|tool_call>:clock{}<tool_call|>", "‹clock #1 {}›"),
    "code for a built-in tool": Case(
        "harmony",
        "<|start|>assistant<|channel|>commentary to=python <|constrain|>code<|message|>print(1)<|call|>",
        "‹python #1 †print(1)†›",
    ),
}

LOOSE = {
    "json after words": Case(
        "llama3_json", f'Well: {JSON}; {{"name": "clock", "parameters": {{}}}} Bye', f"Well: {BOTH} Bye"
    ),
    "json of no tool after words": Case(
        "llama3_json", 'Well: {"name": "Bob", "parameters": {}}', 'Well: {"name": "Bob", "parameters": {}}'
    ),
    "json in a fence": Case("llama3_json", f"So:\n```\n{JSON}\n```", f"So:\n```\n{JSON}\n```"),
    "a list of calls after words": Case(
        "llama4_pythonic", "Well: [weather(city='Paris', days=3), clock()] Bye", f"Well: {BOTH} Bye"
    ),
    "a list after words": Case(
        "llama4_pythonic", "See [1], [a(b)] and [magic(a=1)]", "See [1], [a(b)] and [magic(a=1)]"
    ),
    "a quoted list of calls": Case("llama4_pythonic", "Like `[clock()]`?", "Like `[clock()]`?"),
    "a link after words": Case("llama4_pythonic", "See [weather](http://x)", "See [weather](http://x)"),
    "a number padded with zeros": Case(
        "lfm2", "<|tool_call_start|>[weather(days=07)]<|tool_call_end|>", '‹weather #1 {"days": 7}›'
    ),
    "quotes that a command needs": Case(
        "lfm2",
        "<|tool_call_start|>[weather(city='sed -n '3,4p' a.py', days=3)]<|tool_call_end|>",
        '‹weather #1 {"city": "sed -n \'3,4p\' a.py", "days": 3}›',
    ),
    "a quoted call in a command": Case(
        "lfm2",
        '<|tool_call_start|>[weather(city="print("hi")"), clock()]<|tool_call_end|> Bye',
        '‹weather #1 {"city": "print(\\"hi\\")"}›‹clock #2 {}› Bye',
    ),
    "quoted words with commas in a command": Case(
        "lfm2",
        '<|tool_call_start|>[weather(city="echo "a", "b=" }" f", days=3)]<|tool_call_end|>',
        '‹weather #1 {"city": "echo \\"a\\", \\"b=\\" }\\" f", "days": 3}›',
    ),
    "an apostrophe": Case(
        "lfm2",
        "<|tool_call_start|>[weather(city='it's \"so\"')]<|tool_call_end|>",
        '‹weather #1 {"city": "it\'s \\"so\\""}›',
    ),
    "a set": Case(
        "lfm2",
        "<|tool_call_start|>[weather(spots={'a', 'b'}, near={})]<|tool_call_end|>",
        '‹weather #1 {"spots": ["a", "b"], "near": {}}›',
    ),
    "a set of one": Case(
        "lfm2", "<|tool_call_start|>[weather(spots={'a'})]<|tool_call_end|>", '‹weather #1 {"spots": ["a"]}›'
    ),
    "JSON in place of parameters": Case(
        "k2_horizon", f"<ifm|tool_calls><ifm|tool_call>\n{JSON}</ifm|tool_call></ifm|tool_calls>", CALL
    ),
    "calls between separators": Case(
        "step3",
        '<｜tool_calls_begin｜><｜tool_call_begin｜><steptml:invoke name="clock"></steptml:invoke><｜tool_call_end｜>'
        '<｜tool_sep｜><｜tool_call_begin｜>function<｜tool_sep｜><steptml:invoke name="clock"></steptml:invoke><｜tool_call_end｜>'
        "<｜tool_calls_end｜>",
        "‹clock #1 {}›‹clock #2 {}›",
    ),
    "an answer addressed to all": Case("functionary_v32", "all\nHello", "Hello"),
    "an answer to all, and a call": Case("functionary_v32", f"all\nHello>>>weather\n{ARGUMENTS}", f"Hello{CALL}"),
    "a call, and an answer to all": Case("functionary_v32", f"weather\n{ARGUMENTS}>>>all\nHello", f"{CALL}Hello"),
    "a word that begins like the recipient": Case("functionary_v32", "all is well", "all is well"),
    "a line that is no call": Case(
        "minimax_m1", f"<tool_calls>\nhm\n{JSON}\n</tool_calls>", f"<tool_calls>\n†hm{CALL}"
    ),
    "a line that breaks off": Case(
        "minimax_m1",
        f'<tool_calls>\n{{"name": \n{JSON}\n</tool_calls>',
        f'<tool_calls>\n{{"name": \n†{CALL}',
    ),
    "a parameter without its end": Case(
        "qwen3_coder",
        "<tool_call><function=weather><parameter=city>\nParis\n<parameter=days>\n3\n</parameter></function></tool_call>",
        '‹weather #1 {"city": "Paris"†city†, "days": 3}›',
    ),
    "a tag in a value of a parameter that came": Case(
        "qwen3_coder",
        "<tool_call><function=weather><parameter=city>\n\n<parameter=city>\n</parameter></function></tool_call>",
        '‹weather #1 {"city": "\\n<parameter=city>"}›',
    ),
    "a tag in a value that is no parameter": Case(
        "qwen3_coder",
        "<tool_call><function=weather><parameter=city>\na\n<parameter=b>\n</parameter></function></tool_call>",
        '‹weather #1 {"city": "a\\n<parameter=b>"}›',
    ),
    "a line break at the end of a value": Case(
        "seed_oss",
        "<seed:tool_call><function=weather><parameter=city>a\n</parameter></function></seed:tool_call>",
        '‹weather #1 {"city": "a\\n"}›',
    ),
    "character data": Case(
        "minicpm5",
        '<function name="weather"><param name="city"> <![CDATA[<a> </param>\n]]> </param></function>',
        '‹weather #1 {"city": "<a> </param>\\n"}›',
    ),
    "tags that lost their space": Case(
        "minicpm5", '<functionname="weather"><paramname="days">3</param></function>', '‹weather #1 {"days": 3}›'
    ),
    "all arguments in one": Case(
        "deepseek_v4",
        '<｜DSML｜tool_calls><｜DSML｜invoke name="weather"><｜DSML｜parameter name="arguments" string="false">'
        f"{ARGUMENTS}</｜DSML｜parameter></｜DSML｜invoke></｜DSML｜tool_calls>",
        f"‹weather #1 {ARGUMENTS}†›",
    ),
    "all arguments in one, and another": Case(
        "deepseek_v4",
        '<｜DSML｜tool_calls><｜DSML｜invoke name="weather"><｜DSML｜parameter name="input" string="true">{"city": 1}'
        '</｜DSML｜parameter><｜DSML｜parameter name="days" string="false">3</｜DSML｜parameter></｜DSML｜invoke></｜DSML｜tool_calls>',
        '‹weather #1 {"input": {"city": 1}, "days": 3}›',
    ),
    "no section": Case(
        "deepseek_v4",
        'Hi<｜DSML｜invoke name="weather"><｜DSML｜parameter name="days" string="false">3</｜DSML｜parameter></｜DSML｜invoke>',
        'Hi‹weather #1 {"days": 3}›',
    ),
    "null for a text": Case(
        "deepseek_v4",
        '<｜DSML｜tool_calls><｜DSML｜invoke name="weather"><｜DSML｜parameter name="city" string="false">null'
        "</｜DSML｜parameter></｜DSML｜invoke></｜DSML｜tool_calls>",
        '‹weather #1 {"city": "null"}›',
    ),
}

CASES = {**ELEMENTS, **FAMILIES, **LOOSE}
ALL = (*TOOLS, ROUTE)


@pytest.mark.parametrize("case", CASES.values(), ids=CASES)
def test_a_call_is_read(case: Case) -> None:
    assert show(read(case.format, [case.text], tools=ALL)) == case.expected


@pytest.mark.parametrize("case", CASES.values(), ids=CASES)
def test_no_cut_changes_what_is_read(case: Case) -> None:
    whole = read(case.format, [case.text], tools=ALL)
    for pieces in cuts(case.text):
        assert read(case.format, pieces, tools=ALL) == whole, pieces


def test_a_type_in_python_s_words_is_understood() -> None:
    tool = Tool(name="clock", schema={"properties": {"at": {"type": "float"}}})
    text = "<tool_call><function=clock><parameter=at>\n1.5\n</parameter></function></tool_call>"
    assert show(read("qwen3_coder", [text], tools=[tool])) == '‹clock #1 {"at": 1.5}›'


def test_brackets_that_are_passed_over_begin_no_call(monkeypatch: pytest.MonkeyPatch) -> None:
    parts = (
        "[",
        "]",
        "(",
        ")",
        " ",
        "\n",
        "weather",
        "clock",
        "f",
        "_",
        ".",
        "-",
        "1",
        "²",
        "é",
        ",",
        "=",
        "'",
        "`",
        "city='Paris'",
        "x" * 250,
    )
    chance, calls = random.Random(seed()), 0
    texts = ["".join(chance.choices(parts, k=chance.randint(1, 12))) for _ in range(1_500)]
    texts += [f"{text}[clock(){end}" for text in texts[:300] for end in ("]", ")", "")]
    passed = [read("llama4_pythonic", splits, hold=256) for text in texts for splits in ([text], list(text))]
    monkeypatch.setattr(reader, "_NO_LIST_OF_CALLS", re.compile("(?!)"))
    for place, text in enumerate(texts):
        found = read("llama4_pythonic", [text], hold=256)
        assert passed[2 * place] == passed[2 * place + 1] == found, text
        calls += any(isinstance(one, CallStart) for one in found)
    assert calls
