"""Lists of models, as providers write them and as nobody should: what is read, what is unknown, and what is refused."""

from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from bardo.catalog.load import builtin
from bardo.services.facts.introspect.answer_values import NotAnAnswer
from bardo.services.facts.listings import ListedPrice, ListedRates, Listing, listing_sources
from bardo.services.facts.listings.read import MOST_BYTES, MOST_MODELS, read_listing
from bardo.services.facts.listings.rows import MOST_PER_MILLION, MOST_PER_REQUEST

DOLLAR = 10**9


def read(source: str, body: Any) -> Listing:
    content = body if isinstance(body, bytes) else json.dumps(body).encode()
    return read_listing(listing_sources()[source], content, 1000.0)


def openrouter(*prices: Any) -> dict[str, Any]:
    return {"data": [{"id": f"maker/m{place}", "pricing": price} for place, price in enumerate(prices)]}


# Each shape is the provider's own, with the figures of its list on the day that its row in listings.toml names.
READ = {
    "openrouter: strings for a token": (
        "openrouter",
        openrouter({"prompt": "0.000003", "completion": "0.000015", "input_cache_read": "0.0000003", "request": "0"}),
        "maker/m0",
        ListedPrice(input=3 * DOLLAR, output=15 * DOLLAR, cache_read=3 * DOLLAR // 10),
    ),
    "openrouter: a fee for each call": (
        "openrouter",
        openrouter({"prompt": "0.000001", "completion": "0.000001", "request": "0.005"}),
        "maker/m0",
        ListedPrice(input=DOLLAR, output=DOLLAR, request=5_000_000),
    ),
    "openrouter: free": (
        "openrouter",
        openrouter({"prompt": "0", "completion": "0"}),
        "maker/m0",
        ListedPrice(input=0, output=0),
    ),
    "blockrun: numbers for a million": (
        "blockrun",
        {
            "object": "list",
            "data": [
                {
                    "id": "anthropic/claude-opus-5.5",
                    "categories": ["chat", "vision"],
                    "pricing": {"input": 4, "output": 20, "cache_read": 0.2, "cache_write": 5},
                }
            ],
        },
        "anthropic/claude-opus-5.5",
        ListedPrice(input=4 * DOLLAR, output=20 * DOLLAR, cache_read=DOLLAR // 5, cache_write=5 * DOLLAR),
    ),
    "venice: dearer above a length": (
        "venice",
        {
            "data": [
                {
                    "id": "gemini-3-1-pro-preview",
                    "type": "text",
                    "model_spec": {
                        "pricing": {
                            "input": {"usd": 2.5, "diem": 2.5},
                            "output": {"usd": 15, "diem": 15},
                            "extended": {
                                "context_token_threshold": 200000,
                                "input": {"usd": 5, "diem": 5},
                                "output": {"usd": 22.5, "diem": 22.5},
                            },
                        }
                    },
                }
            ]
        },
        "gemini-3-1-pro-preview",
        ListedPrice(
            input=5 * DOLLAR // 2,
            output=15 * DOLLAR,
            threshold=200_000,
            long=ListedRates(input=5 * DOLLAR, output=45 * DOLLAR // 2),
        ),
    ),
    "together: a bare list": (
        "together",
        [{"id": "meta/llama", "type": "chat", "pricing": {"input": 0.88, "output": 0.88}}],
        "meta/llama",
        ListedPrice(input=880_000_000, output=880_000_000),
    ),
    "an input price alone: vectors": (
        "venice",
        {
            "data": [
                {
                    "id": "text-embedding-bge-m3",
                    "type": "embedding",
                    "model_spec": {"pricing": {"input": {"usd": 0.15}}},
                }
            ]
        },
        "text-embedding-bge-m3",
        ListedPrice(input=150_000_000),
    ),
    "no price": ("gemini", {"models": [{"name": "models/gemini-3-flash"}]}, "gemini-3-flash", None),
}


@pytest.mark.parametrize(("source", "body", "model", "price"), READ.values(), ids=READ.keys())
def test_a_price_is_read_exactly(source: str, body: Any, model: str, price: ListedPrice | None) -> None:
    listing = read(source, body)
    assert listing.models[model].price == price
    assert listing.odd == 0


def test_what_a_list_says_beside_prices_is_read_as_live_introspection_reads_it() -> None:
    row = {
        "id": "qwen3-5-9b",
        "type": "text",
        "model_spec": {
            "privacy": "anonymized",
            "availableContextTokens": 32000,
            "capabilities": {"supportsReasoning": False, "supportsVision": True, "supportsTeeAttestation": False},
        },
    }
    facts = read("venice", {"data": [row]}).models["qwen3-5-9b"].facts
    assert facts.control == ("none",)
    assert dict(facts.features) == {"vision": True, "privacy": False, "tee": False}


def test_models_of_other_kinds_are_left_out() -> None:
    rows = [{"id": "flux", "type": "image"}, {"id": "qwen", "type": "text"}, {"id": "new", "type": None}]
    assert sorted(read("venice", {"data": rows}).models) == ["new", "qwen"]


ODD = {
    "below zero, for a router": "-1",
    "not a number": "NaN",
    "without end": "Infinity",
    "a word": "free",
    "beyond every price": "1000",
    "an object": {"usd": 1},
    "a list": [1],
    "true": True,
    "too many digits": "0." + "1" * 100,
    "an exponent": "1e999999999",
}


@pytest.mark.parametrize("price", ODD.values(), ids=ODD.keys())
@pytest.mark.parametrize("field", ["prompt", "completion", "input_cache_read"])
def test_a_price_that_nobody_can_mean_is_unknown_and_never_zero(price: Any, field: str) -> None:
    good = {"prompt": "0.000001", "completion": "0.000002"}
    listing = read("openrouter", openrouter({**good, field: price}, good))
    assert listing.models["maker/m0"].price is None
    assert listing.models["maker/m1"].price is not None
    assert listing.odd == 1


NO_LIST = {
    "nothing": b"",
    "no JSON": b"<html>502</html>",
    "another answer": {"error": {"message": "no"}},
    "a list of another name": {"rows": []},
    "a string": {"data": "models"},
    "a list without a name": [{"id": "maker/m0"}],
    "nested too deeply": b'{"data":' + b"[" * 100_000 + b"]" * 100_000 + b"}",
    "too long": b" " * (MOST_BYTES + 1),
    "too many models": {"data": [{"id": f"m{place}"} for place in range(MOST_MODELS + 1)]},
}


@pytest.mark.parametrize("body", NO_LIST.values(), ids=NO_LIST.keys())
def test_what_is_no_list_is_refused(body: Any) -> None:
    with pytest.raises(NotAnAnswer):
        read("openrouter", body)


def test_a_name_that_cannot_be_one_is_left_out() -> None:
    names = ["", "a" * 257, "two\nlines", "\x1b[31mred", 7, None, {"x": 1}, "good"]
    assert list(read("blockrun", {"data": [{"id": name} for name in names]}).models) == ["good"]


def test_rows_that_are_none_are_passed_over() -> None:
    rows: list[Any] = [None, 1, "m", [], {"id": "good"}]
    assert list(read("blockrun", {"data": rows}).models) == ["good"]


JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=20),
    lambda inner: (
        st.lists(inner, max_size=4)
        | st.dictionaries(
            st.sampled_from(["id", "data", "pricing", "prompt", "completion", "type", "model_spec", "input"]), inner
        )
    ),
    max_leaves=20,
)


@given(source=st.sampled_from(sorted(listing_sources())), body=JSON)
def test_whatever_is_answered_is_a_list_within_bounds_or_refused(source: str, body: Any) -> None:
    try:
        listing = read(source, body)
    except NotAnAnswer:
        return
    for name, model in listing.models.items():
        assert name.isprintable()
        assert 0 < len(name) <= 256
        if model.price is not None:
            rates = [model.price.input, model.price.output, model.price.cache_read, model.price.cache_write]
            assert all(rate is None or 0 <= rate <= MOST_PER_MILLION for rate in rates)
            assert model.price.request is None or 0 <= model.price.request <= MOST_PER_REQUEST


def test_rows_are_about_providers_that_there_are() -> None:
    known = {row.id for row in builtin().providers}
    named = [provider for source in listing_sources().values() for provider in source.providers]
    assert set(named) <= known
    assert len(named) == len(set(named))
