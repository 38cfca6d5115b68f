"""llama-server's `reasoning_format`, which a request may say (001 §7): it goes to the server, and the reply is read by it."""

from __future__ import annotations

import msgspec
import pytest

from bardo.catalog.load import builtin
from bardo.dialects import dialect
from bardo.planning.knowledge import Knowledge, TargetFacts, control_target, place_name
from bardo.planning.planner import plan
from bardo.planning.route import Provider, Target
from bardo.reasoning.control import know
from bardo.values.wire import Arrival


@pytest.mark.parametrize(
    ("asked", "held"),
    [({}, False), ({"reasoning_format": "deepseek"}, False), ({"reasoning_format": "none"}, True)],
    ids=["unsaid", "separated", "left in the text"],
)
def test_a_reply_is_looked_at_for_its_thinking_where_the_request_has_it_left_in_the_text(
    asked: dict[str, str], held: bool
) -> None:
    row = builtin().provider("llama-server")
    assert row is not None
    target = Target(provider=Provider(id="l", row=row, base_url="http://127.0.0.1:8080/v1"), model="deepseek-r1-8b")
    body = {"model": "m", "messages": [{"role": "user", "content": "?"}], "stream": True, **asked}
    request = dialect("openai_chat").decode_request(msgspec.json.encode(body), Arrival(model=target.model))
    facts = TargetFacts(known=know(control_target(target)), seen_start="separated", seen_start_off="separated")
    attempt = plan(request, target, knowledge=Knowledge(facts={place_name(target): facts}))
    assert msgspec.json.decode(attempt.wire.body).get("reasoning_format") == asked.get("reasoning_format")
    # By its text alone: a reply that closes a block which nobody saw opened began in it.
    assert attempt.formats.undecided is held
