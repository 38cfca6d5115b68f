"""The tables of word pieces: what is stored by another table is read back byte for byte."""

from __future__ import annotations

import hashlib
from collections.abc import Callable

import pytest
from hypothesis import given
from hypothesis import strategies as st

from bardo.embedding.static_embedding import StaticEmbedding, TokenTable, shipped_embedding, wide_embedding

pytestmark = pytest.mark.each_python

PIECES = "a\nb\nc"


@pytest.mark.parametrize("load", [shipped_embedding, wide_embedding])
def test_a_shipped_table_is_the_one_that_was_built(load: Callable[[], StaticEmbedding]) -> None:
    table = load()
    rows = b"".join(map(table.row, range(len(table.pieces))))
    assert hashlib.sha256("\n".join(table.pieces).encode() + rows).hexdigest()[:12] == table.fingerprint


@given(st.lists(st.integers(-84, 84), min_size=6, max_size=6), st.lists(st.integers(-1, 1), min_size=6, max_size=6))
def test_a_table_that_is_stored_by_a_narrower_one_is_read_back(narrow: list[int], rounding: list[int]) -> None:
    if not any(narrow):
        return
    thin = TokenTable.of_rows(bytes(one + 128 for one in narrow), fingerprint="n", dimensions=2, pieces=PIECES)
    first = [one * 3 // 2 + more for one, more in zip(narrow, rounding, strict=True)]
    rows = b"".join(bytes([first[2 * n] + 128, first[2 * n + 1] + 128, 7 * n, 255]) for n in range(3))
    try:
        wide = TokenTable.of_rows(rows, fingerprint="w", dimensions=4, pieces=PIECES, narrow=thin)
    except ValueError:
        return  # So few components need not have one ratio.
    assert wide.rows(thin) == rows
    assert StaticEmbedding(wide, thin).pieces == ("a", "b", "c")


def test_tables_of_other_pieces_are_not_stored_by_each_other() -> None:
    thin = TokenTable.of_rows(b"\x01\x02\x03", fingerprint="n", dimensions=1, pieces=PIECES)
    with pytest.raises(ValueError, match="other pieces"):
        TokenTable.of_rows(b"\x01\x02\x03", fingerprint="w", dimensions=1, pieces="a\nb\nd", narrow=thin)
