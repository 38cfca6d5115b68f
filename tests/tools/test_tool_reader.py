"""What the reader makes of texts, format by format, and that no cut changes it.

An expectation is the text with each call as ‹name id arguments›: #1, #2 … are ids the caller made. † is a note, and †…† one that holds text
which stands nowhere else.
"""

from __future__ import annotations

from typing import NamedTuple

import pytest

from tools.support import cuts, read, show

pytestmark = pytest.mark.each_python


class Case(NamedTuple):
    format: str
    text: str
    expected: str


ARGUMENTS = '{"city": "Paris", "days": 3}'
CALL = f"‹weather #1 {ARGUMENTS}›"
BOTH = f"{CALL}‹clock #2 {{}}›"
JSON = f'{{"name": "weather", "arguments": {ARGUMENTS}}}'
JSON_CLOCK = '{"name": "clock", "arguments": {}}'
TAGS = "<function=weather>\n<parameter=city>\nParis\n</parameter>\n<parameter=days>\n3\n</parameter>\n</function>"

FAMILIES = {
    "hermes": Case(
        "hermes",
        f"Look:\n<tool_call>\n{JSON}\n</tool_call>\n<tool_call>\n{JSON_CLOCK}\n</tool_call>!",
        f"Look:\n{BOTH}!",
    ),
    "qwen": Case("qwen", f"<tool_call>\n{JSON}\n</tool_call>", CALL),
    "qwen, in tags": Case("qwen", f"<tool_call>\n{TAGS}\n</tool_call>", CALL),
    "qwen3_coder": Case(
        "qwen3_coder",
        f"Hi\n<tool_call>\n{TAGS}\n</tool_call>\n<tool_call>\n<function=clock>\n</function>\n</tool_call>\n",
        f"Hi\n{BOTH}\n",
    ),
    "qwen3_coder, two in one tag": Case(
        "qwen3_coder", f"<tool_call>{TAGS}<function=clock></function></tool_call>", BOTH
    ),
    "qwen3_coder without its tag": Case("qwen3_coder", f"{TAGS}</tool_call> done", f"{CALL} done"),
    "qwen3_coder in JSON": Case("qwen3_coder", f"<tool_call>{JSON}</tool_call>", CALL),
    "seed_oss": Case("seed_oss", f"<seed:tool_call>\n{TAGS}\n</seed:tool_call>", CALL),
    "glm45": Case(
        "glm45",
        "Hi<tool_call>weather\n<arg_key>city</arg_key>\n<arg_value>Paris</arg_value>\n<arg_key>days</arg_key>\n"
        "<arg_value>3</arg_value>\n</tool_call>\n<tool_call>clock\n</tool_call>",
        f"Hi{BOTH}",
    ),
    "glm47": Case(
        "glm47",
        "<tool_call>weather<arg_key>city</arg_key><arg_value>Paris</arg_value><arg_key>days</arg_key>"
        "<arg_value>3</arg_value></tool_call><tool_call>clock</tool_call>",
        BOTH,
    ),
    "minimax_m2": Case(
        "minimax_m2",
        '<minimax:tool_call>\n<invoke name="weather">\n<parameter name="city">Paris</parameter>\n'
        '<parameter name="days">3</parameter>\n</invoke>\n<invoke name="clock">\n</invoke>\n</minimax:tool_call>',
        BOTH,
    ),
    "minimax_m1": Case("minimax", f"<tool_calls>\n{JSON}\n{JSON_CLOCK}\n</tool_calls>", BOTH),
    "deepseek_v3": Case(
        "deepseek_v3",
        "Hi<｜tool▁calls▁begin｜><｜tool▁call▁begin｜>function<｜tool▁sep｜>weather\n```json\n"
        f"{ARGUMENTS}\n```<｜tool▁call▁end｜>\n<｜tool▁call▁begin｜>function<｜tool▁sep｜>clock\n```json\n{{}}\n```"
        "<｜tool▁call▁end｜><｜tool▁calls▁end｜>",
        f"Hi{BOTH}",
    ),
    "deepseek_v31": Case(
        "deepseek_v31",
        f"<｜tool▁calls▁begin｜><｜tool▁call▁begin｜>weather<｜tool▁sep｜>{ARGUMENTS}<｜tool▁call▁end｜>"
        "<｜tool▁call▁begin｜>clock<｜tool▁sep｜>{}<｜tool▁call▁end｜><｜tool▁calls▁end｜>",
        BOTH,
    ),
    "deepseek_v32": Case(
        "deepseek_v32",
        '<｜DSML｜function_calls>\n<｜DSML｜invoke name="weather">\n<｜DSML｜parameter name="city" string="true">Paris'
        '</｜DSML｜parameter>\n<｜DSML｜parameter name="days" string="false">3</｜DSML｜parameter>\n</｜DSML｜invoke>\n'
        '<｜DSML｜invoke name="clock">\n</｜DSML｜invoke>\n</｜DSML｜function_calls>',
        BOTH,
    ),
    "deepseek_v32 in JSON": Case(
        "deepseekv32",
        f'<｜DSML｜function_calls><｜DSML｜invoke name="weather">\n{ARGUMENTS}\n</｜DSML｜invoke></｜DSML｜function_calls>',
        CALL,
    ),
    "deepseek_v32 without bars": Case(
        "deepseek_v32",
        '<function_calls><invoke name="weather"><parameter name="city" string="true">Paris</parameter>'
        '<parameter name="days" string="false">3</parameter></invoke></function_calls>',
        CALL,
    ),
    "deepseek_v4": Case(
        "deepseek_v4",
        '<｜DSML｜tool_calls>\n<｜DSML｜invoke name="weather">\n<｜DSML｜parameter name="city" string="true">Paris'
        '</｜DSML｜parameter>\n<｜DSML｜parameter name="days" string="false">3</｜DSML｜parameter>\n</｜DSML｜invoke>\n'
        "</｜DSML｜tool_calls>",
        CALL,
    ),
    "deepseek_v41": Case(
        "deepseek_v41",
        'Hi\n\n<｜DSML｜ calls>\n<｜DSML｜ invoke name="weather">\n<｜DSML｜ parameter name="city" string="true">Paris'
        '</｜DSML｜ parameter>\n<｜DSML｜ parameter name="days" string="false">3</｜DSML｜ parameter>\n</｜DSML｜ invoke>\n'
        "</｜DSML｜ calls>",
        f"Hi\n\n{CALL}",
    ),
    "kimi_k2": Case(
        "kimi_k2",
        f"Hi<|tool_calls_section_begin|><|tool_call_begin|>functions.weather:0<|tool_call_argument_begin|>{ARGUMENTS}"
        "<|tool_call_end|><|tool_call_begin|>functions.clock:1<|tool_call_argument_begin|>{}<|tool_call_end|>"
        "<|tool_calls_section_end|>",
        f"Hi‹weather functions.weather:0 {ARGUMENTS}›‹clock functions.clock:1 {{}}›",
    ),
    "kimi_k2 without a section": Case(
        "kimi_k2",
        f"<|tool_call_begin|>functions.weather:0<|tool_call_argument_begin|>{ARGUMENTS}<|tool_call_end|>",
        f"‹weather functions.weather:0 {ARGUMENTS}›",
    ),
    "kimi_k3": Case(
        "kimi_k3",
        '<|open|>tools<|sep|><|open|>call tool="weather" index="1"<|sep|><|open|>argument key="city" type="string"'
        '<|sep|>Paris<|close|>argument<|sep|><|open|>argument key="days" type="number"<|sep|>3<|close|>argument<|sep|>'
        '<|close|>call<|sep|><|open|>call tool="clock"<|sep|><|close|>call<|sep|><|close|>tools<|sep|>',
        BOTH,
    ),
    "kimi_k3 in JSON": Case(
        "kimi_k3",
        '<|open|>tools<|sep|><|open|>call tool="weather" index="1"<|sep|><|open|>json type="object"<|sep|>'
        f"{ARGUMENTS}<|close|>json<|sep|><|close|>call<|sep|><|close|>tools<|sep|>",
        CALL,
    ),
    "mistral, before version 11": Case("mistral", f"[TOOL_CALLS] [{JSON}, {JSON_CLOCK}]", BOTH),
    "mistral": Case("mistral", f"Hi[TOOL_CALLS]weather[ARGS]{ARGUMENTS}[TOOL_CALLS]clock[ARGS]{{}}", f"Hi{BOTH}"),
    "mistral with ids": Case(
        "mistral", f"[TOOL_CALLS]weather[CALL_ID]VvvODy9mT[ARGS]{ARGUMENTS}", f"‹weather VvvODy9mT {ARGUMENTS}›"
    ),
    "mistral without marks": Case("mistral", f"[TOOL_CALLS]weather{ARGUMENTS}\nDone", f"{CALL}\nDone"),
    "harmony": Case(
        "harmony",
        f"<|channel|>commentary to=functions.weather <|constrain|>json<|message|>{ARGUMENTS}<|call|>"
        "<|start|>assistant<|channel|>commentary to=functions.clock <|constrain|>json<|message|>{}<|call|>",
        BOTH,
    ),
    "harmony, to the role": Case(
        "gpt-oss",
        f"<|start|>assistant to=functions.weather<|channel|>commentary json<|message|>{ARGUMENTS}",
        CALL,
    ),
    "harmony, continued": Case(
        "gpt-oss", f" to=functions.weather<|channel|>commentary <|constrain|>json<|message|>{ARGUMENTS}<|call|>", CALL
    ),
    "harmony, a built-in tool": Case(
        "gpt-oss",
        "<|channel|>analysis to=python code<|message|>1+1<|call|>",
        "‹python #1 †1+1†›",
    ),
    "llama3_json": Case(
        "llama3_json",
        f'{{"name": "weather", "parameters": {ARGUMENTS}}}; {{"name": "clock", "parameters": {{}}}}',
        BOTH,
    ),
    "llama3_json with its tag": Case(
        "llama3_json",
        f'Hi <|python_tag|>{{"type": "function", "name": "weather", "parameters": {ARGUMENTS}}}',
        f"Hi {CALL}",
    ),
    "llama3_json, custom": Case("llama3_json", f"<function=weather>{ARGUMENTS}</function>", CALL),
    "llama4_pythonic": Case("llama4_pythonic", "[weather(city='Paris', days=3), clock()]", BOTH),
    "llama4_pythonic with its tags": Case(
        "llama4_pythonic", 'Hi<|python_start|>[weather(city="Paris", days=3)]<|python_end|>Bye', f"Hi{CALL}Bye"
    ),
    "lfm2": Case("lfm2", '<|tool_call_start|>[weather(city="Paris", days=3), clock()]<|tool_call_end|>Hi', f"{BOTH}Hi"),
    "olmo3": Case("olmo3", '<function_calls>weather(city="Paris", days=3)\nclock()</function_calls>', BOTH),
    "granite3": Case("granite3", f"<|tool_call|>[{JSON}, {JSON_CLOCK}]", BOTH),
    "granite_20b_fc": Case("granite_20b_fc", f"<function_call> {JSON}<function_call> {JSON_CLOCK}", BOTH),
    "cohere": Case(
        "cohere",
        '<|START_ACTION|>[\n    {"tool_call_id": "0", "tool_name": "weather", "parameters": '
        f'{ARGUMENTS}}},\n    {{"tool_call_id": "1", "tool_name": "clock", "parameters": {{}}}}\n]<|END_ACTION|>',
        f"‹weather 0 {ARGUMENTS}›‹clock 1 {{}}›",
    ),
    "hunyuan_a13b": Case("hunyuan_a13b", f"<tool_calls>[{JSON}]</tool_calls>", CALL),
    "jamba": Case("jamba", f"<tool_calls>[{JSON}]</tool_calls>", CALL),
    "internlm": Case("internlm", f"Hi<|action_start|> <|plugin|>\n{JSON}<|action_end|>\n", f"Hi{CALL}\n"),
    "gigachat3": Case("gigachat3", f"<|function_call|>{JSON}", CALL),
    "longcat": Case("longcat", f"<longcat_tool_call>{JSON}</longcat_tool_call>", CALL),
    "nemotron_json": Case("nemotron_json", f"<TOOLCALL>[{JSON}, {JSON_CLOCK}]</TOOLCALL>", BOTH),
    "phi4_mini": Case("phi4_mini", f"functools[{JSON}]", CALL),
    "inkling": Case(
        "inkling", f'<|content_invoke_tool_json|>{{"name": "weather", "args": {ARGUMENTS}}}<|end_message|>', CALL
    ),
    "inkling with its header": Case(
        "inkling",
        f'Hi<|message_model|>weather<|content_invoke_tool_json|>{{"name": "weather", "args": {ARGUMENTS}}}<|end_message|>',
        f"Hi{CALL}",
    ),
    "apertus": Case(
        "apertus", f'<|tools_prefix|>[{{"weather": {ARGUMENTS}}}, {{"clock": {{}}}}]<|tools_suffix|>', BOTH
    ),
    "plamo3": Case(
        "plamo3",
        "<|plamo:begin_tool_requests:plamo|><|plamo:begin_tool_request:plamo|><|plamo:begin_tool_name:plamo|>weather"
        f"<|plamo:end_tool_name:plamo|><|plamo:begin_tool_arguments:plamo|>{ARGUMENTS}<|plamo:end_tool_arguments:plamo|>"
        "<|plamo:end_tool_request:plamo|><|plamo:end_tool_requests:plamo|>",
        CALL,
    ),
    "hy_v3": Case(
        "hy_v3",
        "<tool_calls>\n<tool_call>weather<tool_sep>\n<arg_key>city</arg_key>\n<arg_value>Paris</arg_value>\n"
        "<arg_key>days</arg_key>\n<arg_value>3</arg_value>\n</tool_call>\n<tool_call>clock<tool_sep></tool_call>\n</tool_calls>",
        BOTH,
    ),
    "hy_v3 with its suffix": Case(
        "hy_v3",
        "<tool_calls:opensource><tool_call:opensource>weather<tool_sep:opensource><arg_key:opensource>city"
        "</arg_key:opensource><arg_value:opensource>Paris</arg_value:opensource></tool_call:opensource>"
        "</tool_calls:opensource>",
        '‹weather #1 {"city": "Paris"}›',
    ),
    "k2_horizon": Case(
        "k2_horizon",
        "<ifm|tool_calls>\n<ifm|tool_call>weather\n<ifm|arg_key>city</ifm|arg_key><ifm|arg_type>string</ifm|arg_type>"
        "<ifm|arg_value>Paris</ifm|arg_value><ifm|arg_key>days</ifm|arg_key><ifm|arg_value>3</ifm|arg_value>"
        "</ifm|tool_call></ifm|tool_calls>",
        CALL,
    ),
    "step3": Case(
        "step3",
        '<｜tool_calls_begin｜>\n<｜tool_call_begin｜>function<｜tool_sep｜><steptml:invoke name="weather">\n'
        '<steptml:parameter name="city">Paris</steptml:parameter>\n<steptml:parameter name="days">3</steptml:parameter>\n'
        "</steptml:invoke><｜tool_call_end｜>\n<｜tool_calls_end｜>",
        CALL,
    ),
    "minicpm5": Case(
        "minicpm5",
        '<function name="weather"><param name="city">Paris</param><param name="days">3</param></function>'
        '<function name="clock"></function>',
        BOTH,
    ),
    "gemma4": Case(
        "gemma4",
        'Hi<|tool_call>call:weather{city:<|"|>Paris<|"|>,days:3}<tool_call|><|tool_call>call:clock{}<tool_call|>',
        f"Hi{BOTH}",
    ),
    "functiongemma": Case(
        "functiongemma", "<start_function_call>call:weather{city:<escape>Paris<escape>,days:3}<end_function_call>", CALL
    ),
    "json": Case("json", JSON, CALL),
    "json, a list": Case("json", f"\n[{JSON}, {JSON_CLOCK}]\n", f"\n{BOTH}\n"),
    "json, fenced": Case("json", f"```json\n{JSON}\n```\n", f"{CALL}\n"),
    "json as OpenAI writes it": Case(
        "json", f'{{"id": "c7", "type": "function", "function": {JSON}}}', f"‹weather c7 {ARGUMENTS}›"
    ),
}

