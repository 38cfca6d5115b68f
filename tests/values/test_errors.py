"""Every way a call can fail says whose turn it is, and what to do."""

from __future__ import annotations

import re

import pytest

from bardo.values import errors
from bardo.values.degradation import Degradation, distinct
from bardo.values.errors import BardoError, InvalidRequest, ProviderError, UpstreamRefused, kind_of_status
from support.offenders import each_case

pytestmark = pytest.mark.each_python

WITHOUT_STATUS = {
    "BardoError": "the root",
    "CallerError": "each of its kinds has one",
    "OperatorError": "each of its kinds has one",
    "ProviderError": "each of its kinds has one",
    "UpstreamRefused": "has the provider's",
}
"""The errors whose line in the tree has no status, and why."""


def family(root: type[BardoError]) -> list[type[BardoError]]:
    return [
        root,
        *(one for child in root.__subclasses__() for one in family(child) if one.__module__ == errors.__name__),
    ]


@each_case("kind", family(BardoError), ids=lambda kind: kind.__name__)
def test_the_tree_at_the_top_of_the_file_names_every_error(kind: type[BardoError]) -> None:
    tree = {line.strip("│├└─ ").partition(" ")[0] for line in (errors.__doc__ or "").splitlines()}
    if kind.__name__ not in tree:
        pytest.fail(
            f"the tree at the top of src/bardo/values/errors.py does not name {kind.__name__}: add its line with its status and whose turn "
            "it is",
            pytrace=False,
        )


@each_case("kind", family(BardoError), ids=lambda kind: kind.__name__)
def test_the_tree_gives_each_error_its_status(kind: type[BardoError]) -> None:
    written = re.search(rf"─ {kind.__name__} +(\d{{3}})", errors.__doc__ or "")
    if written is not None:
        assert int(written[1]) == kind.status, (
            f"the tree gives {kind.__name__} another status than its class: correct one of the two"
        )
    else:
        assert kind.__name__ in WITHOUT_STATUS, (
            f"{kind.__name__} has no HTTP status in the tree at the top of src/bardo/values/errors.py: write it there, "
            "and `status` in the class"
        )


@pytest.mark.parametrize(
    ("error", "code"),
    [
        (InvalidRequest("x"), "invalid_request"),
        (errors.UnknownModel("x"), "unknown_model"),
        (errors.MissingKey("x"), "missing_key"),
        (UpstreamRefused("x"), "upstream_refused"),
    ],
)
def test_codes_are_the_names_in_snake_case(error: BardoError, code: str) -> None:
    assert error.code == code


def test_the_hint_is_part_of_what_is_read() -> None:
    assert str(InvalidRequest("n is 0", hint="use 1 or more")) == "n is 0 (use 1 or more)"
    assert str(InvalidRequest("n is 0")) == "n is 0"


@pytest.mark.parametrize(
    ("status", "kind", "retryable"),
    [
        (400, "invalid_request", False),
        (401, "authentication", False),
        (402, "billing", False),
        (403, "permission", False),
        (404, "not_found", False),
        (408, "timeout", True),
        (413, "too_large", False),
        (418, "invalid_request", False),
        (429, "rate_limit", True),
        (500, "server", True),
        (502, "server", True),
        (503, "overloaded", True),
        (504, "timeout", True),
        (529, "overloaded", True),
    ],
)
def test_a_status_says_what_went_wrong_and_whether_to_try_again(status: int, kind: str, retryable: bool) -> None:
    refusal = UpstreamRefused("no", status=status)
    assert (kind_of_status(status), refusal.kind, refusal.retryable) == (kind, kind, retryable)


def test_a_refusal_keeps_what_the_provider_said() -> None:
    refusal = UpstreamRefused(
        "slow down", provider="p", status=429, upstream_code="rate", retry_after="3", detail={"a": 1}
    )
    assert (refusal.provider, refusal.upstream_code, refusal.retry_after, refusal.detail) == (
        "p",
        "rate",
        "3",
        {"a": 1},
    )


def test_errors_that_say_the_same_are_equal() -> None:
    assert InvalidRequest("x", param="a") == InvalidRequest("x", param="a")
    assert InvalidRequest("x", param="a") != InvalidRequest("x", param="b")
    assert InvalidRequest("x") != errors.TooLarge("x")


def test_only_the_provider_is_tried_again() -> None:
    # A key may be missing for one provider and set for the next.
    assert {kind for kind in family(BardoError) if kind.retryable} == {*family(ProviderError), errors.MissingKey}


def test_differences_are_told_once_and_in_order() -> None:
    seed, top_k = Degradation("seed", asked=1), Degradation("top_k", asked=[1])
    assert distinct([seed, top_k, seed, top_k]) == (seed, top_k)
