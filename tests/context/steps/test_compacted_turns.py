"""A compacted conversation is sent again as it was sent: what its provider has in its cache stays the beginning of each later turn."""

from __future__ import annotations

from hypothesis import given
from msgspec.structs import replace

from bardo.context.steps.compress import Compress
from bardo.context.steps.settings import CompressSettings
from bardo.values.request import Message, Request
from context.steps.histories import agent_history, histories, said, user
from support.layer_runs import ANSWERING, Memory, facts, run_layer

COMPRESS = Compress(
    CompressSettings(above_tokens=10**9, keep_turns=1, compact=("rules",), compact_above_tokens=500, summary_tokens=50)
)
FREE = facts(replace(ANSWERING, input_nanos=10**9, cache_read_nanos=0))


def turns(request: Request) -> list[Request]:
    """Return the requests by which a client sends a conversation, turn by turn."""
    ends = [place + 1 for place, one in enumerate(request.messages) if one.role == "user"]
    return [replace(request, messages=request.messages[:end]) for end in ends]


def test_what_the_user_said_before_a_summary_stays_when_the_user_says_more() -> None:
    agent, memory = agent_history(["long text of a file\n" * 500] * 6), Memory()
    first = run_layer(COMPRESS, agent, FREE, memory).request.messages
    assert len(first) < len(agent.messages)
    more = replace(agent, messages=(*agent.messages, said("They hold text."), user("And what else?")))
    later = run_layer(COMPRESS, more, FREE, memory).request.messages
    assert later[: len(first)] == first


@given(request=histories())
def test_a_compacted_beginning_is_changed_only_by_a_further_summary(request: Request) -> None:
    memory = Memory()
    sent: tuple[Message, ...] = ()
    summaries = 0
    for turn in turns(request):
        now = run_layer(COMPRESS, turn, FREE, memory)
        made = len(memory.get(("compaction", "s"), b""))
        if made == summaries:
            assert now.request.messages[: len(sent)] == sent
        sent, summaries = now.request.messages, made
