"""The guard of the semantic cache: what it lets through, what it refuses, and laws that hold whatever is asked."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from bardo.catalog.layer_rows import guard_languages
from bardo.context.cache.language import word_relations
from bardo.context.cache.question import LONGEST_QUESTION, read_question
from bardo.context.cache.similar import difference

pytestmark = pytest.mark.each_python

SAME = [
    ("How do I delete a file in Linux?", "What is the way to remove a file in Linux?"),
    ("What is the price of the ticket to Lyon?", "How much does it cost, the ticket to Lyon?"),
    ("What is 12 times 15?", "Multiply 12 by 15"),
    ("Convert 30 feet to meters", "How many metres are 30 ft?"),
    ("How tall is Mount Kenya?", "What is the height of Mount Kenya?"),
    ("Is my passport valid in Peru?", "is my passport valid in Peru"),
    ("How do I log in to the portal?", "How can I sign in to the portal?"),
    ("Who wrote Hamlet?", "Who is the author of Hamlet?"),
    ("Please tell me the capital of Chad", "What is the capital of Chad?"),
    ("What is twenty five percent of 80?", "Calculate 25% of 80"),
    ("Why can't I open the door?", "Why can I not open the door?"),
    ("Explain the causes of inflation", "What are the reasons for inflation?"),
    ("Encrypt the archive with GPG", "Use GPG to encrypt the archive"),
    ("How do I pay my bill?", "How do I make a payment for my invoice?"),
    ("Did Rome conquer Athens?", "Was Athens conquered by Rome?"),
    ("What distinguishes tea from coffee?", "Explain the difference between tea and coffee"),
    ("Book a room for 2 people", "Book a room for two"),
    ("What is the smallest planet?", "Which planet is the smallest?"),
]
DIFFERENT = {
    "number": ("What happened in 1912?", "What happened in 1921?"),
    "number word": ("Name three rivers in Chad", "Name four rivers in Chad"),
    "decimal": ("Is 1.5 a prime?", "Is 15 a prime?"),
    "ordinal": ("Who was the second king of Norway?", "Who was the third king of Norway?"),
    "quantity": ("Mix 3 eggs with 2 cups of milk", "Mix 2 eggs with 3 cups of milk"),
    "unit": ("How heavy is 3 kg of gold?", "How heavy is 3 pounds of gold?"),
    "time of day": ("Set a timer for 9 am", "Set a timer for 9 pm"),
    "weekday": ("Is the museum open on Sunday?", "Is the museum open on Monday?"),
    "month": ("What is the weather in Rome in May?", "What is the weather in Rome in June?"),
    "negation": ("Should I eat before the surgery?", "Should I not eat before the surgery?"),
    "negation of another word": (
        "Which birds do not fly but swim?",
        "Which birds fly but do not swim?",
    ),
    "prefix of negation": ("Is it legal to park here?", "Is it illegal to park here?"),
    "particle": ("How do I turn on the heater?", "How do I turn off the heater?"),
    "antonym": ("What is the hottest city?", "What is the coldest city?"),
    "antonym of a verb": ("How do I accept the invitation?", "How do I reject the invitation?"),
    "opposite verb": ("How do I upload a photo?", "How do I download a photo?"),
    "degree": ("Which lake is deep?", "Which lake is the deepest?"),
    "direction": ("How do I fly from Oslo to Rome?", "How do I fly from Rome to Oslo?"),
    "direction after another to": (
        "How long does it take to go from Oslo to Rome?",
        "How long does it take to go from Rome to Oslo?",
    ),
    "direction of a translation": ("Translate the letter into French", "Translate the letter from French"),
    "passive": ("Did Rome conquer Athens?", "Was Rome conquered by Athens?"),
    "comparison": ("Is tin heavier than lead?", "Is lead heavier than tin?"),
    "agent": ("Did Rome attack Carthage?", "Did Carthage attack Rome?"),
    "name": ("Who is Ada Lovelace?", "Who is Grace Hopper?"),
    "word of the same kind": ("Is a tomato healthy?", "Is a potato healthy?"),
    "further word": ("How do I delete a branch?", "How do I delete a protected branch?"),
    "programming language": ("Sort a list in Java", "Sort a list in JavaScript"),
    "sign": ("What does C do?", "What does C++ do?"),
    "quoted": ('Translate "cat" into Welsh', 'Translate "dog" into Welsh'),
    "question word": ("When can I leave the country?", "Why can I leave the country?"),
    "yes or no": ("Can I cancel the order?", "How can I cancel the order?"),
    "instructions or fact": ("How do I use Kafka on Linux?", "What is Kafka on Linux?"),
    "request": ("Explain a poem about rain", "Write a poem about rain"),
    "modality": ("May I take the pill with milk?", "Must I take the pill with milk?"),
    "time": ("Who is the mayor of Bonn?", "Who was the mayor of Bonn?"),
    "person": ("What is my name?", "What is your name?"),
    "scope": ("Delete the first line of the file", "Delete the last line of the file"),
    "all": ("Delete all lines of the file", "Delete empty lines of the file"),
    "with": ("Coffee with sugar: how many calories?", "Coffee without sugar: how many calories?"),
    "language": ("What is the capital of Chad?", "Was ist die Hauptstadt von Tschad?"),
}
WORDS = st.sampled_from(
    [
        "bake",
        "bridge",
        "candle",
        "castle",
        "copper",
        "engine",
        "forest",
        "garden",
        "harbor",
        "island",
        "jacket",
        "kettle",
        "magnet",
    ]
)
QUESTIONS = st.tuples(WORDS, WORDS, st.integers(2, 9_999)).map(
    lambda one: f"How much {one[0]} is in the {one[1]} with {one[2]} parts?"
)


@pytest.mark.parametrize(("one", "other"), SAME, ids=[one for one, _ in SAME])
def test_questions_that_ask_for_the_same_are_let_through(one: str, other: str) -> None:
    assert difference(one, other) is None
    assert difference(other, one) is None


@pytest.mark.parametrize("name", DIFFERENT)
def test_questions_that_differ_where_it_matters_are_refused(name: str) -> None:
    one, other = DIFFERENT[name]
    assert difference(one, other) is not None
    assert difference(other, one) is not None
    assert difference(one, one) in (None, "unread")


@given(QUESTIONS, QUESTIONS)
def test_the_order_of_two_questions_decides_nothing(one: str, other: str) -> None:
    assert (difference(one, other) is None) == (difference(other, one) is None)


@given(QUESTIONS)
def test_a_question_is_the_same_as_itself_however_it_is_written(question: str) -> None:
    assert difference(question, question.upper().replace("?", "")) in (None, "word")
    assert difference(question, f"  {question.lower()} ") is None
    assert difference(question, f"Please tell me: {question}") is None


@given(QUESTIONS, st.integers(2, 9_999))
def test_another_number_is_never_let_through(question: str, number: int) -> None:
    digits = "".join(sign for sign in question if sign.isdigit())
    changed = question.replace(digits, str(number))
    assert (difference(question, changed) is None) == (int(digits) == number)


@given(QUESTIONS, st.sampled_from(["not", "never"]))
def test_a_negation_is_never_let_through(question: str, negation: str) -> None:
    assert difference(question, question.replace(" is ", f" is {negation} ")) == "negation"


@given(
    st.sampled_from(["monday", "tuesday", "sunday", "may", "june", "december"]),
    st.sampled_from(["monday", "friday", "april", "june"]),
)
def test_another_day_or_month_is_never_let_through(one: str, other: str) -> None:
    asked = [f"Does the library close early in or on {name.title()}?" for name in (one, other)]
    assert (difference(*asked) is None) == (one == other)


@given(
    st.text(alphabet="bcdfgjklmnpqrtvwxz", min_size=5, max_size=12),
    st.text(alphabet="bcdfgjklmnpqrtvwxz", min_size=5, max_size=12),
)
def test_a_word_that_is_not_known_is_only_like_itself(one: str, other: str) -> None:
    asked = [f"What is the meaning of {word} in the report?" for word in (one, other)]
    assert (difference(*asked) is None) == (one.removesuffix("s") == other.removesuffix("s"))


@given(st.text(max_size=200), st.text(max_size=200))
def test_any_text_is_read_and_compared(one: str, other: str) -> None:
    assert (difference(one, other) is None) == (difference(other, one) is None)


@pytest.mark.parametrize(
    "text", ["", "   ", "?!", "x" * (LONGEST_QUESTION + 1), "Fix this:\n```\ncode\n```", "人口は何人ですか"]
)
def test_what_cannot_be_read_is_not_compared(text: str) -> None:
    assert read_question(text) is None
    assert difference(text, text) == "unread"


def test_every_row_of_a_language_can_be_read_with() -> None:
    for row in guard_languages():
        assert all(len(line.split()) > 1 for line in (*row.synonyms, *row.opposites))
        assert all("=" in word for word in row.numbers.split())
        assert all("=" in line for line in row.phrases.splitlines() if line)


def test_words_are_related_both_ways_and_never_to_their_opposites() -> None:
    relations = word_relations()
    for one, other in (("invoice", "bill"), ("encrypt", "encryption"), ("difference", "differ")):
        assert other in relations.related(one)
        assert one in relations.related(other)
    for one, other in (("buy", "sell"), ("include", "exclude"), ("hot", "cold")):
        assert other not in relations.related(one)
    assert "mouse" in relations.base_forms("mice")
    assert "large++" in relations.base_forms("largest")
    assert "large" not in relations.base_forms("largest")
