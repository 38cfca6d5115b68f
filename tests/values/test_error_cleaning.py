"""What an error says is bounded, and when to come back is a number of seconds or nothing."""

from __future__ import annotations

from urllib.parse import quote

import pytest
from hypothesis import given
from hypothesis import strategies as st

from bardo.dialects.shared.json_values import excerpt
from bardo.values.error_cleaning import (
    MAX_DETAIL_BYTES,
    MAX_MESSAGE,
    MAX_RETRY_SECONDS,
    MAX_WORD,
    clean_error,
    cleaned_text,
    parse_retry_after,
)
from bardo.values.errors import InternalError, InvalidRequest, UpstreamRefused
from bardo.values.secrets import NO_SECRETS, SecretWatch, secrets_of
from support.growth import check_growth

pytestmark = pytest.mark.each_python

KEY = "sk-test-0123456789abcdef"
NOW = 1_800_000_000.0  # Fri, 15 Jan 2027 08:00:00 GMT


def test_all_that_a_provider_says_is_cut() -> None:
    long = "x" * 900_000
    error = UpstreamRefused(
        long, hint=long, upstream_code=long, upstream_type=long, param=long, retry_after=long, detail={"message": long}
    )
    clean_error(error)
    assert len(error.message) == len(error.hint) == MAX_MESSAGE + 1
    assert len(error.upstream_code or "") == len(error.upstream_type or "") == len(error.param or "") == MAX_WORD + 1
    assert error.retry_after is None
    assert error.detail is None
    assert error.args == (error.message,)


def test_what_is_short_stays_as_it_is() -> None:
    detail = {"message": "m", "list": [1, 2.5, None, True], "code": "c"}
    error = UpstreamRefused("m", upstream_code="c", retry_after="30", detail=detail)
    clean_error(error)
    assert (error.message, error.upstream_code, error.retry_after, error.detail) == ("m", "c", "30", detail)


def test_cleaning_twice_changes_nothing() -> None:
    error = InvalidRequest("y" * 5_000 + KEY, param="p" * 500)
    once = dict(vars(clean_error(error)))
    assert vars(clean_error(error)) == once


def test_what_an_error_was_raised_from_is_cleaned_too() -> None:
    error = InternalError("outside")
    error.__cause__ = UpstreamRefused(f"inside {KEY}")
    clean_error(error)
    assert str(error.__cause__) == "inside [key]"


