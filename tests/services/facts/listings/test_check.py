"""Which lists are believed beside the last good one, and what has changed between two."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from bardo.services.facts.introspect import LiveFacts
from bardo.services.facts.listings import Change, ListedModel, ListedPrice, ListedRates, Listing, changes
from bardo.services.facts.listings.read import check


def listing(prices: dict[str, int | None], *, odd: int = 0) -> Listing:
    models = {
        name: ListedModel(price=None if price is None else ListedPrice(input=price, output=price))
        for name, price in prices.items()
    }
    return Listing(source="openrouter", at=1.0, models=models, odd=odd)


MANY: dict[str, int | None] = {f"m{place:02}": 1000 for place in range(20)}


def test_the_first_list_is_taken_over() -> None:
    assert check(listing(MANY), None).listing == listing(MANY)


def test_an_empty_list_changes_nothing_even_where_it_is_accepted() -> None:
    for accept in (False, True):
        found = check(listing({}), listing(MANY), accept=accept)
        assert (found.listing, found.refused) == (None, "it lists no model")


def test_a_list_may_lose_half_of_its_models_and_no_more() -> None:
    names = list(MANY)
    half, less = (dict.fromkeys(names[:size], 1000) for size in (10, 9))
    assert check(listing(dict(half)), listing(MANY)).listing is not None
    refused = check(listing(dict(less)), listing(MANY))
    assert refused.listing is None
    assert "11 of 20 models are missing: m09, m10" in refused.refused
    assert check(listing(dict(less)), listing(MANY), accept=True).listing == listing(dict(less))


def test_renamed_models_are_missing_ones() -> None:
    assert check(listing({f"x{name}": 1 for name in MANY}), listing(MANY)).refused


def test_prices_may_move_tenfold_and_no_more() -> None:
    for price, refused in ((10_000, False), (10_001, True), (100, False), (99, True), (0, True)):
        found = check(listing(dict.fromkeys(MANY, price)), listing(MANY))
        assert bool(found.refused) is refused, price
    everywhere = check(listing(dict.fromkeys(MANY, 10_001)), listing(MANY))
    assert "the prices of 20 of 20 models changed more than tenfold: m00, m01" in everywhere.refused
    assert check(listing(dict.fromkeys(MANY, 10_001)), listing(MANY), accept=True).listing is not None


def test_one_strange_price_among_many_stays_what_it_was() -> None:
    found = check(listing({**MANY, "m03": 1_000_000, "m04": 2000}), listing(MANY))
    assert found.held == ("m03",)
    assert found.listing is not None
    assert found.listing.models["m03"].price == ListedPrice(input=1000, output=1000)
    assert found.listing.models["m04"].price == ListedPrice(input=2000, output=2000)


def test_a_price_that_became_known_or_unknown_is_no_move() -> None:
    found = check(listing({**MANY, "m00": None, "new": 5}), listing({**MANY, "m01": None}))
    assert (found.held, found.refused) == ((), "")


def test_a_fee_and_a_long_price_count_too() -> None:
    def one(request: int, long: int) -> Listing:
        price = ListedPrice(input=1, output=1, request=request, threshold=9, long=ListedRates(input=long))
        return Listing(source="venice", at=1.0, models={"m": ListedModel(price=price)})

    assert check(one(1000, 1000), one(1000, 1000)).listing is not None
    assert check(one(11_000, 1000), one(1000, 1000)).refused
    assert check(one(1000, 11_000), one(1000, 1000)).refused


def test_a_list_of_prices_that_nobody_can_mean_is_refused() -> None:
    assert check(listing(MANY, odd=2), None).listing is not None
    assert "3 of its prices cannot be meant" in check(listing(MANY, odd=3), None).refused


def test_what_changed_is_told_model_by_model() -> None:
    old = Listing(
        source="venice",
        at=1.0,
        models={
            "gone": ListedModel(),
            "same": ListedModel(facts=LiveFacts(context=5)),
            "m": ListedModel(facts=LiveFacts(context=5, features=(("vision", True),)), price=ListedPrice(input=1)),
        },
    )
    new = Listing(
        source="venice",
        at=2.0,
        models={
            "new": ListedModel(),
            "same": ListedModel(facts=LiveFacts(context=5)),
            "m": ListedModel(facts=LiveFacts(context=6, features=(("vision", False),)), price=ListedPrice(input=2)),
        },
    )
    assert list(changes(old, new)) == [
        Change(model="gone", before=True, after=False),
        Change(model="new", before=False, after=True),
        Change(model="m", field="context", before=5, after=6),
        Change(model="m", field="price.input", before=1, after=2),
        Change(model="m", field="vision", before=True, after=False),
    ]


PRICES = st.dictionaries(st.sampled_from(list(MANY)), st.none() | st.integers(0, 10**6), max_size=20)


@given(old=PRICES, new=PRICES)
def test_nothing_that_is_taken_over_moved_tenfold_or_lost_half(
    old: dict[str, int | None], new: dict[str, int | None]
) -> None:
    found = check(listing(new), listing(old))
    if found.listing is None:
        assert found.refused
        return
    taken = found.listing.models
    assert len([name for name in old if name in taken]) >= len(old) / 2
    for name, before in old.items():
        after = taken[name].price if name in taken else None
        if before is not None and after is not None and after.input is not None:
            assert max(before, after.input) <= 10 * min(before, after.input)
    assert not list(changes(found.listing, found.listing))
