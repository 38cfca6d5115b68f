"""State that bardo sealed for a client is opened before a provider gets it, also where the client speaks the provider's dialect."""

from __future__ import annotations

import msgspec
import pytest

from bardo.catalog.load import builtin
from bardo.dialects import dialect
from bardo.dialects.shared.states import seal
from bardo.planning.planner import plan
from bardo.planning.route import Provider, Target
from bardo.values.blocks import Opaque
from bardo.values.wire import Arrival

SECRET = "AfUoo+j+GmibAnl/LC5gGOGA7SorwljaGuKp6FM9"
STATE = (Opaque("id", "rs_1", "xai-responses-v1"), Opaque("encrypted", SECRET, "xai-responses-v1"))


@pytest.mark.parametrize("sealed", [True, False])
def test_a_ciphertext_that_was_sealed_reaches_its_provider_as_it_was(sealed: bool) -> None:
    row = builtin().provider("xai-responses")
    assert row is not None
    thought = {"type": "reasoning", "id": "rs_1", "summary": [{"type": "summary_text", "text": "Hm."}]}
    thought["encrypted_content"] = seal(STATE) if sealed else SECRET
    message = {"type": "message", "role": "assistant", "content": [{"type": "output_text", "text": "Yes."}]}
    asked = {"role": "user", "content": "Hello."}
    body = {"model": "grok-4.3", "store": False, "input": [asked, thought, message, asked]}
    request = dialect("openai_responses").decode_request(msgspec.json.encode(body), Arrival(model="grok-4.3"))
    target = Target(provider=Provider(id="xai", row=row, base_url="http://host/v1"), model="grok-4.3")
    sent = msgspec.json.decode(plan(request, target).wire.body)
    assert [item["encrypted_content"] for item in sent["input"] if item.get("type") == "reasoning"] == [SECRET]


def test_a_seal_that_holds_nothing_reaches_no_provider() -> None:
    row = builtin().provider("google")
    assert row is not None
    call = {"functionCall": {"id": "c", "name": "f", "args": {"x": 1}}, "thoughtSignature": seal(())}
    answer = {"functionResponse": {"id": "c", "name": "f", "response": {"output": "y"}}}
    turns = [("user", {"text": "Hello."}), ("model", call), ("user", answer)]
    body = {"contents": [{"role": role, "parts": [part]} for role, part in turns]}
    arrival = Arrival(model="gemini-2.5-flash")
    request = dialect("gemini").decode_request(msgspec.json.encode(body), arrival)
    target = Target(provider=Provider(id="google", row=row, base_url="http://host/v1beta"), model=arrival.model)
    [sent] = msgspec.json.decode(plan(request, target).wire.body)["contents"][1]["parts"]
    assert sent == {"functionCall": call["functionCall"]}