JSON_CALLS = {
    "the arguments first": Case(
        "hermes", f'<tool_call>{{"arguments": {ARGUMENTS}, "name": "weather"}}</tool_call>', CALL
    ),
    "no arguments": Case("hermes", '<tool_call>{"name": "clock"}</tool_call>', "‹clock #1 {}›"),
    "null arguments": Case("hermes", '<tool_call>{"name": "clock", "arguments": null}</tool_call>', "‹clock #1 {}›"),
    "arguments in a string": Case(
        "hermes",
        r'<tool_call>{"name": "weather", "arguments": "{\"city\": \"Par\u00eds\"}"}</tool_call>',
        '‹weather #1 {"city": "París"}›',
    ),
    "markers in an argument": Case(
        "hermes",
        '<tool_call>{"name": "weather", "arguments": {"city": "</tool_call><tool_call>"}}</tool_call>!',
        '‹weather #1 {"city": "</tool_call><tool_call>"}›!',
    ),
    "brackets and quotes in an argument": Case(
        "hermes",
        r'<tool_call>{"name": "weather", "arguments": {"city": "}]\"{[\\"}}</tool_call>',
        r'‹weather #1 {"city": "}]\"{[\\"}›',
    ),
    "an id before the arguments": Case(
        "hermes", '<tool_call>{"id": 7, "name": "clock", "arguments": {}}</tool_call>', "‹clock 7 {}›"
    ),
    "a member that means nothing": Case(
        "hermes", '<tool_call>{"name": "clock", "arguments": {}, "why": [1]}</tool_call>', '‹clock #1 {}†"why": [1]†›'
    ),
    "two in one tag": Case("hermes", f"<tool_call>{JSON}\n{JSON_CLOCK}</tool_call>", BOTH),
    "a list in one tag": Case("hermes", f"<tool_call>[{JSON}, {JSON_CLOCK}]</tool_call>", BOTH),
    "no end": Case("hermes", f"<tool_call>{JSON}", CALL),
    "no end before the next": Case("hermes", f"<tool_call>{JSON}\n<tool_call>{JSON_CLOCK}</tool_call>", BOTH),
    "a tool nobody declared": Case(
        "hermes", '<tool_call>{"name": "magic", "arguments": {}}</tool_call>', "‹magic #1 †{}›"
    ),
    "white space of a call is nobody's": Case("hermes", f"a <tool_call> {JSON} </tool_call> b", f"a {CALL} b"),
}

