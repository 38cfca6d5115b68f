"""What is known of the prompts that servers were sent: how much of the next one they probably have, within bounds of memory."""

from __future__ import annotations

from bardo.context.affinity import server_order as prompt_prefix
from bardo.context.affinity import warm_prefixes
from bardo.context.affinity.server_order import NO_PREFIX, PrefixReader, PromptPrefix
from bardo.context.affinity.warm_prefixes import Place, WarmPrefixes
from bardo.values.blocks import TextBlock
from bardo.values.request import Message, Request, Tool
from support.growth import check_growth

A: Place = ("pods at a", "m")
B: Place = ("pods at b", "m")
KIND: Place = ("pods", "m")


def request(system: str = "", *tools: str) -> Request:
    said = [Message("user", (TextBlock("Hello"),))]
    before = [Message("system", (TextBlock(system),))] if system else []
    return Request(model="m", messages=tuple(before + said), tools=tuple(Tool(name=one) for one in tools))


def sent(warm: WarmPrefixes, place: Place, session: str, tokens: int, cached: int, now: float, messages: int) -> None:
    warm.note(place, session, NO_PREFIX, now, tokens=tokens, cached=cached, messages=messages, kind=KIND)


def test_a_session_is_warm_where_it_was_sent_and_cools() -> None:
    warm = WarmPrefixes()
    sent(warm, A, "s", 4000, 0, 0.0, 2)
    assert warm.expected(A, "s", NO_PREFIX, 0.0, messages=4).session == 4000
    assert warm.expected(A, "s", NO_PREFIX, 300.0, messages=4).tokens == 2000
    assert warm.expected(B, "s", NO_PREFIX, 0.0, messages=4).tokens == 0
    assert warm.expected(A, "other", NO_PREFIX, 0.0, messages=4).tokens == 0


def test_servers_of_one_provider_are_learned_of_together() -> None:
    warm = WarmPrefixes()
    for turn in range(10):
        sent(warm, A, "s", 4000, 4000 if turn else 0, 900.0 * turn, 2 + turn)
    sent(warm, B, "t", 4000, 0, 0.0, 2)
    assert warm.expected(B, "t", NO_PREFIX, 900.0, messages=4, kind=KIND).tokens > 3500


def test_a_history_that_was_written_anew_is_not_expected() -> None:
    warm = WarmPrefixes()
    sent(warm, A, "s", 4000, 0, 0.0, 20)
    assert warm.expected(A, "s", NO_PREFIX, 1.0, messages=5).tokens == 0


def test_another_key_tells_nothing_of_the_pause() -> None:
    warm = WarmPrefixes()
    for place, key in enumerate(("one", "two", "one")):
        warm.note(A, "s", NO_PREFIX, 10.0 * place, tokens=4000, cached=0, messages=2 + place, key=key, kind=KIND)
    assert warm.survival(KIND).observations == 0


def test_what_sessions_share_does_not_make_a_pause_look_short() -> None:
    warm, prefix = WarmPrefixes(), PromptPrefix((1, 2), (1000, 2000))
    for place in range(20):
        name = f"s{place}"
        for now, cached in ((0.0, 0), (1000.0, 2000)):
            warm.note(A, name, prefix, now, tokens=6000, cached=cached, messages=2, kind=KIND)
    assert warm.survival(KIND).share(1000.0) < 0.1


def test_a_new_session_is_expected_to_find_the_beginning_that_others_had() -> None:
    warm, prefix = WarmPrefixes(), PromptPrefix((1, 2, 3), (500, 1000, 1500))
    warm.note(A, "s", prefix, 0.0, tokens=3000, cached=0, messages=2)
    longer = PromptPrefix((1, 2, 9, 10), (500, 1000, 1600, 2100))
    assert warm.expected(A, "new", prefix, 0.0, messages=2).tokens == 1500
    assert warm.expected(A, "new", longer, 0.0, messages=2).tokens == 1000
    assert warm.expected(B, "new", longer, 0.0, messages=2).tokens == 0


def test_calls_before_the_first_reply_are_expected_at_the_same_place_until_it_fails() -> None:
    warm = WarmPrefixes()
    warm.expect(A, "s", NO_PREFIX, 0.0, tokens=3000, messages=2)
    assert warm.expected(A, "s", NO_PREFIX, 0.0, messages=2).session == 3000
    warm.forget_session("s")
    assert warm.expected(A, "s", NO_PREFIX, 0.0, messages=2).session == 0
    warm.expect(A, "s", NO_PREFIX, 0.0, tokens=3000, messages=2)
    sent(warm, B, "s", 3100, 0, 1.0, 2)
    assert warm.expected(A, "s", NO_PREFIX, 1.0, messages=4).session == 0
    assert warm.expected(B, "s", NO_PREFIX, 1.0, messages=4).session == 3100


