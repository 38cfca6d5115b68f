"""Encode a request for watsonx text generation: a prompt as `input`, and `parameters`."""

from __future__ import annotations

from bardo.catalog.rows import ProviderRow
from bardo.dialects.shared.control_fields import encode_sampling
from bardo.dialects.shared.declaration import Declaration, limitations
from bardo.dialects.shared.json_values import JsonObject
from bardo.dialects.shared.losses import Losses
from bardo.dialects.watsonx_text.wire import NAME, TITLE
from bardo.values.blocks import RefusalBlock, TextBlock, ToolResultBlock
from bardo.values.request import Request

_VERSION = "2024-05-31"
_SAMPLING = {
    "temperature": "temperature",
    "top_p": "top_p",
    "top_k": "top_k",
    "repetition_penalty": "repetition_penalty",
    "seed": "random_seed",
    "stop": "stop_sequences",
}
"""The sampling parameters by their names here."""

DECLARATION = Declaration(
    dialect=NAME,
    title=TITLE,
    expresses=frozenset(("tool_result", "sampling.top_k", "sampling.repetition_penalty", "sampling.seed")),
    lacks={
        **limitations(
            f"{TITLE} has no such field",
            "tools",
            "tool_choice",
            "output_format",
            "choices",
            "sampling.min_p",
            "sampling.frequency_penalty",
            "sampling.presence_penalty",
        ),
        **limitations(f"{TITLE} takes only text", "image", "document", "reasoning_block", "tool_call"),
        **limitations(f"{TITLE} takes only text", "tool_result.is_error"),
    },
)


def request_path(request: Request) -> str:
    """Return the path, which says whether to stream."""
    return f"text/{'generation_stream' if request.stream else 'generation'}?version={_VERSION}"


def encode_control(request: Request, losses: Losses) -> JsonObject:
    """Return nothing: there is no thinking to control."""
    return {}


def encode_body(request: Request, row: ProviderRow, losses: Losses) -> JsonObject:
    """Return the body. `row.scope` names the project or the space that pays, without which the server refuses a request."""
    losses.own_extra(request)
    limit = {} if request.max_output_tokens is None else {"max_new_tokens": request.max_output_tokens}
    parameters = {**limit, **encode_sampling(request.sampling, _SAMPLING)}
    body = {"model_id": request.model, "input": _prompt(request, losses), **row.scope}
    return {**body, **({"parameters": parameters} if parameters else {})}


def _prompt(request: Request, losses: Losses) -> str:
    """Return all texts as one prompt: there are no roles."""
    roles = {message.role for message in request.messages}
    if len(request.messages) > 1:
        losses.lose("messages.role", sorted(roles), "the texts are one prompt, without roles")
    blocks = [block for message in request.messages for block in message.blocks]
    texts = [block.text for block in blocks if isinstance(block, TextBlock | RefusalBlock | ToolResultBlock)]
    return "\n\n".join(text for text in texts if text)