PARAMETERS = {
    "types": Case(
        "glm45",
        "<tool_call>weather"
        + "".join(
            f"<arg_key>{key}</arg_key><arg_value>{value}</arg_value>"
            for key, value in {
                "days": " 3 ",
                "exact": "True",
                "spots": "['a', 1]",
                "note": "null",
                "near": '{"x": 1.50}',
                "unit": "c",
                "other": "7",
            }.items()
        )
        + "</tool_call>",
        '‹weather #1 {"days": 3, "exact": true, "spots": ["a", 1], "note": null, "near": {"x": 1.50}, "unit": "c", "other": "7"}›',
    ),
    "a value of the wrong type": Case(
        "glm45",
        "<tool_call>weather<arg_key>days</arg_key><arg_value>many</arg_value></tool_call>",
        '‹weather #1 {"days": †many†"many"}›',
    ),
    "text with marks of JSON": Case(
        "qwen3_coder",
        '<tool_call><function=weather><parameter=city>\n\n"a"\\\n\tb\n\n</parameter></function></tool_call>',
        r'‹weather #1 {"city": "\n\"a\"\\\n\tb\n"}›',
    ),
    "an empty value": Case(
        "qwen3_coder",
        "<tool_call><function=weather><parameter=city></parameter></function></tool_call>",
        '‹weather #1 {"city": ""}›',
    ),
    "other tags in a value": Case(
        "qwen3_coder",
        "<tool_call><function=weather><parameter=city></function></tool_call><p></parameter></function></tool_call>",
        '‹weather #1 {"city": "</function></tool_call><p>"}›',
    ),
    "something between parameters": Case(
        "qwen3_coder",
        "<tool_call><function=weather>so<parameter=city>x</parameter></function></tool_call>",
        "<tool_call><function=weather>†so<parameter=city>x</parameter></function></tool_call>",
    ),
    "something after a parameter": Case(
        "qwen3_coder",
        "<tool_call><function=weather><parameter=city>x</parameter>so<parameter=unit>c</parameter></function></tool_call>",
        '‹weather #1 {"city": "x"†so†, "unit": "c"}›',
    ),
    "no end of the function": Case(
        "qwen3_coder",
        "<tool_call><function=weather><parameter=city>x</parameter></tool_call>!",
        '‹weather #1 {"city": "x"}›!',
    ),
}

