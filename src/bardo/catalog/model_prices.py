"""What models cost and how good their answers are, from `catalog/data/model_prices.toml`, for choosing between them.

What a call really cost is not worked out from these rows.
"""

from __future__ import annotations

import tomllib
from functools import cache, lru_cache
from importlib.resources import files

import msgspec

from bardo.catalog.matching import matches_any, plain_id, specificity
from bardo.values.errors import ConfigError
from bardo.values.intent import Quality


class ModelPrice(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """What is known of some models, by globs of ids as the catalog spells them, everywhere or at `providers` (globs of row ids).

    `input` and `output` are USD per million tokens, both or neither; `quality` is the class of the answers. None where nobody knows.
    """

    match: tuple[str, ...]
    providers: tuple[str, ...] = ()
    input: float | None = None
    output: float | None = None
    quality: Quality | None = None


class ModelPrices:
    """All rows. A row about a provider goes before one about all, then the most specific glob decides."""

    def __init__(self, rows: tuple[ModelPrice, ...]) -> None:
        for row in rows:
            if (row.input is None) != (row.output is None):
                raise ConfigError(f"model_prices.toml: {row.match} has a price of input or output only")
        self.rows = rows
        self._plain = tuple(
            msgspec.structs.replace(row, match=tuple(plain_id(glob) for glob in row.match)) for row in rows
        )
        self.find = lru_cache(maxsize=4096)(self._find)

    def _find(self, provider: str, model: str) -> ModelPrice | None:
        """Return the row about a model's plain id at a provider; None where there is none."""
        fitting = [
            row
            for row in self._plain
            if matches_any(model, row.match) and (not row.providers or matches_any(provider, row.providers))
        ]
        return max(fitting, key=lambda row: (bool(row.providers), _specificity(model, row)), default=None)


def _specificity(model: str, row: ModelPrice) -> tuple[bool, int, int]:
    return max(specificity(glob) for glob in row.match if matches_any(model, (glob,)))


@cache
def model_prices() -> ModelPrices:
    """Return the rows that come with bardo."""
    text = files("bardo.catalog").joinpath("data/model_prices.toml").read_text(encoding="utf-8")
    return ModelPrices(msgspec.convert(tomllib.loads(text)["model"], tuple[ModelPrice, ...]))
