"""Ask a server what it knows of its models' thinking and features: one adapter for each kind of server.

The adapters are rows of `catalog/data/introspection.toml`; the features are those of `features.toml`.
"""

from __future__ import annotations

import asyncio
import re
import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import cache
from importlib.resources import files
from typing import Any
from urllib.parse import quote

import msgspec
import tomli

from bardo.adapters.net.client import Call, Deadlines, Transport
from bardo.adapters.net.keys import Keyring
from bardo.dialects.shared.json_values import decode_leniently
from bardo.planning.route import Provider
from bardo.services.facts.introspect.answer_values import (
    Answers,
    NotAnAnswer,
    flag,
    inside,
    listed,
    lowered_strings,
    rows_by_id,
)
from bardo.services.facts.introspect.live import LiveFacts
from bardo.services.facts.introspect.readers import READERS
from bardo.values.errors import BardoError, ConfigError, MalformedReply

StatedFeatures = tuple[tuple[str, bool], ...]
"""Features by name, and whether the model has them."""


class FeatureWord(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Where a server says whether a model has a feature: at a dotted `path`, true or false, or a `word`, alone or in a list."""

    name: str
    path: str
    word: str = ""

    def read(self, row: dict[str, Any]) -> bool | None:
        """Return whether the model has it, or None if the row does not say."""
        value = inside(row, *self.path.split("."))
        if not self.word:
            return flag(value)
        words = [value] if isinstance(value, str) else value
        return self.word in lowered_strings(words) if isinstance(words, list) else None


class FeatureWords(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Where the answer to a question says of features. `list` and `ids` name the list of models and the fields of their ids; without them
    the answer is about the model that was asked for.
    """

    question: str
    say: tuple[FeatureWord, ...]
    list: str = ""
    ids: tuple[str, ...] = ()

    def read(self, answers: Answers, model: str) -> dict[str, StatedFeatures]:
        """Return the stated features, by model."""
        body = answers.get(self.question)
        if not self.list:
            return {model: self._read_features(body)} if isinstance(body, dict) else {}
        try:
            rows = listed(body, self.list)
        except NotAnAnswer:
            return {}
        return {name: self._read_features(row) for name, row in rows_by_id(rows, *self.ids)}

    def _read_features(self, row: dict[str, Any]) -> StatedFeatures:
        read = ((word.name, word.read(row)) for word in self.say)
        return tuple([(name, has) for name, has in read if has is not None])


def read_features(places: Sequence[FeatureWords], answers: Answers, model: str) -> dict[str, StatedFeatures]:
    """Return what the answers say of features, by model."""
    by_model: dict[str, StatedFeatures] = {}
    for place in places:
        for name, words in place.read(answers, model).items():
            by_model[name] = (*by_model.get(name, ()), *words)
    return by_model


MODEL = "$model"


class Question(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """One request. `path` is relative to the base URL; `$model` in it, and in `body`, is the model's id. With a body it is a POST.

    `optional`: servers that do not know this path still answer the others. `reads`: it is asked only where the chat template that an
    earlier answer holds reads this variable.
    """

    name: str
    path: str
    body: dict[str, Any] | None = None
    optional: bool = False
    reads: str = ""

    def due(self, answers: Mapping[str, Any]) -> bool:
        """Whether the question is worth asking after these answers."""
        if not self.reads:
            return True
        templates = (inside(body, "chat_template") for body in answers.values())
        # An attribute of a message, or a word in quotes, is no variable.
        variable = re.compile(rf"(?<![.\w'\"]){re.escape(self.reads)}(?![\w'\"])")
        return any(isinstance(template, str) and variable.search(template) for template in templates)

    def url(self, provider: Provider, model: str) -> str:
        """Return the address of the question at a provider."""
        return provider.url(self.path.replace(MODEL, quote(model, safe="")))

    def content(self, model: str) -> bytes:
        """Return the request's body, empty where there is none."""
        return b"" if self.body is None else msgspec.json.encode(_filled(self.body, model))


class Adapter(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """How to ask the servers of some provider rows. `name` is the reader of their answers.

    `per_model`: an answer is about one model; else it is a list of all. `restarts`: it is a server of weights, which may be started anew
    with others. `background`: it says nothing that decides how the model is told to think, so that no call waits for it. `features` are
    where the answers say what else a model can do.
    """

    name: str
    providers: tuple[str, ...]
    questions: tuple[Question, ...]
    per_model: bool = False
    restarts: bool = False
    background: bool = False
    features: tuple[FeatureWords, ...] = ()

    def read(self, answers: Mapping[str, Any], model: str) -> dict[str, LiveFacts]:
        """Return facts by model id, with the stated features. Raises NotAnAnswer."""
        facts = READERS[self.name](answers, model)
        features = read_features(self.features, answers, model)
        return {
            name: msgspec.structs.replace(stated, features=features[name]) if features.get(name) else stated
            for name, stated in facts.items()
        }


def _filled(value: Any, model: str) -> Any:
    if isinstance(value, dict):
        return {name: _filled(inner, model) for name, inner in value.items()}
    if isinstance(value, list):
        return [_filled(inner, model) for inner in value]
    return model if value == MODEL else value


@cache
def builtin_adapters() -> dict[str, Adapter]:
    """Return the adapters that come with bardo, by the ids of the provider rows they are for."""
    source = files("bardo.catalog").joinpath("data/introspection.toml").read_text(encoding="utf-8")
    try:
        adapters = msgspec.convert(tomli.loads(source)["adapter"], list[Adapter])
    except msgspec.ValidationError as problem:
        raise ConfigError(f"introspection.toml: {problem}") from problem
    return by_provider(adapters)


def by_provider(adapters: Iterable[Adapter]) -> dict[str, Adapter]:
    """Return adapters by provider row. Raises ConfigError for one without a reader of its answers."""
    by_name: dict[str, Adapter] = {}
    for adapter in adapters:
        if adapter.name not in READERS:
            raise ConfigError(f"introspection.toml: no reader is called {adapter.name!r}")
        by_name |= dict.fromkeys(adapter.providers, adapter)
    return by_name


_MOST_BYTES = 16 * 1024 * 1024


async def ask(
    adapter: Adapter,
    provider: Provider,
    model: str,
    *,
    transport: Transport,
    keyring: Keyring,
    seconds: float,
    clock: Callable[[], float] = time.time,
) -> dict[str, LiveFacts]:
    """Return facts by model id. Raises BardoError, or TimeoutError after `seconds` for all questions together."""
    deadlines = Deadlines(connect=min(2.0, seconds), first_byte=seconds, idle=seconds)
    answers: dict[str, Any] = {}
    async with asyncio.timeout(seconds):
        # One after the other: a server with one slot renders one prompt at a time.
        for question in adapter.questions:
            if not question.due(answers):
                continue
            content = question.content(model)
            headers = {**provider.row.headers, "accept": "application/json"}
            if content:
                headers["content-type"] = "application/json"
            method = "POST" if content else "GET"
            call = Call(
                method=method, url=question.url(provider, model), headers=headers, body=content, provider=provider.id
            )
            answer = await _answer(keyring.sign(call, provider, clock=clock), question, transport, deadlines)
            if answer is not None:
                answers[question.name] = answer
    try:
        return adapter.read(answers, model)
    except NotAnAnswer as problem:
        raise MalformedReply(f"{problem}", provider=provider.id) from problem


async def _answer(call: Call, question: Question, transport: Transport, deadlines: Deadlines) -> Any:
    """Return a parsed body, or None if an optional question is not known there, or not understood."""
    reply = await transport.send(call, deadlines)
    try:
        body = await reply.read(_MOST_BYTES)
    finally:
        await reply.close()
    if reply.status == 200:
        try:
            return decode_leniently(body)
        except ValueError as problem:
            if not question.optional:
                raise MalformedReply(f"its answer is no JSON: {problem}", provider=call.provider) from problem
    if question.optional:
        return None
    raise MalformedReply(f"it answered with status {reply.status}", provider=call.provider)


def why_not(problem: BaseException) -> str:
    """Return in a few words why nothing was learnt."""
    if isinstance(problem, BardoError):
        return problem.message
    return "it took too long" if isinstance(problem, TimeoutError) else f"a mistake in bardo: {type(problem).__name__}"