NOTATION = {
    "values": Case(
        "lfm2",
        "<|tool_call_start|>[weather(city='it\\'s \\u00e9 \"x\"\\n', days=-1_000, exact=True, note=None, "
        "spots=[1.5, .5, 0x10, (1, 2,), {'k': 'v', 2: []}])]<|tool_call_end|>",
        '‹weather #1 {"city": "it\'s é \\"x\\"\\n", "days": -1000, "exact": true, "note": null, '
        '"spots": [1.5, 0.5, 16, [1, 2], {"k": "v", "2": []}]}›',
    ),
    "three quotes": Case(
        "lfm2",
        '<|tool_call_start|>[f(a="""x "y" z""", b="")]<|tool_call_end|>',
        '‹f #1 †{"a": "x \\"y\\" z", "b": ""}›',
    ),
    "a pair of surrogates": Case(
        "lfm2", r"<|tool_call_start|>[clock(a='\ud83d\ude00')]<|tool_call_end|>", r'‹clock #1 {"a": "\ud83d\ude00"}›'
    ),
    "a position argument": Case(
        "lfm2", "<|tool_call_start|>[clock(1)]<|tool_call_end|>", "<|tool_call_start|>[clock(1†)]<|tool_call_end|>"
    ),
    "an expression": Case("lfm2", "<|tool_call_start|>[clock(a=1+x)]<|tool_call_end|>!", '‹clock #1 {"a": 1+x)]›†!'),
    "gemma": Case(
        "gemma4",
        '<|tool_call>call:weather{city:<|"|>a,"b":{}<|"|>,spots:[true,{k:null}],unit:c}<tool_call|>',
        '‹weather #1 {"city": "a,\\"b\\":{}", "spots": [true, {"k": null}], "unit": "c"}›',
    ),
}

