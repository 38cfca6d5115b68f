"""Which of several keys a call uses: warm ones stay, new conversations go to the least used, resting ones are passed over."""

from __future__ import annotations

from collections import Counter

from hypothesis import given
from hypothesis import strategies as st

from bardo.routing.circuit import AttemptOutcome
from bardo.routing.key_rests import WARM_SECONDS, KeyRests, KeyRotation, Rest

LABELS = ("A", "B", "C")


class Keys:
    """Three keys of one provider."""

    def __init__(self) -> None:
        self.rests = KeyRests()
        self.rests.register("p", LABELS)
        self.rotation = KeyRotation()

    def choose(self, conversation: str = "", now: float = 0.0, tried: tuple[str, ...] = (), model: str = "m") -> str:
        return self.rotation.choose(
            "p", model, LABELS, self.rests, now, conversation=conversation.encode(), tried=tried
        )

    def limit(self, key: str, seconds: float, now: float = 0.0, model: str = "m") -> None:
        self.rests.note("p", model, AttemptOutcome(error="rate_limited", rest_seconds=seconds, key=key), now)


def test_new_conversations_go_to_the_least_used_key() -> None:
    keys = Keys()
    counted = Counter(keys.choose(f"conversation {place}") for place in range(30))
    assert counted == {"A": 10, "B": 10, "C": 10}


def test_two_conversations_at_once_keep_their_keys() -> None:
    keys = Keys()
    first, second = keys.choose("first"), keys.choose("second")
    assert first != second
    for turn in range(10):
        assert keys.choose("first", 10.0 * turn) == first
        assert keys.choose("second", 10.0 * turn + 5) == second


def test_a_conversation_moves_when_its_key_must_wait_and_stays_there() -> None:
    keys = Keys()
    first = keys.choose("talk")
    keys.limit(first, 30.0)
    moved = keys.choose("talk", 1.0)
    assert moved != first
    assert keys.choose("talk", 40.0) == moved, "its prompt is cached with the other key by now"


def test_a_limit_at_one_model_lets_the_key_be_used_for_others() -> None:
    keys = Keys()
    keys.limit("A", 30.0)
    assert "A" not in {keys.choose() for _ in range(9)}
    assert "A" in {keys.choose(model="other") for _ in range(9)}


def test_a_conversation_that_is_no_longer_cached_may_go_anywhere() -> None:
    keys = Keys()
    first = keys.choose("talk")
    for place in range(8):
        keys.choose(f"other {place}", 1.0)
    assert keys.choose("talk", WARM_SECONDS - 1) == first
    keys.rotation._uses = {("p", first): 100.0}
    assert keys.choose("talk", 3 * WARM_SECONDS) != first


def test_where_all_keys_must_wait_the_first_to_come_back_is_used() -> None:
    keys = Keys()
    for key, seconds in zip(LABELS, (30.0, 10.0, 20.0), strict=True):
        keys.limit(key, seconds)
    assert keys.choose("talk") == "B"
    assert keys.choose("talk", tried=("B",)) == "C"
    rest = keys.rests.rest_of_all("p", "m", 0.0)
    assert rest is not None
    assert rest.until == 10.0
    assert keys.rests.rest_of_all("p", "m", 10.0) is None


def test_a_refused_key_is_passed_over_at_every_model() -> None:
    keys = Keys()
    keys.rests.note("p", "m", AttemptOutcome(error="key_refused", status=401, key="B"), 0.0)
    assert {keys.choose(model=f"m{place}") for place in range(9)} == {"A", "C"}
    assert keys.rests.rest_of_all("p", "m", 0.0) is None


def test_memory_of_conversations_is_bounded() -> None:
    keys = Keys()
    for place in range(50_000):
        keys.choose(f"conversation {place}", place / 1000)
    assert len(keys.rotation._warm) <= 20_000


@given(
    st.lists(
        st.tuples(st.sampled_from(["x", "y", "z", ""]), st.sampled_from(["none", "A", "B", "C"]), st.floats(-500, 500)),
        max_size=80,
    )
)
def test_a_key_that_must_wait_is_never_chosen_while_another_is_free(events: list[tuple[str, str, float]]) -> None:
    keys, now = Keys(), 1000.0
    for conversation, limited, passed in events:
        now += passed
        if limited != "none":
            keys.limit(limited, 60.0, now)
        chosen = keys.choose(conversation, now)
        free = [label for label in LABELS if keys.rests.rest("p", label, "m", now) is None]
        assert chosen in (free or LABELS)


def test_a_conversation_stays_with_its_key_for_as_long_as_prompts_are_kept_as_measured() -> None:
    keys = Keys()
    keys.rotation.measure_by(lambda provider, model: 3600.0)
    first = keys.choose("talk")
    other = keys.choose("another")
    keys.limit(first, 30.0, now=1.0)
    assert keys.choose("another", 2.0) == other
    keys.rotation.measure_by(lambda provider, model: 60.0)
    assert keys.choose("another", 3500.0) == other
    again = Counter(keys.choose("another", 3500.0 + 61.0 * place) for place in range(1, 7))
    assert len(again) > 1


def test_no_rate_limit_puts_a_key_to_rest_for_longer_than_an_hour() -> None:
    for asked in (3601.0, 86_400.0, 1e12):
        rests = KeyRests()
        rests.note("p", "m", AttemptOutcome(error="rate_limited", rest_seconds=asked, key="A"), 10.0)
        told = rests.rest("p", "A", "m", 10.0)
        assert told is not None
        assert told.until == 10.0 + 3600
        assert rests.rest("p", "A", "m", 10.0 + 3600) is None


def test_a_rest_that_another_gateway_tells_of_is_no_longer_either() -> None:
    rests = KeyRests()
    rests.rest_as_others("p", "A", "m", Rest(90_000.0, 100.0, "rate limit"), 0)
    told = rests.rest("p", "A", "m", 200.0)
    assert told is not None
    assert told.until == 3700.0
