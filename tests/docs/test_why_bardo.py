"""The comparison with others: each row of its tables has a source, and aims and words agree."""

from __future__ import annotations

import re
from itertools import groupby

from benchmarks.__main__ import SUBJECTS

from docs.test_examples import ROOT
from support.offenders import each_case

PAGE = (ROOT / "docs" / "explanation" / "why-bardo.md").read_text(encoding="utf-8")
TABLES = [list(lines) for is_row, lines in groupby(PAGE.splitlines(), lambda line: line.startswith("|")) if is_row]
ROWS = [line for table in TABLES for line in table[2:]]
_SOURCE = re.compile(r"`python -m benchmarks (?P<subject>[\w-]+)|\]\(|documentation|independent|own comparison")
_AIM = re.compile(r"\| (?P<found>[\d.,]+)\D*\| (?P<sign>[≤≥]) (?P<aim>[\d.,]+)\D*\| (?P<verdict>[*\w]+) \|")


def number(text: str) -> float:
    return float(text.replace(",", ""))


@each_case("row", ROWS, ids=lambda row: row[2:40])
def test_a_row_has_its_source(row: str) -> None:
    source = row.strip("| ").rpartition("|")[2]
    found = _SOURCE.search(source)
    assert found is not None, source
    assert found["subject"] in (None, *SUBJECTS)


def test_what_is_missed_is_called_so() -> None:
    aims = [found for row in ROWS if (found := _AIM.search(row))]
    assert len(aims) == 21
    for found in aims:
        has, aim = number(found["found"]), number(found["aim"])
        met = has <= aim if found["sign"] == "≤" else has >= aim
        assert found["verdict"] == ("met" if met else "**missed**"), found[0]


def test_it_says_where_others_are_better() -> None:
    others = PAGE.partition("## Where others are better")[2].partition("\n## ")[0]
    assert len(re.findall(r"^- \*\*", others, re.MULTILINE)) >= 5