TEXT = {
    "no call": Case("hermes", "Nothing <b>here</b>.", "Nothing <b>here</b>."),
    "nothing": Case("hermes", "", ""),
    "near misses": Case(
        "hermes", "<Tool_call> <tool_calls> < tool_call><tool_cal", "<Tool_call> <tool_calls> < tool_call><tool_cal"
    ),
    "the mismatch is looked at again": Case("hermes", f"<<tool_call>{JSON}</tool_call>", f"<{CALL}"),
    "an end without a beginning": Case("hermes", "a</tool_call>b", "a</tool_call>b"),
    "an opener and words": Case("hermes", "The <tool_call> tag", "The <tool_call> †tag"),
    "an opener alone that is a part of its call": Case(
        "deepseek_v3", "a<｜tool▁call▁begin｜>b", "a<†｜tool▁call▁begin｜>b"
    ),
    "an opener alone": Case("hermes", "a<tool_call>", "a<tool_call>†"),
    "an opener twice": Case("hermes", f"<tool_call><tool_call>{JSON}</tool_call>", f"<tool_call>†{CALL}"),
    "fenced": Case(
        "hermes",
        f"```\n<tool_call>{JSON}</tool_call>\n```\n<tool_call>{JSON}</tool_call>",
        f"```\n<tool_call>{JSON}</tool_call>\n```\n{CALL}",
    ),
    "JSON without a name": Case(
        "hermes", '<tool_call>{"arguments": {}}</tool_call>', '<tool_call>{"arguments": {}}†</tool_call>'
    ),
    "JSON that ends early": Case(
        "hermes", '<tool_call>{"name": "weather", "argu', '<tool_call>{"name": "weather", "argu†'
    ),
    "an empty list": Case("hermes", "<tool_call>[]</tool_call>", "<tool_call>[]†</tool_call>"),
    "arguments that are none": Case(
        "hermes",
        '<tool_call>{"name": "clock", "arguments": 7}</tool_call>',
        '<tool_call>{"name": "clock", "arguments": †7}</tool_call>',
    ),
    "a JSON answer": Case("llama3_json", '{"name": "Bob", "age": 3}', '{"name": "Bob", "age": 3}'),
    "a JSON answer like a call": Case(
        "llama3_json", '{"name": "Bob", "parameters": {}}', '{"name": "Bob", "parameters": {}}'
    ),
    "a quoted JSON call": Case("llama3_json", f"Like `{JSON}`?", f"Like `{JSON}`?"),
    "a JSON answer after words": Case("llama3_json", 'Hi {"name": "Bob"}', 'Hi {"name": "Bob"}'),
    "a list answer": Case("llama4_pythonic", "[1, 2]", "[1, 2]"),
    "a link": Case("llama4_pythonic", "[weather](http://x)", "[weather](http://x)"),
    "code after the tag": Case("llama3_json", "<|python_tag|>print(1)", "<|python_tag|>†print(1)"),
    "a message of harmony": Case(
        "harmony", "<|channel|>commentary<|message|>Hi<|end|>", "<|channel|>commentary<|message|>Hi<|end|>"
    ),
    "words after the marker": Case("mistral", "[TOOL_CALLS]Hello world", "[TOOL_CALLS]Hello †world"),
    "words after a call": Case("mistral", "[TOOL_CALLS]clock{} [sic]", "‹clock #1 {}› [sic]"),
    "words that look like glm": Case(
        "glm45", "<tool_call>some words</tool_call>", "<tool_call>some †words</tool_call>"
    ),
}

