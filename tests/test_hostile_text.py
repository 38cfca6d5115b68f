"""The texts that other tests show to people: enough of them, and none lost under the name of another."""

from __future__ import annotations

from collections import Counter

from support.hostile_text import GROUPS, HOSTILE


def test_no_hostile_text_hides_another() -> None:
    names = Counter(name for group in GROUPS.values() for name in group)
    assert [name for name, times in names.items() if times > 1] == []
    assert len(set(HOSTILE.values())) == len(HOSTILE) >= 60


def test_every_hostile_text_can_be_sent() -> None:
    assert [name for name, text in HOSTILE.items() if not text.encode()] == []
