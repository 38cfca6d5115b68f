"""What can be asked of a model beside a reply: vectors of texts, a count of tokens, and which models there are."""

from __future__ import annotations

from base64 import b64decode, b64encode
from struct import Struct, error
from typing import Any, Literal, TypeAlias

import msgspec

from bardo.values.degradation import Degradation
from bardo.values.request import BardoOptions, Operation
from bardo.values.usage import Usage

Task = Literal[
    "query",
    "document",
    "similarity",
    "classification",
    "clustering",
    "question_answering",
    "fact_verification",
    "code_query",
]
"""What the vectors are for: some models make other vectors of a question than of the text that answers it."""
TASKS: tuple[Task, ...] = (
    "query",
    "document",
    "similarity",
    "classification",
    "clustering",
    "question_answering",
    "fact_verification",
    "code_query",
)


class NativeInput(msgspec.Struct, frozen=True):
    """An input that only its own dialect can say, such as a picture."""

    dialect: str
    value: Any


EmbedInput: TypeAlias = str | tuple[int, ...] | NativeInput
"""A text, the tokens of one, or something else that has a vector."""
Vector: TypeAlias = list[float] | str
"""The numbers, or little-endian 32-bit floats in base64, as OpenAI's dialect may send them."""


class EmbedRequest(msgspec.Struct, frozen=True, kw_only=True):
    """A call for the vectors of some inputs.

    `encoding` is how the client wants to read them. `truncate` says which end of an input that is too long is cut off; None leaves that to
    the provider. `endpoint` is which of its dialect's endpoints the request came by: Gemini and Ollama have two. `part_of` is where in a
    larger request the inputs begin that was cut into several; None for a whole one. `extra`, `body` and `options` are those of a Request.
    """

    model: str
    inputs: tuple[EmbedInput, ...]
    dimensions: int | None = None
    encoding: Literal["float", "base64"] = "float"
    task: Task | None = None
    truncate: Literal["none", "start", "end"] | None = None
    endpoint: str = ""
    part_of: int | None = None
    dialect: str = ""
    extra: dict[str, Any] = {}
    body: dict[str, Any] | None = None
    options: BardoOptions = BardoOptions()


class Embeddings(msgspec.Struct, frozen=True, kw_only=True):
    """The vectors of some inputs, in their order. `bardo` holds the call's ids, cost and receipt, where they were asked for."""

    vectors: tuple[Vector, ...]
    model: str = ""
    provider: str = ""
    usage: Usage = Usage()
    degraded: tuple[Degradation, ...] = ()
    bardo: dict[str, Any] = {}

    @property
    def dimensions(self) -> int:
        """How many numbers a vector has; 0 where there is no vector."""
        return size_of(self.vectors[0]) if self.vectors else 0


class TokenCount(msgspec.Struct, frozen=True, kw_only=True):
    """How many tokens a request has. `approx`: bardo estimated it, because the provider counts none."""

    input_tokens: int
    approx: bool = False
    provider: str = ""
    model: str = ""
    raw: Any = None
    degraded: tuple[Degradation, ...] = ()


class CompactedConversation(msgspec.Struct, frozen=True, kw_only=True):
    """A conversation as its provider compacted it: the provider's own answer."""

    body: bytes
    model: str = ""
    usage: Usage = Usage()
    degraded: tuple[Degradation, ...] = ()


class ModelInfo(msgspec.Struct, frozen=True, kw_only=True):
    """A model that can be asked for: the name to ask by, who serves it, and what it is for.

    `model` is the provider's own name of it, and `display_name` what people call it, empty where that is the name to ask by.
    `route` says of a name that is no model's what it is: an operator's alias, or a workload, for
    which bardo finds a model. `about` is a sentence for people.
    """

    id: str
    provider: str = ""
    model: str = ""
    operations: tuple[Operation, ...] = ("generate",)
    route: Literal["", "alias", "workload"] = ""
    about: str = ""
    display_name: str = ""


def floats_of(vector: Vector) -> list[float]:
    """Return the numbers of a vector. Raises ValueError for base64 that holds none."""
    if not isinstance(vector, str):
        return vector
    data = b64decode(vector, validate=True)
    try:
        return list(Struct(f"<{len(data) // 4}f").unpack(data))
    except error as problem:
        raise ValueError("its base64 holds no 32-bit numbers") from problem


def base64_of(vector: Vector) -> str:
    """Return a vector in base64. Raises ValueError for a number that 32 bits do not hold."""
    if isinstance(vector, str):
        return vector
    try:
        return b64encode(Struct(f"<{len(vector)}f").pack(*vector)).decode()
    except (error, OverflowError) as problem:
        raise ValueError("a number of the vector is none that 32 bits hold") from problem


def size_of(vector: Vector) -> int:
    """Return how many numbers a vector has."""
    return (len(vector) * 3 // 4 - vector.count("=")) // 4 if isinstance(vector, str) else len(vector)