BROKEN = {
    "a member after the arguments that is no JSON": Case(
        "hermes",
        '<tool_call>{"name": "clock", "arguments": {}, "x": oops}</tool_call>!',
        '‹clock #1 {}†, "x": oops†›††}†!',
    ),
    "a parameter without its bracket": Case(
        "qwen3_coder",
        "<tool_call><function=weather><parameter=city>x</parameter><parameter=unit</parameter></function></tool_call>",
        '‹weather #1 {"city": "x"†<parameter=unit†›††</parameter></function>†',
    ),
    "a second keyword without a value": Case(
        "lfm2", "<|tool_call_start|>[clock(a=1, b)]<|tool_call_end|>!", '‹clock #1 {"a": 1b)]›†!'
    ),
    "one brace too many": Case("hermes", f"<tool_call>{JSON}}}</tool_call>!", f"{CALL}†}}†!"),
    "one brace too few": Case("hermes", f"<tool_call>{JSON[:-1]}</tool_call>!", f"{CALL}†!"),
    "arguments without end": Case(
        "hermes", '<tool_call>{"name": "clock", "arguments": {"a": 1</tool_call>!', '‹clock #1 {"a": 1›†!'
    ),
    "a comma too many": Case(
        "hermes", '<tool_call>{"name": "clock", "arguments": {"a": 1,}}</tool_call>!', '‹clock #1 {"a": 1,}†›!'
    ),
    "single quotes": Case(
        "hermes", '<tool_call>{"name": "clock", "arguments": {\'a\': 1}}</tool_call>!', "‹clock #1 {'a': 1}†›!"
    ),
    "brackets that do not match": Case(
        "hermes", '<tool_call>{"name": "clock", "arguments": {"a": [1}}</tool_call>!', '‹clock #1 {"a": [1}}›†!'
    ),
    "a line break in a string": Case(
        "hermes", '<tool_call>{"name": "clock", "arguments": {"a": "x\ny"}}</tool_call>!', '‹clock #1 {"a": "x\ny"}†›!'
    ),
    "a string that is no object": Case(
        "hermes", '<tool_call>{"name": "clock", "arguments": "now"}</tool_call>!', "‹clock #1 now†›!"
    ),
    "the reply ends in a string": Case(
        "hermes", '<tool_call>{"name": "clock", "arguments": {"a": "x', '‹clock #1 {"a": "x›†'
    ),
    "the reply ends in a value": Case(
        "qwen3_coder", "<tool_call><function=weather><parameter=city>Par\n", '‹weather #1 {"city": "Par\\n›†'
    ),
    "the reply ends in a typed value": Case(
        "qwen3_coder", "<tool_call><function=weather><parameter=days>1", '‹weather #1 {"days": 1›†'
    ),
    "the reply ends between parameters": Case(
        "qwen3_coder", "<tool_call><function=weather><parameter=city>x</parameter>", '‹weather #1 {"city": "x"›†'
    ),
    "something after the call": Case("hermes", f"<tool_call>{JSON} so</tool_call>!", f"{CALL}† so†!"),
    "something after the call, and no end": Case("hermes", f"<tool_call>{JSON} so it goes", f"{CALL} so it goes†"),
    "a second call that is none": Case(
        "hermes", f"<tool_call>{JSON}</tool_call><tool_call>no</tool_call>", f"{CALL}<tool_call>†no</tool_call>"
    ),
    "a list that breaks": Case(
        "hermes", f'<tool_call>[{JSON}, {{"n": 1}}]</tool_call>', f'{CALL}, {{"n": 1}}†]</tool_call>'
    ),
}

CASES = {**FAMILIES, **JSON_CALLS, **PARAMETERS, **NOTATION, **TEXT, **BROKEN}


@pytest.mark.parametrize("case", CASES.values(), ids=CASES.keys())
def test_a_text_is_read_as_its_format_says(case: Case) -> None:
    assert show(read(case.format, [case.text])) == case.expected


@pytest.mark.parametrize("case", CASES.values(), ids=CASES.keys())
def test_no_cut_changes_what_is_read(case: Case) -> None:
    whole = read(case.format, [case.text])
    for pieces in cuts(case.text):
        assert read(case.format, pieces) == whole, pieces
