"""Open a parser for a reply, by the name of a format or by the id of a model.

Only recipes are kept and shared, and they never change: every reply gets a parser of its own.
"""

from collections.abc import Callable, Iterable
from functools import partial
from threading import Lock

from bardo.reasoning.formats import (
    ReasoningFormat,
    UnknownFormat,
    canonical,
    find_format,
    fits,
    format_for_model,
    formats,
)
from bardo.reasoning.parser import ReasoningParser

Creator = Callable[[], ReasoningParser]

DEFAULT_FORMAT = "think"
POOL_LIMIT = 1024


def open_parser(
    format: str | ReasoningFormat | None = None,  # noqa: A002
    model: str | None = None,
    starts_inside: bool | None = None,
) -> ReasoningParser:
    """Return a parser for one reply in `format`, or else in the format of `model`, or else of inline think tags.

    `starts_inside` says whether the prompt ended inside a block, which formats with `starts_inside = "prompt"`
    cannot know. The text of a model without a format is all answer. Raises UnknownFormat.
    """
    return ReasoningParser(format=_chosen(format, model), starts_inside=starts_inside)


def _chosen(named: str | ReasoningFormat | None, model: str | None) -> ReasoningFormat:
    if isinstance(named, ReasoningFormat):
        return named
    if named is None and model is not None:
        return format_for_model(model)
    return find_format(named or DEFAULT_FORMAT)


class ReasoningParserFactory:
    """Knows the built-in formats, and the parsers and patterns that were registered, which come first.

    Safe to use from many threads.
    """

    def __init__(self) -> None:
        self._lock = Lock()
        self._creators: dict[str, Creator] = {}
        self._patterns: list[tuple[str, str]] = []
        self._pool: dict[str, Creator] = {}

    def create(self, model_id: str) -> ReasoningParser:
        """Return a parser for one reply of this model; without a known format its text is all answer."""
        with self._lock:
            creator = self._find(model_id)
        return creator()

    def get_pooled(self, model_id: str) -> ReasoningParser:
        """Do what `create` does, and remember which parser the model needs."""
        with self._lock:
            creator = self._pool.get(model_id) or self._remember(model_id)
        return creator()

    def register_parser(self, name: str, creator: Creator) -> None:
        """Add a parser, or replace the one of that name. `creator` returns a new parser at every call."""
        with self._lock:
            self._creators[canonical(name)] = creator
            self._pool.clear()

    def register_format(self, row: ReasoningFormat) -> None:
        """Add a format by its row, with its patterns."""
        self.register_parser(row.name, partial(ReasoningParser, format=row))
        for pattern in row.patterns:
            self.register_pattern(pattern, row.name)

    def register_pattern(self, pattern: str, name: str) -> None:
        """Use the parser `name` for models with an id that holds `pattern`, which may be a glob.

        Of several patterns that fit, the one registered first counts. Raises UnknownFormat.
        """
        with self._lock:
            self._named(name)
            self._patterns.append((pattern, name))
            self._pool.clear()

    def clear_pool(self) -> None:
        """Forget which parsers the models need; replies that are being read go on."""
        with self._lock:
            self._pool.clear()

    def _remember(self, model_id: str) -> Creator:
        # Clients choose model ids, so the pool must not grow with them.
        if len(self._pool) >= POOL_LIMIT:
            self._pool.pop(next(iter(self._pool)))
        self._pool[model_id] = self._find(model_id)
        return self._pool[model_id]

    def _find(self, model_id: str) -> Creator:
        chosen = (name for pattern, name in self._patterns if fits(pattern, model_id))
        return self._named(next(chosen, None) or format_for_model(model_id).name)

    def _named(self, name: str) -> Creator:
        if creator := self._creators.get(canonical(name)):
            return creator
        try:
            return partial(ReasoningParser, format=find_format(name))
        except UnknownFormat as error:
            raise UnknownFormat(name, self._names()) from error

    def _names(self) -> Iterable[str]:
        return [*self._creators, *formats()]
