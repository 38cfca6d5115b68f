"""Embed texts with a model in ONNX that the user has: a folder with `model.onnx` and `tokenizer.json`.

onnxruntime and tokenizers come with the extra `bardo[onnx]`, and are loaded with the first folder. A model takes `input_ids`, and
`attention_mask` and `token_type_ids` where it has them, as Hugging Face's exports do, and gives one vector or one for each token.
"""

from __future__ import annotations

import hashlib
import importlib
import math
from pathlib import Path
from types import ModuleType
from typing import Any

from bardo.adapters.config.paths import is_file, is_folder
from bardo.embedding.static_embedding import shortened
from bardo.values.errors import ConfigError
from bardo.values.request import how_to_install

MODEL, TOKENIZER = "model.onnx", "tokenizer.json"
MOST_TOKENS = 512
MOST_DIMENSIONS = 4_096
MOST_MODEL_BYTES = 2 * 1024**3
_INPUTS = ("input_ids", "attention_mask", "token_type_ids")
# Exports of sentence-transformers name the pooled vector so; others have the vectors of tokens first.
_POOLED = "sentence_embedding"
_EXTRA = f"{how_to_install('onnx')}, or leave out embedding"
_TYPES = {"tensor(int64)": "int64", "tensor(int32)": "int32"}
_SHAPE = "name a model that gives one vector, or one for each token"


class OnnxEmbedding:
    """Embeds texts with a model of a folder. Calls may come from any thread; each takes milliseconds. Raises ConfigError."""

    slow = True

    def __init__(self, folder: Path, *, setting: str = "[routing] embedding") -> None:
        onnxruntime, tokenizers = _library("onnxruntime", setting), _library("tokenizers", setting)
        self._numpy = _library("numpy", setting)
        model, tokenizer = model_files(folder, setting)
        self._folder = folder
        self.fingerprint = _fingerprint(model, tokenizer)
        self._tokenizer = _tokenizer(tokenizers, tokenizer)
        self._session = _session(onnxruntime, model)
        types = {argument.name: _TYPES.get(argument.type) for argument in self._session.get_inputs()}
        for name, kind in types.items():
            if name not in _INPUTS or kind is None:
                hint = f"name a model of texts, which takes whole numbers as {', '.join(_INPUTS)}"
                raise ConfigError(f"{model} takes the input {name!r}, which a tokenizer does not give", hint=hint)
        self._types = {name: kind for name, kind in types.items() if kind is not None}
        names = [output.name for output in self._session.get_outputs()]
        self._output = _POOLED if _POOLED in names else names[0]
        self.dimensions = self._measured()

    def embed(self, text: str) -> tuple[float, ...]:
        """Return a vector of length 1; all components are 0 where the text has no token, or the model gives no number.

        Of a long text the beginning and the end count, and of these the first `MOST_TOKENS` tokens, or as many as the tokenizer allows.
        """
        encoded = self._tokenizer.encode(shortened(text))
        if not encoded.ids:
            return (0.0,) * self.dimensions
        vector = self._vector(encoded)
        length = math.sqrt(sum(value * value for value in vector))
        if not math.isfinite(length) or length == 0:
            return (0.0,) * self.dimensions
        return tuple(value / length for value in vector)

    def _vector(self, encoded: Any) -> list[float]:
        """Run the model. Raises ConfigError for an output of another shape than a vector, or one for each token."""
        given = dict(zip(_INPUTS, (encoded.ids, encoded.attention_mask, encoded.type_ids), strict=True))
        feed = {name: self._numpy.array([given[name]], dtype=kind) for name, kind in self._types.items()}
        (output,) = self._session.run([self._output], feed)
        shape = tuple(getattr(output, "shape", ()))
        if len(shape) == 3 and shape[:2] == (1, len(encoded.ids)):
            weights = self._numpy.array(encoded.attention_mask, dtype="float32")
            output = (output[0] * weights[:, None]).sum(axis=0, keepdims=True) / max(1.0, float(weights.sum()))
        elif len(shape) != 2 or shape[0] != 1:
            tokens = len(encoded.ids)
            message = (
                f"{self._folder / MODEL} gives an output of shape {shape} for {tokens} tokens, which is no embedding"
            )
            raise ConfigError(message, hint=_SHAPE)
        return [float(value) for value in output[0]]

    def _measured(self) -> int:
        """Return how many components a vector has, of a short and of the longest text. Raises ConfigError where these do not do."""
        sizes = set()
        for text in ("a", "a " * MOST_TOKENS * 2):
            encoded = self._tokenizer.encode(text)
            try:
                sizes.add(len(self._vector(encoded)))
            except ConfigError:
                raise
            except Exception as problem:
                message = f"{self._folder / MODEL} fails on a text of {len(encoded.ids)} tokens: {_brief(problem)}"
                hint = f"name a model that fits its {TOKENIZER}; a truncation there bounds the tokens of a text"
                raise ConfigError(message, hint=hint) from problem
        size = sizes.pop()
        if sizes or not 0 < size <= MOST_DIMENSIONS:
            message = f"{self._folder / MODEL} gives vectors of {size} components"
            hint = f"name a model whose vectors all have the same number of components, {MOST_DIMENSIONS:,} at most"
            raise ConfigError(message, hint=hint)
        return size


