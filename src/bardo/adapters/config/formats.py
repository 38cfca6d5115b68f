"""All reasoning formats of an installation: those of `bardo.toml`, those of installed packages, and the built-in ones, in this order.

A package offers a format as an entry point of the group `bardo.reasoning_formats`: a ReasoningFormat, a mapping with its keys, or a class
that reads replies. See `bardo.reasoning.classes`.
"""

from __future__ import annotations

import os
from collections.abc import Mapping
from functools import cache, lru_cache
from pathlib import Path
from typing import TYPE_CHECKING

import msgspec

from bardo.adapters.config.settings import Settings, load_settings, settings_file
from bardo.reasoning.classes import METHODS, ClassFormat
from bardo.reasoning.formats import ReasoningFormat
from bardo.reasoning.registry import FormatRegistry, builtin_formats
from bardo.values.errors import ConfigError

if TYPE_CHECKING:
    from importlib.metadata import EntryPoint

GROUP = "bardo.reasoning_formats"


def known_formats(config: str | Path | Settings | None = None) -> FormatRegistry:
    """Return the formats of a bardo.toml, or of its Settings; None: of `BARDO_CONFIG`, ./bardo.toml, or no file.

    A file is read again when it has changed. Raises ConfigError for a file, or an installed package, that is not as it should be.
    """
    if isinstance(config, Settings):
        return formats_of(config)
    file = settings_file(config, os.environ)
    if file is None:
        return _without_file()
    try:
        status = file.stat()
    except OSError:
        return formats_of(load_settings(file))
    return _of_file(file.absolute(), status.st_mtime_ns, status.st_size)


def formats_of(settings: Settings) -> FormatRegistry:
    """Return the formats that are known with these settings. Raises ConfigError for a broken package."""
    return builtin_formats().with_rows((*settings.reasoning_formats, *installed_formats()))


@cache
def _without_file() -> FormatRegistry:
    return formats_of(Settings())


@lru_cache(maxsize=16)
def _of_file(file: Path, _modified: int, _size: int) -> FormatRegistry:
    return formats_of(load_settings(file))


@cache
def installed_formats() -> tuple[ReasoningFormat, ...]:
    """Return the formats of installed packages, by the names of their entry points.

    Raises ConfigError naming the package that is broken.
    """
    from importlib.metadata import entry_points

    points = sorted(entry_points(group=GROUP), key=lambda point: point.name)
    return tuple(_format_of(point) for point in points)


def _format_of(point: EntryPoint) -> ReasoningFormat:
    try:
        value = point.load()
        if isinstance(value, ReasoningFormat):
            return value
        if isinstance(value, Mapping):
            return msgspec.convert({"name": point.name, **value}, ReasoningFormat)
        if not isinstance(value, type):
            raise TypeError(
                f"a value of type {type(value).__name__} is neither a ReasoningFormat, nor a mapping, nor a class"
            )
        missing = [method for method in METHODS if not callable(getattr(value, method, None))]
        if missing:
            raise TypeError(f"its class has no method {missing[0]}")
        patterns, aliases = getattr(value, "patterns", ()), getattr(value, "aliases", ())
        value()  # One is made for each reply; a class that makes none is refused now.
        if isinstance(patterns, str) or isinstance(aliases, str):
            raise TypeError("its class has a text for patterns or aliases, which are lists of texts")
        if not all(pattern.strip() for pattern in patterns):
            raise TypeError("its class has an empty pattern, which fits every model")
        return ClassFormat(name=point.name, creator=value, patterns=tuple(patterns), aliases=tuple(aliases))
    # Whatever the code of somebody else's package raises is the package's problem.
    except Exception as problem:
        package = point.dist.name if point.dist is not None else point.value
        raise ConfigError(
            f"the reasoning format {point.name!r} of the installed package {package!r} cannot be used: {problem}",
            hint=f"mend {point.value} or uninstall {package}",
        ) from problem
