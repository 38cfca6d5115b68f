"""A regular expression of a module is compiled at its first use, and is then as any other."""

from __future__ import annotations

import re

import pytest

from bardo.values.once import pattern


def test_an_expression_is_compiled_when_it_is_first_used(monkeypatch: pytest.MonkeyPatch) -> None:
    compiled, real = list[tuple[str, int]](), re.compile

    def noted(text: str, flags: int = 0) -> re.Pattern[str]:
        compiled.append((text, flags))
        return real(text, flags)

    monkeypatch.setattr(re, "compile", noted)
    word = pattern("(a+)b", re.I)
    assert word.pattern == "(a+)b"
    assert compiled == []
    for _ in range(3):
        found = word.search("xxAAb")
        assert found is not None
        assert found.group(1) == "AA"
    assert word.sub(r"<\1>", "aab") == "<aa>"
    assert compiled == [("(a+)b", re.I)] * 2, "once for each method"


def test_a_wrong_expression_is_told_at_its_first_use() -> None:
    wrong = pattern("(")
    with pytest.raises(re.error):
        wrong.match("x")