def model_files(folder: Path, setting: str) -> tuple[Path, Path]:
    """Return the files of the model and of its tokenizer. Raises ConfigError, naming the setting, where they are not there."""
    return _file(folder, MODEL, setting), _file(folder, TOKENIZER, setting)


def _library(name: str, setting: str) -> ModuleType:
    try:
        return importlib.import_module(name)
    except ImportError as problem:
        message = f"{setting} needs {name}, which cannot be imported: {problem}"
        raise ConfigError(message, hint=f"{_EXTRA} under {setting.partition(' ')[0]}") from problem


def _file(folder: Path, name: str, setting: str) -> Path:
    if not is_folder(folder):
        hint = f"name a folder with {MODEL} and {TOKENIZER}"
        raise ConfigError(f"{setting}: there is no folder {folder}", hint=hint)
    path = folder / name
    if not is_file(path):
        hint = f"put the model's {name} there: the folder needs {MODEL} and {TOKENIZER}"
        raise ConfigError(f"{setting}: {folder} has no {name}", hint=hint)
    if path.stat().st_size > MOST_MODEL_BYTES:
        raise ConfigError(f"{path} has more than {MOST_MODEL_BYTES:,} bytes", hint="name a smaller model")
    return path


def _fingerprint(*paths: Path) -> str:
    """Return a name for what vectors depend on: the contents of the files."""
    digest = hashlib.sha256()
    for path in paths:
        with path.open("rb") as file:
            digest.update(hashlib.file_digest(file, "sha256").digest())
    return f"onnx-{digest.hexdigest()[:16]}"


def _tokenizer(tokenizers: ModuleType, path: Path) -> Any:
    """Return the tokenizer, which cuts texts at `MOST_TOKENS` or where its file says so. Raises ConfigError."""
    try:
        tokenizer = tokenizers.Tokenizer.from_file(str(path))
    except Exception as problem:
        hint = "name a folder with the tokenizer.json that belongs to the model"
        raise ConfigError(f"{path} is no tokenizer: {_brief(problem)}", hint=hint) from problem
    own = (tokenizer.truncation or {}).get("max_length", MOST_TOKENS)
    tokenizer.enable_truncation(max_length=min(own, MOST_TOKENS))
    tokenizer.no_padding()
    return tokenizer


def _session(onnxruntime: ModuleType, path: Path) -> Any:
    """Return the model, ready to run on one thread: a gateway has other work too. Raises ConfigError."""
    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads = options.inter_op_num_threads = 1
    options.log_severity_level = 4
    try:
        return onnxruntime.InferenceSession(str(path), options, providers=["CPUExecutionProvider"])
    except Exception as problem:
        hint = "name a folder with a model in ONNX that this version of onnxruntime can run"
        raise ConfigError(f"{path} is no model that can be run: {_brief(problem)}", hint=hint) from problem


def _brief(problem: Exception) -> str:
    return " ".join(str(problem).split())[:200]