def test_a_detail_within_the_bound_loses_its_secrets() -> None:
    error = UpstreamRefused("m", detail={"a": [{KEY: f"x {KEY}"}], "b": "c" * (MAX_DETAIL_BYTES // 2)})
    clean_error(error, secrets_of((KEY,)))
    assert error.detail["a"] == [{"[key]": "x [key]"}]


@given(st.integers(0, 3 * MAX_MESSAGE), st.integers(0, 3), st.text("ab \n", max_size=30))
def test_a_cut_never_leaves_a_part_of_a_secret(before: int, again: int, between: str) -> None:
    text = "-" * before + between.join([KEY] * (again + 1)) + "-" * 100
    found = cleaned_text(text, secrets_of((KEY,)), MAX_MESSAGE)
    assert len(found) <= MAX_MESSAGE + 1
    assert KEY[:8] not in found


ODD_KEY = "9fK2/pQ7+wX4=mN8zRt5vB1c"
"""Of no provider's shape, with characters that encoders escape."""


@pytest.mark.parametrize("length", [12, 13, 20, len(ODD_KEY) - 1])
@pytest.mark.parametrize("after", ["", "…", " please", "***"])
def test_the_beginning_of_a_secret_whose_end_was_cut_off_is_taken_out(length: int, after: str) -> None:
    assert secrets_of((ODD_KEY,)).in_text(f"wrong key {ODD_KEY[:length]}{after}") == f"wrong key [key]{after}"


@pytest.mark.parametrize("length", [14, 20, 28])
def test_what_is_left_of_an_escaped_secret_is_taken_out_whole(length: int) -> None:
    left = quote(ODD_KEY, safe="")[:length]
    assert secrets_of((ODD_KEY,)).in_text(f"no: {left}…") == "no: [key]…"


def test_an_excerpt_never_leaves_a_part_of_a_secret() -> None:
    secrets = secrets_of((ODD_KEY,))
    for before in range(250, 301):
        assert ODD_KEY[:12] not in secrets.in_text(excerpt(b"-" * before + ODD_KEY.encode() + b"-" * 100))


ESCAPED = {
    "HTML, decimal": "".join(letter if letter.isalnum() else f"&#{ord(letter)};" for letter in ODD_KEY),
    "HTML, hexadecimal": "".join(letter if letter.isalnum() else f"&#x{ord(letter):X};" for letter in ODD_KEY),
    "HTML, named": ODD_KEY.replace("/", "&sol;").replace("+", "&plus;").replace("=", "&equals;"),
    "JSON, some": ODD_KEY.replace("+", r"\u002B").replace("=", r"\u003d"),
    "JSON, all": "".join(f"\\u{ord(letter):04x}" for letter in ODD_KEY),
    "JSON in JSON": ODD_KEY.replace("+", r"\\u002B").replace("=", r"\\u003d"),
    "URL, all": "".join(f"%{ord(letter):02x}" for letter in ODD_KEY),
    "URL in a URL": quote(quote(ODD_KEY, safe=""), safe=""),
    "URL in JSON": quote(ODD_KEY, safe="").replace("%", r"\u0025"),
}


@pytest.mark.parametrize("written", ESCAPED.values(), ids=ESCAPED)
def test_a_secret_is_found_however_its_characters_are_escaped(written: str) -> None:
    assert secrets_of((ODD_KEY,)).in_text(f"50% of <b> & {written}, {ODD_KEY}") == "50% of <b> & [key], [key]"


@pytest.mark.parametrize("text", ["50% &amp; more", r"caf\u0065 %41", "a & b", "100%"])
def test_text_without_a_secret_keeps_its_escapes(text: str) -> None:
    assert secrets_of((ODD_KEY,)).in_text(text) == text


@pytest.mark.parametrize("written", [ESCAPED["JSON, some"], ESCAPED["JSON, all"]], ids=["some", "all"])
def test_an_escaped_secret_in_forwarded_bytes_is_found_wherever_they_are_cut(written: str) -> None:
    secrets = secrets_of((ODD_KEY,))
    frame = f'{{"debug":"{written}","text":"\\u0022 \\u00e9"}}'.encode()
    assert secrets.in_bytes(frame).startswith(b'{"debug":"[key]","text":"\\u0022 ')
    for cut in range(1, len(frame)):
        watch = SecretWatch(secrets)
        watch.feed(frame[:cut])
        assert watch.feed(frame[cut:])


def test_thousands_of_secrets_in_a_row_are_taken_out() -> None:
    found = cleaned_text(f"{KEY} " * 40_000, secrets_of((KEY,)), MAX_MESSAGE)
    assert "0123" not in found


@pytest.mark.parametrize(
    ("value", "seconds"),
    [
        ("30", "30"),
        (" 30 ", "30"),
        ("0", "0"),
        ("1.2", "2"),
        ("0.001", "1"),
        ("604800", "604800"),
        ("Fri, 15 Jan 2027 08:00:30 GMT", "30"),
        ("Fri, 15 Jan 2027 07:00:00 GMT", "0"),
        ("Friday, 15-Jan-27 08:01:00 GMT", "60"),
        (None, None),
        ("", None),
        ("604801", None),
        ("-1", None),
        ("1e3", None),
        ("nan", None),
        ("inf", None),
        ("٣", None),
        ("30\r\nset-cookie: a=b", None),
        ("soon", None),
        ("Fri, 15 Jan 2099 08:00:30 GMT", None),
        ("Fri, 99 Jan 2027 08:00:30 GMT", None),
        ("9" * 60_000, None),
        ("0" * 60_000, None),
        ("Fri, 15 Jan 999999999999 08:00:30 GMT", None),
    ],
)
def test_when_to_come_back(value: str | None, seconds: str | None) -> None:
    assert parse_retry_after(value, NOW) == seconds


def test_a_date_without_a_clock_says_nothing() -> None:
    assert parse_retry_after("Fri, 15 Jan 2027 08:00:30 GMT") is None


@given(st.text(max_size=80), st.floats(0, 1e10))
def test_whatever_was_written_it_is_a_number_or_nothing(value: str, now: float) -> None:
    found = parse_retry_after(value, now)
    assert found is None or 0 <= int(found) <= MAX_RETRY_SECONDS


@given(st.text("abc-0123456789/+=%", min_size=8, max_size=40), st.lists(st.integers(1, 9)))
def test_a_secret_is_seen_however_it_is_cut(secret: str, cuts: list[int]) -> None:
    watch = SecretWatch(secrets_of((secret,)))
    data = f"data: {secret}\n\n".encode()
    for cut in cuts:
        watch.feed(data[:cut])
        data = data[cut:]
    watch.feed(data)
    assert watch.seen


def test_placeholders_are_no_secrets() -> None:
    text = "none is EMPTY x at ollama"
    assert secrets_of(("none", "x", "", "EMPTY", "ollama")).in_text(text) == text


def test_a_short_secret_counts_where_it_stands_alone() -> None:
    assert secrets_of(("sk-1",)).in_text("not sk-1, but sk-12 or task-1") == "not [key], but sk-12 or task-1"


@pytest.mark.parametrize(
    "text", ["sk-learn-is-a-long-package-name", "task-0123456789abcdefghij", "sk-…abcd", "AKIA", "hf_hub", "xai-"]
)
def test_names_of_things_are_no_keys(text: str) -> None:
    assert NO_SECRETS.in_text(text) == text


@pytest.mark.sampled(2)
@pytest.mark.parametrize("part", ["sk-", "sk-a", "AIza", "A", "%2F", "gsk_", "-_"])
def test_looking_for_secrets_takes_time_in_proportion(part: str) -> None:
    secrets = secrets_of((KEY, "another/secret+0123="))
    check_growth(secrets.in_text, part * 10_000, part * 80_000, below=30)
