"""What one provider sealed travels whole inside another dialect's field."""

from __future__ import annotations

import base64
import string

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from bardo.dialects.shared.states import seal, unseal
from bardo.values.blocks import Opaque

states = st.lists(
    st.builds(Opaque, st.sampled_from(["signature", "encrypted", "redacted", "id"]), st.text(), st.text()), max_size=4
).map(tuple)


@given(states)
def test_what_is_sealed_comes_back(given_states: tuple[Opaque, ...]) -> None:
    assert unseal(seal(given_states)) == given_states


@given(states)
def test_a_seal_is_base64_which_some_fields_demand(given_states: tuple[Opaque, ...]) -> None:
    sealed = seal(given_states)
    assert base64.b64encode(base64.b64decode(sealed, validate=True)).decode() == sealed


@given(st.text() | st.text(string.ascii_letters + string.digits + "+/=", min_size=20))
@example("EqQBCkYIBxgCKkDR")
@example("")
def test_a_providers_own_state_is_never_taken_for_a_seal(text: str) -> None:
    assert unseal(text) is None


SEALED = seal([Opaque("signature", "abc", "anthropic-claude-v1")])
HEAD = seal([])[:8]


@pytest.mark.parametrize(
    "damaged",
    {
        "cut": SEALED[:-5],
        "its beginning alone": HEAD,
        "letters that are no base64": SEALED[:-4] + "思考思考",
        "bytes that are no text": base64.b64encode(b'bardo1::[{"kind":"id","data":"\xff"}]').decode(),
        "another content": base64.b64encode(b'bardo1::{"a":1}').decode(),
        "an unknown kind": base64.b64encode(b'bardo1::[{"kind":"x","data":""}]').decode(),
        "another version": base64.b64encode(b"bardo1;;[]").decode(),
        "nesting": base64.b64encode(b"bardo1::" + b"[" * 5000).decode(),
    }.values(),
)
def test_a_damaged_seal_counts_as_somebodys_own(damaged: str) -> None:
    assert damaged.startswith(HEAD)
    assert unseal(damaged) is None


@given(st.text(max_size=60))
def test_no_text_after_its_beginning_breaks_the_reading(text: str) -> None:
    assert unseal(HEAD + text) is None or isinstance(unseal(HEAD + text), tuple)