def test_what_was_sent_lately_counts_each_token_once() -> None:
    warm = WarmPrefixes()
    warm.expect(A, "s", NO_PREFIX, 0.0, tokens=3000, messages=2)
    warm.note(A, "s", NO_PREFIX, 0.0, tokens=3100, cached=0, messages=2, key="KEY_ONE")
    assert warm.placed_tokens(A, 0.0) == 3100
    warm.note(A, "s", NO_PREFIX, 0.0, tokens=3600, cached=3100, messages=4, key="KEY_ONE")
    assert warm.placed_tokens(A, 0.0) == 3600
    assert warm.placed_tokens(A, 300.0) == 1800


def test_a_server_that_was_gone_has_nothing() -> None:
    warm, prefix = WarmPrefixes(), PromptPrefix((1,), (500,))
    warm.note(A, "s", prefix, 0.0, tokens=3000, cached=0, messages=2)
    warm.forget_server(A[0], 1.0)
    assert warm.expected(A, "s", prefix, 2.0, messages=4).tokens == 0
    assert warm.placed_tokens(A, 2.0) == 0
    warm.note(A, "s", prefix, 3.0, tokens=3000, cached=0, messages=4)
    assert warm.expected(A, "s", prefix, 3.0, messages=4).tokens == 3000


def test_short_prompts_that_nobody_caches_tell_nothing() -> None:
    warm = WarmPrefixes()
    for turn in range(5):
        sent(warm, A, "s", 500, 0, 10.0 * turn, 2 + turn)
    assert warm.survival(KIND).observations == 0


def test_memory_is_bounded() -> None:
    warm = WarmPrefixes()
    for number in range(warm_prefixes.MOST_SESSIONS + 500):
        place = (f"pods at {number % 2000}", "m")
        prefix = PromptPrefix((number,), (500,))
        warm.note(place, f"s{number}", prefix, float(number), tokens=10, cached=0, messages=2)
    for number in range(50):
        warm.note((f"p{number}", "m"), "one", NO_PREFIX, 1.0, tokens=10, cached=0, messages=2)
    assert len(warm.places("one")) <= warm_prefixes.MOST_PLACES_OF_A_SESSION
    assert not warm.places("s0")
    sizes = [len(getattr(warm, name)) for name in ("_blocks", "_survival", "_sent_tokens")]
    assert max(sizes) <= 1024
    big = PromptPrefix(tuple(range(64)), tuple(range(64)))
    for number in range(200):
        moved = PromptPrefix(tuple(one + 100 * number for one in big.blocks), big.tokens)
        warm.note(A, "s", moved, 1.0, tokens=10, cached=0, messages=2)
    assert len(warm._blocks[A]) <= warm_prefixes.MOST_BLOCKS


def test_beginnings_are_the_same_as_far_as_the_prompts_are() -> None:
    reader, long = PrefixReader(), "word " * 4000
    one = reader.read(request(long + "first", "search"))
    other = reader.read(request(long + "second", "search"))
    assert one.blocks[:-1] == other.blocks[:-1]
    assert one.blocks[-1] != other.blocks[-1]
    assert reader.read(request(long + "first", "fetch")).blocks[0] != one.blocks[0]
    assert reader.read(request()) is NO_PREFIX
    assert list(one.tokens) == sorted(one.tokens)


def test_an_equal_beginning_is_not_computed_again_and_few_are_kept() -> None:
    reader = PrefixReader()
    first = reader.read(request("system " * 3000))
    assert reader.read(request("system " * 3000)) is first
    for number in range(2000):
        reader.read(request(f"{number} " * 20_000 if number < 300 else str(number)))
    assert len(reader._kept) <= 512
    assert reader._characters <= prompt_prefix._MOST_CHARACTERS


def test_texts_that_differ_in_their_middle_are_not_taken_for_each_other() -> None:
    reader = PrefixReader()
    one, other = ("x" * 5000 + letter + "x" * 5000 for letter in "ab")
    assert reader.read(request(one)).blocks != reader.read(request(other)).blocks


def test_reading_a_beginning_takes_time_in_proportion_to_its_length() -> None:
    def read(words: int) -> None:
        for number in range(20):
            PrefixReader().read(
                request(f"{number} " + "word " * words, *(f"tool_{place}" for place in range(words // 50)))
            )

    check_growth(read, 1000, 10_000, below=25)


def test_noting_a_call_takes_no_longer_with_many_sessions() -> None:
    def note(sessions: int) -> None:
        warm = WarmPrefixes()
        for number in range(sessions):
            sent(warm, A, f"s{number}", 4000, 0, float(number), 2)

    check_growth(note, 1000, 10_000, below=25)
