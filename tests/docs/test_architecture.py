"""The page on the architecture names files that are there."""

import re

from docs.test_examples import ROOT
from support.offenders import each_case

PAGE = (ROOT / "docs" / "architecture.md").read_text(encoding="utf-8")
NAMED = sorted(set(re.findall(r"`([a-z_]+/[a-z_/]*(?:\.py|\.toml)?)`", PAGE)))


@each_case("name", NAMED)
def test_a_named_file_is_there(name: str) -> None:
    places = (ROOT / "src" / "bardo" / name, ROOT / name)
    assert any(place.exists() for place in places), "docs/architecture.md names a file that is not there"


def test_files_are_named() -> None:
    assert len(NAMED) > 20
