"""What is shown of texts that others wrote: every character, and joins of pieces."""

from __future__ import annotations

import sys
import unicodedata

import pytest
from hypothesis import given
from hypothesis import strategies as st

from bardo.values.printable import PrintableText, printable

pytestmark = pytest.mark.each_python


def test_of_all_characters_only_those_that_can_be_seen_remain() -> None:
    for number in range(sys.maxunicode + 1):
        letter = chr(number)
        shown = printable(f"a{letter}b")
        kind = unicodedata.category(letter)
        if letter in "\n\t" or kind[0] in "LMNPS":
            assert shown in (f"a{letter}b", "a�b"), hex(number)
        elif kind == "Zs":
            assert shown.isspace() or shown.strip("ab").isspace(), hex(number)
        else:
            assert shown == "a�b", hex(number)


def test_line_ends_of_windows_are_line_ends_and_a_lone_carriage_return_is_none() -> None:
    assert printable("a\r\nb\rc\r") == "a\nb�c�"


def test_joiners_remain_in_prose_where_a_script_has_them() -> None:
    family = "👩\u200d👧"
    persian = "می\u200cخواهم"
    assert printable(family, prose=True) == family
    assert printable(persian, prose=True) == persian
    assert printable(family) == "👩�👧"
    assert printable("pass\u200dword", prose=True) == "pass�word"
    assert printable("é\u200d\u200d", prose=True) == "é\u200d�"


def test_marks_on_one_letter_are_bounded() -> None:
    assert printable("a" + "\u0301" * 3) == "a" + "\u0301" * 3
    assert printable("a" + "\u0301" * 50).count("\u0301") == 8


@given(st.lists(st.text(max_size=8), max_size=6), st.booleans())
def test_where_a_text_is_cut_changes_nothing(pieces: list[str], prose: bool) -> None:
    cleaner = PrintableText(prose=prose)
    assert "".join(map(cleaner.feed, pieces)) + cleaner.finish() == printable("".join(pieces), prose=prose)
