"""What is shown of texts that others wrote: every character, and joins of pieces."""

from __future__ import annotations

import json
import sys
import unicodedata

import pytest
from hypothesis import given
from hypothesis import strategies as st

from bardo.values.error_cleaning import PrintableText, escaped_json, printable, table_cell
from support.hostile_text import HOSTILE

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


def test_a_cell_of_a_table_is_no_formula_and_controls_nothing() -> None:
    texts = [
        text for hostile in HOSTILE.values() for text in (hostile, *(f"{sign}1+1 {hostile}" for sign in "=+-@＝＋－＠"))
    ]
    for before in ("", " ", "\n", "\t", "\ufeff", '"', "'", "\x1b[2K\r", "\u00a0", "\u200b"):
        for text in texts:
            shown = table_cell(before + text)
            first = unicodedata.normalize("NFKC", shown.lstrip(' \n"')[:1])
            assert first not in set("=+-@"), repr(shown)
            assert all(letter.isprintable() or letter in "\n\u200c\u200d" for letter in shown), repr(shown)


def test_a_cell_that_does_no_harm_is_as_it_was() -> None:
    for text in ("", "gpt-5", "1-2", "openai/gpt-5", "a = b", "Straße", "🙂"):
        assert table_cell(text) == text


def test_escaping_a_line_of_json_changes_no_value() -> None:
    for text in (*HOSTILE.values(), "\x9b31m", "\x7f", "\u202e", "plain"):
        encoded = json.dumps({"a": text}, ensure_ascii=False)
        assert json.loads(escaped_json(encoded)) == {"a": text}
        assert escaped_json(encoded).isprintable()
