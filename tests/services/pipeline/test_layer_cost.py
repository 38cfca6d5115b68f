"""What the layers of the profile `fast` cost a call, counted in instructions of Python: no load of the machine changes it."""

from __future__ import annotations

import asyncio
import sys

import pytest
from benchmarks.pipeline import instructions

pytestmark = [
    pytest.mark.each_python,
    pytest.mark.skipif(
        sys.version_info >= (3, 12), reason="the bounds are in instructions of 3.11; later versions have others"
    ),
]


@pytest.mark.parametrize(
    ("layers", "most"),
    [((), 60), (("prefilter",), 1_400), (("cache",), 2_000), (("prefilter", "cache", "affinity"), 3_640)],
    ids=["none", "prefilter", "cache", "all"],
)
def test_layers_take_few_instructions(layers: tuple[str, ...], most: int) -> None:
    taken = asyncio.run(instructions(layers))
    assert 0 < taken <= most
