"""Open a parser for a reply, by the name of a format or by the id of a model.

Only formats are kept and shared, and they never change: every reply gets a parser of its own.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from threading import Lock
from typing import Any

from bardo.catalog.matching import canonical
from bardo.reasoning.classes import ClassFormat
from bardo.reasoning.formats import ReasoningFormat
from bardo.reasoning.parser import ReasoningParser
from bardo.reasoning.registry import FormatRegistry, builtin_formats
from bardo.reasoning.starting import starting_state

Creator = Callable[[], ReasoningParser]
Toggles = Mapping[str, Any]

POOL_LIMIT = 1024


def open_parser(
    format: str | ReasoningFormat | None = None,  # noqa: A002
    model: str | None = None,
    starts_inside: bool | None = None,
    *,
    prompt: str | None = None,
    toggles: Toggles | None = None,
    formats: FormatRegistry | None = None,
) -> ReasoningParser:
    """Return a parser for one reply in `format`, or else in the format of `model`, or else of inline think tags.

    Whether the reply begins inside a block is what `starts_inside` says, else what the end of the rendered `prompt` shows, else what the
    `toggles` (template arguments such as `enable_thinking`) mean, else what the format says. `formats` are those that are known, by
    default the built-in ones. The text of a model without a format is all answer. Raises UnknownFormat.
    """
    registry = formats or builtin_formats()
    row = format if isinstance(format, ReasoningFormat) else registry.choose(name=format or "", model=model).format
    return _open_parser(row, starts_inside, prompt, toggles)


def _open_parser(
    row: ReasoningFormat, starts_inside: bool | None, prompt: str | None, toggles: Toggles | None
) -> ReasoningParser:
    if isinstance(row, ClassFormat):
        # It has no delimiters by which a prompt could be read.
        parser: ReasoningParser = row.open(starts_inside)
        return parser
    inside = starting_state(row, starts_inside=starts_inside, prompt=prompt, toggles=toggles)
    return ReasoningParser(format=row, starts_inside=inside)


class ReasoningParserFactory:
    """Knows `formats`, by default the built-in ones, and the parsers and patterns that were registered, which come first.

    Safe to use from many threads.
    """

    def __init__(self, formats: FormatRegistry | None = None) -> None:
        self._lock = Lock()
        self._base = formats or builtin_formats()
        self._registered: dict[str, ReasoningFormat] = {}
        self._patterns: list[tuple[str, str]] = []
        self._formats = self._base
        self._pool: dict[str, ReasoningFormat] = {}

    @property
    def formats(self) -> FormatRegistry:
        """All formats that are known by now."""
        return self._formats

    def create(
        self,
        model_id: str,
        *,
        starts_inside: bool | None = None,
        prompt: str | None = None,
        toggles: Toggles | None = None,
    ) -> ReasoningParser:
        """Return a parser for one reply of this model; without a known format its text is all answer.

        `starts_inside`, `prompt` and `toggles` are those of `open_parser`.
        """
        return _open_parser(self._formats.for_model(model_id), starts_inside, prompt, toggles)

    def get_pooled(
        self,
        model_id: str,
        *,
        starts_inside: bool | None = None,
        prompt: str | None = None,
        toggles: Toggles | None = None,
    ) -> ReasoningParser:
        """Do what `create` does, and remember which format the model has."""
        with self._lock:
            row = self._pool.get(model_id) or self._remember(model_id)
        return _open_parser(row, starts_inside, prompt, toggles)

    def register_parser(self, name: str, creator: Creator) -> None:
        """Add a parser, or replace the one of that name. `creator` returns a new parser at every call."""
        self.register_format(ClassFormat(name=name, creator=creator))

    def register_format(self, row: ReasoningFormat) -> None:
        """Add a format by its row, with its patterns, or replace the one of that name."""
        with self._lock:
            self._registered[canonical(row.name)] = row
            self._renew()

    def register_pattern(self, pattern: str, name: str) -> None:
        """Use the parser `name` for models with an id that holds `pattern`, which may be a glob.

        Of several patterns that fit, the one registered first counts. Raises UnknownFormat.
        """
        with self._lock:
            self._formats.find(name)
            self._patterns.append((pattern, name))
            self._renew()

    def clear_pool(self) -> None:
        """Forget which formats the models have; replies that are being read go on."""
        with self._lock:
            self._pool.clear()

    def _renew(self) -> None:
        self._formats = self._base.with_rows(self._registered.values()).with_patterns(self._patterns)
        self._pool.clear()

    def _remember(self, model_id: str) -> ReasoningFormat:
        # Clients choose model ids, so the pool must not grow with them.
        if len(self._pool) >= POOL_LIMIT:
            self._pool.pop(next(iter(self._pool)))
        self._pool[model_id] = self._formats.for_model(model_id)
        return self._pool[model_id]
