"""A mistake in bardo itself costs one request, says so in the client's dialect, and leaves its trace in the log alone."""

from __future__ import annotations

import sqlite3
from collections.abc import Callable, Sequence

import pytest
from sqlalchemy.exc import OperationalError

from bardo.adapters.stores.database.problems import DatabaseUnusable
from bardo.dialects import dialect
from bardo.dialects.shared.dialect import ReplyEncoder
from bardo.surfaces.gateway.context import mistake
from bardo.values.errors import Unavailable
from bardo.values.events import ContentChunk, Event
from bardo.values.request import Request
from bardo.values.wire import Arrival
from support.gateway import House, model_of
from support.mistakes import dialect_with
from support.talk import ALL_CLIENTS, ask
from surfaces.gateway.cells import whole_and_streamed
from surfaces.gateway.refusals import broken, refusal

each_client = pytest.mark.parametrize("client", ALL_CLIENTS)
# A provider of another dialect than the client's, so that nothing is forwarded.
_OTHER = {"openai_chat": "anthropic"}


def model_for(client: str) -> str:
    return model_of(_OTHER.get(client, "deepseek"))


@pytest.mark.parametrize(
    "problem",
    [
        sqlite3.OperationalError("database is locked at /var/lib/secret"),
        OperationalError("SELECT", None, Exception("no route to /var/lib/secret")),
        DatabaseUnusable("the database at /var/lib/secret cannot be used"),
    ],
    ids=["driver", "sqlalchemy", "own"],
)
def test_a_store_that_cannot_be_used_is_no_mistake_of_bardo(
    problem: Exception, caplog: pytest.LogCaptureFixture
) -> None:
    try:
        raise problem
    except type(problem):
        told = mistake("/v1/batches")
    assert (type(told), told.status) == (Unavailable, 503)
    assert "secret" not in f"{told.message}{told.hint}"
    assert "/var/lib/secret" in caplog.text


class Failing:
    """An encoder that fails at the answer's first word."""

    def __init__(self, encoder: ReplyEncoder) -> None:
        self.content_type = encoder.content_type
        self.keep_alive = encoder.keep_alive
        self._encoder = encoder

    def feed(self, item: Event) -> Sequence[bytes]:
        if isinstance(item, ContentChunk):
            raise ZeroDivisionError("inside")
        return self._encoder.feed(item)

    def finish(self) -> Sequence[bytes]:
        return self._encoder.finish()


def failing(opened: Callable[[Request, Arrival], ReplyEncoder]) -> Callable[[Request, Arrival], ReplyEncoder]:
    return lambda request, arrival: Failing(opened(request, arrival))


def raising(*_: object) -> None:
    raise ZeroDivisionError("inside")


@each_client
@pytest.mark.parametrize(
    ("where", "stream"), [("decode_request", False), ("decode_request", True), ("encode_response", False)]
)
def test_a_mistake_before_the_first_byte_is_a_500(
    town: House,
    client: str,
    where: str,
    stream: bool,
    caplog: pytest.LogCaptureFixture,
) -> None:
    with dialect_with(client, **{where: raising}):
        answer = ask(town.address, client, model_for(client), stream=stream)
    assert answer.status == 500
    assert refusal(client, answer) == "bardo failed (the gateway's log says where)"
    assert answer.headers["x-bardo-error"] == "internal_error"
    assert "ZeroDivisionError" not in answer.text
    assert "ZeroDivisionError: inside" in caplog.text
    assert ask(town.address, client, model_for(client), stream=stream).status == 200


@each_client
def test_a_mistake_in_mid_stream_is_an_error_event(town: House, client: str, caplog: pytest.LogCaptureFixture) -> None:
    with dialect_with(client, open_encoder=failing(dialect(client).open_encoder)):
        answer = ask(town.address, client, model_for(client), stream=True, thinks=True)
    assert broken(client, answer) == "bardo failed (the gateway's log says where)"
    assert "ZeroDivisionError: inside" in caplog.text
    row = town.log.row(answer.headers["x-bardo-request-id"])
    assert (row.outcome, row.error_class) == ("error", "InternalError")


@each_client
@whole_and_streamed
def test_a_mistake_on_the_way_to_the_provider_is_noted(town: House, client: str, stream: bool) -> None:
    model = f"{model_for(client)}-{client}-{stream}"
    provider_dialect = "anthropic_messages" if client == "openai_chat" else "openai_chat"
    with dialect_with(provider_dialect, encode_body=raising):
        answer = ask(town.address, client, model, stream=stream)
    assert answer.status == 500
    row = town.log.of_model(model)
    assert (row.outcome, row.error_class) == ("error", "InternalError")
    assert "inside" not in str(row.error_message)
