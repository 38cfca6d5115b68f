"""Events to the stream of a Responses client, in the order OpenAI's own servers keep.

What bardo itself has to say stands in the last frame, under `bardo` in the finished response.
"""

from __future__ import annotations

from collections.abc import Sequence

from bardo.dialects.openai_responses.block_stream import BLOCKS, BlockStream
from bardo.dialects.openai_responses.envelope import Envelope
from bardo.dialects.openai_responses.errors import error_object
from bardo.dialects.openai_responses.function_names import FunctionNames
from bardo.dialects.openai_responses.item_stream import ItemIds, ItemStream
from bardo.dialects.openai_responses.state import asks_summary
from bardo.dialects.openai_responses.whole_items import WholeOutput
from bardo.dialects.text_states import with_late_state
from bardo.dialects.wire import encode_json
from bardo.streams.sse import KEEP_ALIVE
from bardo.values.events import Event, Failed, ReplyStart
from bardo.values.request import Request
from bardo.values.response import Response


class ReplyWriter:
    """Writes one streamed reply."""

    content_type = "text/event-stream"
    keep_alive = KEEP_ALIVE

    def __init__(self, request: Request) -> None:
        self._envelope = Envelope(request)
        self._stream = ItemStream(ItemIds(lambda: self._envelope.id))
        self._blocks = BlockStream(self._stream, FunctionNames(request), as_summary=asks_summary(request))
        self._begun = self._over = False

    def feed(self, item: Event) -> Sequence[bytes]:
        """Take one event."""
        take = BLOCKS.get(type(item))
        if take is None:
            return self._take(item)
        return take(self._blocks, item) if self._begun else [*self._begin(), *take(self._blocks, item)]

    def finish(self) -> Sequence[bytes]:
        """Close what is open, and end the stream. After a failure there is nothing left to say."""
        if self._over:
            return ()
        self._over = True
        out = self._begin()
        if self._blocks.close(self._envelope.item_status, out):
            self._envelope.extension = with_late_state(self._envelope.extension)
        response = self._envelope.closing(self._stream.output())
        ending = response["status"] if response["status"] in ("incomplete", "failed") else "completed"
        self._stream.write(f"response.{ending}", {"response": response}, out)
        return out

    def _take(self, event: Event) -> Sequence[bytes]:
        if type(event) is Failed:
            return self._fail(event)
        self._envelope.take(event)
        return self._begin() if type(event) is ReplyStart else ()

    def _begin(self) -> list[bytes]:
        out: list[bytes] = []
        if not self._begun:
            self._begun = True
            for name in ("response.created", "response.in_progress"):
                self._stream.write(name, {"response": self._envelope.opening()}, out)
        return out

    def _fail(self, event: Failed) -> Sequence[bytes]:
        """End the stream. Where it never began, frames were forwarded, and the client has been told of a response already."""
        out: list[bytes] = []
        self._over = True
        self._blocks.settle(out)
        self._envelope.error = event.error
        told = error_object(event.error)
        # Typed clients read the flat fields; OpenAI's servers write the object.
        flat = {"code": told["code"], "message": told["message"], "param": told["param"]}
        self._stream.write("error", {**flat, "error": told}, out)
        self._stream.write(
            "response.failed", {"response": self._envelope.closing(self._stream.output_of_failed())}, out
        )
        return out


def encode_response(response: Response, request: Request) -> bytes:
    """Write one whole reply; `response.bardo` stands under `bardo` where it is not empty."""
    envelope = Envelope.of(response, request)
    output = WholeOutput(ItemIds(lambda: envelope.id), request)
    return encode_json(envelope.closing(output.items(response.blocks, envelope.item_status)))
