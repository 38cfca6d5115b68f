"""The cookies of sessions: signed, with an end, and of one gateway."""

from __future__ import annotations

import pytest

from bardo.surfaces.panel.sessions import SESSION_SECONDS, Sessions

NOW = 1_800_000_000.0


class Clock:
    """A clock that a test sets."""

    def __init__(self) -> None:
        self.now = NOW

    def __call__(self) -> float:
        return self.now


def test_a_cookie_reads_back_in_every_worker_of_the_secret() -> None:
    clock = Clock()
    made = Sessions(b"secret", clock).begin("k/ey:ü")
    cookie = Sessions(b"secret", clock).write(made)
    assert Sessions(b"secret", clock).read(cookie) == made
    assert Sessions(b"another", clock).read(cookie) is None


def test_a_session_ends_after_its_time() -> None:
    clock = Clock()
    sessions = Sessions(b"secret", clock)
    cookie = sessions.write(sessions.begin("a"))
    clock.now = NOW + SESSION_SECONDS - 1
    assert sessions.read(cookie) is not None
    clock.now = NOW + SESSION_SECONDS
    assert sessions.read(cookie) is None


def test_a_session_that_was_ended_is_no_longer_accepted() -> None:
    sessions = Sessions(b"secret", Clock())
    first, second = sessions.begin("a"), sessions.begin("a")
    sessions.end(first)
    assert sessions.read(sessions.write(first)) is None
    assert sessions.read(sessions.write(second)) == second


@pytest.mark.parametrize("place", range(0, 120, 7))
def test_a_changed_cookie_is_no_cookie(place: int) -> None:
    sessions = Sessions(b"secret", Clock())
    cookie = sessions.write(sessions.begin("account"))
    place %= len(cookie)
    changed = cookie[:place] + ("0" if cookie[place] != "0" else "1") + cookie[place + 1 :]
    assert sessions.read(changed) is None


@pytest.mark.parametrize("text", ["", "1", "1....", "x" * 5000, "1.é.1.2.3", "\0"])
def test_what_is_no_cookie_is_none(text: str) -> None:
    assert Sessions(b"secret", Clock()).read(text) is None


def test_the_token_of_a_form_is_that_of_its_session() -> None:
    sessions = Sessions(b"secret", Clock())
    one, other = sessions.begin(), sessions.begin()
    assert sessions.is_own_form(one, sessions.form_token(one))
    assert not sessions.is_own_form(one, sessions.form_token(other))
    assert not sessions.is_own_form(one, "ü")
