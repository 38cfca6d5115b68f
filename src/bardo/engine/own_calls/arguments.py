"""Judge the arguments of a call by the JSON Schema of its tool."""

from __future__ import annotations

from collections.abc import Sequence

from bardo.context.own_functions import CheckArguments
from bardo.structured.judging import TooMuchWork
from bardo.structured.validation import checker
from bardo.values.errors import InvalidRequest


def argument_failures(asked: CheckArguments) -> Sequence[str]:
    """Return what of the arguments does not fit, as sentences. A client's schema that is none is not held against the model."""
    try:
        return [
            f"{one.path or 'the arguments'}: {one.message}" for one in checker(asked.schema).failures(asked.arguments)
        ]
    except InvalidRequest:
        return ()
    except TooMuchWork as problem:
        return (f"the arguments cannot be judged by their schema: {problem}",)
