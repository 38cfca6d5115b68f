"""Exact counts of a prompt's tokens, by the tokenizer files that an operator has for models."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import partial
from typing import Any

from bardo.adapters.config.paths import named_path
from bardo.catalog.matching import matches_any
from bardo.planning.token_counting import estimate_request
from bardo.values.errors import ConfigError
from bardo.values.request import Request, how_to_install

_MOST_MODELS = 512


class TokenizerFiles:
    """Tokenizers by globs of model names; the first glob that fits counts. Needs `bardo[onnx]`, for its package `tokenizers`."""

    def __init__(self, files: Mapping[str, str]) -> None:
        self._loaded = [(glob, _load(path)) for glob, path in files.items()]
        self._known: dict[str, Callable[[Request], int | None] | None] = {}

    def counter(self, model: str) -> Callable[[Request], int | None] | None:
        """Return what counts the prompts of a model, or None if no file is about it."""
        if model not in self._known:
            if len(self._known) >= _MOST_MODELS:
                self._known.clear()
            fitting = next((counter for glob, counter in self._loaded if matches_any(model, (glob,))), None)
            self._known[model] = None if fitting is None else partial(_count, fitting)
        return self._known[model]


def _count(tokenizer: Any, request: Request) -> int:
    return estimate_request(request, lambda text: len(tokenizer.encode(text, add_special_tokens=False).ids))


def _load(path: str) -> Any:
    """Return the tokenizer of a file. Raises ConfigError."""
    setting = "inference.pipeline.prefilter.tokenizers"
    try:
        from tokenizers import Tokenizer
    except ImportError as problem:
        message = f"{setting} needs the package tokenizers"
        raise ConfigError(message, hint=how_to_install("onnx")) from problem
    try:
        return Tokenizer.from_file(str(named_path(path)))
    except Exception as problem:
        raise ConfigError(
            f"{setting}: {path} is no tokenizer: {problem}"[:400], hint="name a tokenizer.json"
        ) from problem
