"""A call in the text of a reply that broke off: no end of it, and no word of its arguments that the model did not say."""

from __future__ import annotations

import pytest

from bardo.tools.formats import find_tool_call_format
from bardo.tools.stage import InlineToolCalls
from bardo.values.errors import BrokenStream
from bardo.values.events import ContentChunk, Degraded, Event, Failed, Finish, ToolCallChunk, ToolCallEnd, ToolCallStart

WHOLE = {
    "hermes": '<tool_call>\n{"name": "read", "arguments": {"path": "/etc/passwd"}}\n</tool_call>',
    "qwen3_coder": "<tool_call>\n<function=read>\n<parameter=path>\n/etc/passwd\n</parameter>\n</function>\n</tool_call>",
}
ENDS: dict[str, Event] = {
    "a failure": Failed(BrokenStream("gone")),
    "its length": Finish("length"),
    "a filter": Finish("refusal"),
    "an error": Finish("error"),
}


def read(format_name: str, text: str, end: Event) -> list[Event]:
    stage = InlineToolCalls(find_tool_call_format(format_name), make_id=lambda: "c")
    events = [event for event in (ContentChunk(0, text), end) for event in stage.feed(event)]
    return [*events, *stage.finish()]


@pytest.mark.parametrize("end", ENDS.values(), ids=ENDS)
@pytest.mark.parametrize("format_name", WHOLE)
def test_no_cut_of_a_call_in_text_ends_it_or_completes_its_arguments(format_name: str, end: Event) -> None:
    text = WHOLE[format_name]
    last = text.index("passwd") + 2
    for place in range(1, last):
        events = read(format_name, text[:place], end)
        assert not any(type(one) is ToolCallEnd for one in events), text[:place]
        arguments = "".join(one.arguments for one in events if type(one) is ToolCallChunk)
        assert not arguments.endswith("}"), arguments
        assert any(type(one) is Degraded for one in events) or not any(type(one) is ToolCallStart for one in events)
        assert events[-1] == end or type(events[-1]) is type(end)


@pytest.mark.parametrize("end", ENDS.values(), ids=ENDS)
@pytest.mark.parametrize("format_name", WHOLE)
def test_a_call_in_text_that_ended_before_the_break_is_complete(format_name: str, end: Event) -> None:
    events = read(format_name, WHOLE[format_name] + "\nand", end)
    assert sum(type(one) is ToolCallEnd for one in events) == 1
    assert not any(type(one) is Degraded and one.degradation.sent == "an incomplete call" for one in events)


@pytest.mark.parametrize("format_name", WHOLE)
def test_a_reply_that_ends_by_itself_inside_a_call_in_text_is_repaired(format_name: str) -> None:
    text = WHOLE[format_name].removesuffix("\n</tool_call>")
    assert sum(type(one) is ToolCallEnd for one in read(format_name, text, Finish("stop"))) == 1
