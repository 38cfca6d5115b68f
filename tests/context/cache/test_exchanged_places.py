"""Questions of the same words differ where who does something and to whom have changed places, not where a part moved as a whole."""

from __future__ import annotations

import pytest

from bardo.context.cache.similar import difference

EXCHANGED = [
    ("What did Einstein say about Bohr?", "What did Bohr say about Einstein?"),
    ("How many ounces are in a pound?", "How many pounds are in an ounce?"),
    ("Who teaches the students?", "Who do the students teach?"),
    ("What causes inflation?", "What does inflation cause?"),
    ("Who sued Apple?", "Who did Apple sue?"),
    ("Can I sue my landlord?", "Can my landlord sue me?"),
    ("When did Mary introduce Anna?", "When did Anna introduce Mary?"),
    ("Was erzählt die Mutter dem Vater?", "Was erzählt der Vater der Mutter?"),
    ("Wo trifft die Lehrerin den Schüler?", "Wo trifft der Schüler die Lehrerin?"),
    ("Cosa regala la madre al padre?", "Cosa regala il padre alla madre?"),
    ("Are my parents allowed to claim me?", "Am I allowed to claim my parents?"),
]
MOVED = [
    ("In CSS, how can I center a div?", "How can I center a div in CSS?"),
    ("How do TCP and UDP differ?", "What distinguishes TCP from UDP?"),
    ("What is the weather in Lima on Friday?", "Tell me the Friday forecast for Lima"),
    ("In what year was the Eiffel Tower constructed?", "When was the Eiffel Tower built?"),
    ("How can I get in touch with customer service?", "How do I contact customer support?"),
]


@pytest.mark.parametrize(("one", "other"), EXCHANGED)
def test_exchanged_places_are_a_difference(one: str, other: str) -> None:
    assert difference(one, other) == difference(other, one) == "direction"


@pytest.mark.parametrize(("one", "other"), MOVED)
def test_a_part_that_moved_is_none(one: str, other: str) -> None:
    assert difference(one, other) is difference(other, one) is None


def test_for_and_against_are_apart() -> None:
    assert (
        difference("Which team did Messi play for in 2010?", "Which team did Messi play against in 2010?") is not None
    )
