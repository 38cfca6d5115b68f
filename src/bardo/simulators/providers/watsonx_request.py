"""Read a watsonx text generation request, refusing what IBM refuses.

IBM also wants a `project_id` or a `space_id`. This server takes a request without one, as a deployment's own address does: who asks
through a gateway in another dialect has no place for it.
"""

from __future__ import annotations

from bardo.simulators.conversation import Conversation
from bardo.simulators.fields import Fields, fields, text
from bardo.simulators.incoming import Incoming
from bardo.simulators.refusal import Refusal

# Each parameter that is a number, with the least and the most IBM's page gives it (as of 2026-11-20).
_BOUNDS: dict[str, tuple[float, float]] = {
    "temperature": (0.0, 2.0),
    "top_p": (0.0, 1.0),
    "top_k": (1, 100),
    "repetition_penalty": (1.0, 2.0),
    "max_new_tokens": (0, 1_000_000),
}
_METHODS = ("greedy", "sample")


def read(incoming: Incoming, *, streamed: bool) -> Conversation:
    """Read what the request says. Raises Refusal."""
    if not incoming.query.get("version"):
        raise Refusal("missing_field", "Missing required query parameter: version", parameter="version")
    if not isinstance(incoming.body, dict):
        raise Refusal("bad_json", "Json document validation error: the body is not a JSON object")
    body = incoming.fields
    prompt = _required(body, "input")
    model = _required(body, "model_id")
    _check(fields(body.get("parameters")))
    return Conversation(model=model, question=prompt, streamed=streamed, characters=len(prompt))


def _required(body: Fields, name: str) -> str:
    value = text(body.get(name))
    if not value:
        raise Refusal("missing_field", f"Json document validation error: {name} should not be blank", parameter=name)
    return value


def _check(parameters: Fields) -> None:
    method = parameters.get("decoding_method")
    if method is not None and method not in _METHODS:
        raise _invalid("decoding_method", f"should be one of {', '.join(_METHODS)}")
    for name, (least, most) in _BOUNDS.items():
        value = parameters.get(name)
        if value is None:
            continue
        if not isinstance(value, int | float) or isinstance(value, bool):
            raise _invalid(name, "should be a number")
        if value < least:
            raise _invalid(name, f"should not be less than {least}")
        if value > most:
            raise _invalid(name, f"should not be greater than {most}")


def _invalid(name: str, words: str) -> Refusal:
    path = f"parameters.{name}"
    return Refusal("bad_value", f"Json document validation error: {path} {words}", parameter=path)
