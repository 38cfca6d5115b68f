"""Personal data is looked for as configured; what is wrong in the configuration is said at the start."""

from __future__ import annotations

import asyncio

import pytest

from bardo.adapters.config.settings import parse_settings
from bardo.adapters.embedding.personal_data import PersonalDataSearch, chosen_entities, search_of
from bardo.context.privacy.detect import Span
from bardo.context.privacy.search import FindPersonalData
from bardo.context.privacy.settings import PrivacyPattern, PrivacySettings
from bardo.values.errors import ConfigError

PLACE = "[inference.pipeline.privacy]\n"


def found(settings: PrivacySettings, text: str) -> list[tuple[str, str]]:
    search, _ = search_of(settings)
    [spans] = asyncio.run(search.perform(FindPersonalData((text,))))
    return [(span.entity, text[span.start : span.end]) for span in spans]


def names(settings: PrivacySettings) -> set[str]:
    return {entity.name for entity in chosen_entities(settings)}


def test_the_kinds_are_chosen_by_name_and_by_country() -> None:
    usual = names(PrivacySettings())
    assert {"EMAIL_ADDRESS", "US_SSN", "DE_TAX_ID"} <= usual
    assert not {"URL", "DATE_TIME", "UUID"} & usual
    assert names(PrivacySettings(also=("URL",))) == usual | {"URL"}
    assert names(PrivacySettings(never=("US_SSN",))) == usual - {"US_SSN"}
    assert names(PrivacySettings(entities=("URL", "US_SSN"))) == {"URL", "US_SSN"}
    german = names(PrivacySettings(countries=("de",), also=("US_SSN",)))
    assert {"EMAIL_ADDRESS", "DE_TAX_ID", "US_SSN"} <= german
    assert "US_ITIN" not in german


@pytest.mark.parametrize(
    ("match", "value"),
    [
        ("bluebird|project falcon", "Project Falcon"),
        ("[A-Z]{3}-[A-Z]{4}", "ABC-DEFG"),
        ("CUSTOMERNUMBER-[0-9]{4}", "CustomerNumber-1234"),
        ("müller", "MÜLLER"),
        ('"[a-z]{3} [a-z]{3}"', '"top sec"'),
    ],
)
def test_a_pattern_of_the_operators_own_needs_no_digit_and_begins_at_any_word(match: str, value: str) -> None:
    own = PrivacySettings(patterns={"OWN": PrivacyPattern(match=match, label="OWN")})
    assert found(own, f"say {value}, please") == [("OWN", value)]
    assert found(own, f"say x{value}y, please") == []


def test_the_score_decides_what_is_found() -> None:
    text = "use 912803456 now"
    assert found(PrivacySettings(), text) == []
    assert found(PrivacySettings(least_score=0.05, entities=("US_PASSPORT",)), text) == [("US_PASSPORT", "912803456")]


@pytest.mark.parametrize(
    ("keys", "said"),
    [
        ('also = ["EMAIL_ADRESS"]', "did you mean"),
        ('never = ["X"]', "no kind of personal data"),
        ('patterns.STAFF = { match = "(", label = "STAFF" }', "no regular expression"),
        ('patterns.STAFF = { match = "(a)(b)", label = "STAFF" }', "2 groups"),
        ('patterns.STAFF = { match = "a)|(?:b", label = "STAFF" }', "unbalanced parenthesis at position 1"),
        ('patterns.STAFF = { match = "[[a]", label = "STAFF" }', "Possible nested set at position 1"),
        ('patterns.STAFF = { match = "(?s)a.b", label = "STAFF" }', "flags for the whole expression"),
        ('patterns.URL = { match = "a", label = "STAFF" }', "a kind that bardo knows"),
        ('patterns.STAFF = { match = "a", label = "staff1" }', "label"),
        ('mode = "hide"', "mode"),
        ("least_score = 2", "least_score"),
    ],
)
def test_a_mistake_in_the_settings_is_said_at_the_start(keys: str, said: str) -> None:
    with pytest.raises(ConfigError) as problem:
        parse_settings(PLACE + keys)
    assert said in str(problem.value)


def test_a_pattern_that_python_warns_of_is_answered_each_time_and_nothing_is_printed(
    recwarn: pytest.WarningsRecorder,
) -> None:
    keys = 'patterns.STAFF = { match = "[+--x~~]", label = "STAFF" }'
    for _ in range(3):
        with pytest.raises(ConfigError, match="STAFF is ambiguous: Possible set"):
            parse_settings(PLACE + keys)
    assert not recwarn.list


class Counted:
    """Counts the texts that are searched."""

    def __init__(self) -> None:
        self.texts: list[str] = []

    def find(self, text: str) -> list[Span]:
        self.texts.append(text)
        return [Span(0, 1, "X", "X", 1.0)]


@pytest.mark.parametrize("slow", [False, True])
def test_a_long_text_is_searched_once(slow: bool) -> None:
    counted = Counted()
    search = PersonalDataSearch(counted.find, slow=slow)
    long, short = "a" * 300, "b"
    for _ in range(2):
        assert len(asyncio.run(search.perform(FindPersonalData((long, short, long))))) == 3
    assert counted.texts == [long, short, short]


def test_phone_numbers_of_a_region_are_found_by_its_plan() -> None:
    pytest.importorskip("phonenumbers")
    assert found(PrivacySettings(), "Ring (415) 555-2671 now") == [("PHONE_NUMBER", "(415) 555-2671")]
    assert found(PrivacySettings(), "Ring 030 901820 now") == [("PHONE_NUMBER", "030 901820")]
    assert found(PrivacySettings(phone_regions=("US",)), "Ring 030 901820 now") == []
    assert found(PrivacySettings(), "Ring +44 20 7946 0958 2021 times") == [("PHONE_NUMBER", "+44 20 7946 0958")]
    assert found(PrivacySettings(), "on 2024-05-01 12:30, 10.5.2024, 555 12 items") == []


def test_presidio_adds_to_what_the_patterns_find() -> None:
    pytest.importorskip("presidio_analyzer")
    settings = PrivacySettings(engine="presidio", entities=("EMAIL_ADDRESS", "CREDIT_CARD", "PERSON"))
    text = "Write to jane@example.org of 4111 1111 1111 1111."
    assert found(settings, text) == [("EMAIL_ADDRESS", "jane@example.org"), ("CREDIT_CARD", "4111 1111 1111 1111")]


def test_a_presidio_that_is_not_there_is_said(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(__import__("sys").modules, "presidio_analyzer", None)
    with pytest.raises(ConfigError, match="not installed"):
        search_of(PrivacySettings(engine="presidio"))
