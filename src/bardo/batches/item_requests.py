"""One item of a batch as a request: how it is asked, and how its reply is written for the client."""

from __future__ import annotations

from collections.abc import Callable
from typing import TypeVar

import msgspec

from bardo.batches.records import BatchRecord
from bardo.call.second_calls import escalations_of
from bardo.call.services import Services
from bardo.planning.knowledge import Knowledge
from bardo.planning.model_names import with_alias_fields, with_display, with_effort
from bardo.planning.route import Target
from bardo.planning.workloads import VERIFICATION, judge_of
from bardo.services.facts.directory import ProviderDirectory
from bardo.values.degradation import Degradation
from bardo.values.operations import Embeddings, EmbedRequest
from bardo.values.request import Request, StructuredOptions
from bardo.values.response import Response


class GenerateItem(msgspec.Struct, frozen=True, kw_only=True):
    """An item that asks for a reply. `encode` writes it for the client."""

    request: Request
    encode: Callable[[Response, Request], bytes]


class EmbedItem(msgspec.Struct, frozen=True, kw_only=True):
    """An item that asks for vectors. `encode` writes them for the client."""

    request: EmbedRequest
    encode: Callable[[Embeddings, EmbedRequest], bytes]


ItemRequest = GenerateItem | EmbedItem
ItemReader = Callable[[bytes, BatchRecord], ItemRequest]
"""Reads the body of an item of a batch. Raises InvalidRequest and Unsupported."""


def knowledge_of(services: Services, target: Target) -> Knowledge:
    """Return the facts for a call in a batch: bardo cannot search the web for the model while it answers."""
    return msgspec.structs.replace(services.facts.knowledge([target]), search=None)


AnyRequest = TypeVar("AnyRequest", Request, EmbedRequest)


def with_rules(request: AnyRequest, batch: BatchRecord) -> AnyRequest:
    """Return a request with the profile of layers that its key says: an item cannot leave it, since its key is not there any more."""
    named = next((rule.pipeline for rule in batch.rules if rule.pipeline), "")
    if not named:
        return request
    return msgspec.structs.replace(
        request, options=msgspec.structs.replace(request.options, pipeline=named, pipeline_by_operator=True)
    )


def settled_request(request: Request, directory: ProviderDirectory, batch: BatchRecord) -> tuple[Request, Request]:
    """Return a request as its reply is shown, and as it is asked, with what its model's name and its key's rules say.

    A model is asked once: no answer is repaired, escalated or judged by another, since no client waits for a second answer.
    """
    request = with_rules(request, batch)
    meaning = directory.meaning_of(request.model)
    options, lost = request.options, list(request.degraded)
    structured = options.structured or StructuredOptions()
    if structured.retries:
        lost.append(Degradation("structured.retries", structured.retries, 0, why="a batch asks each model once"))
    workload = directory.workloads.of_call(options.intent, meaning.model)
    if escalations_of(options, workload):
        lost.append(Degradation("escalation", why="a batch asks each model once"))
    if judge_of(options, workload) is not None:
        lost.append(Degradation(VERIFICATION, why="a batch asks each model once"))
    structured = msgspec.structs.replace(structured, retries=0)
    options = msgspec.structs.replace(options, structured=structured, verify="")
    once = msgspec.structs.replace(request, options=options, degraded=tuple(lost))
    shown = with_display(once, meaning, batch.rules)
    return shown, with_alias_fields(with_effort(shown, meaning, batch.rules), meaning)
