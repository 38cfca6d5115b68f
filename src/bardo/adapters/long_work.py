"""Work at a long request or reply, away from the event loop: what needs milliseconds for each 100 KB would keep all other calls waiting."""

from __future__ import annotations

import asyncio
import gc
from collections.abc import AsyncIterator, Callable, Iterable
from concurrent.futures import ThreadPoolExecutor
from typing import TypeVar

from bardo.values.blocks import ReasoningBlock, TextBlock, ToolCallBlock
from bardo.values.request import Request
from bardo.values.response import Response

LONG_BYTES = 512 * 1024
"""From this size on work goes to a thread; shorter work takes less than twenty milliseconds in all, and does not wait.

Each way to a thread and back costs a tenth of a millisecond, and a request takes eight.
"""
_FEW_BYTES = 64 * 1024
# Reading an object into values takes as long as reading so many bytes of text.
_OBJECT_BYTES = 64
_MANY_MESSAGES, _MANY_PARTS = 1_000, 2_000
_MANY_BLOCKS = 500
_SLICE = 100
# One thread: several long requests wait for each other, and share the processor with those that are short.
_LONG_WORK = ThreadPoolExecutor(1, thread_name_prefix="bardo-long")

Result = TypeVar("Result")
Item = TypeVar("Item")


async def run_by_size(size: int, work: Callable[[], Result]) -> Result:
    """Return what `work` gives at something of so many bytes, done in a thread where they are many. Raises what it raises."""
    if size < LONG_BYTES:
        return work()
    return await asyncio.get_running_loop().run_in_executor(_LONG_WORK, without_collection, work)


async def in_slices(items: Iterable[Item]) -> AsyncIterator[Item]:
    """Yield what a loop works at on the event loop: after some hundred of them others have a turn."""
    for place, item in enumerate(items, 1):
        yield item
        if place % _SLICE == 0:
            await asyncio.sleep(0)


def size_of_body(body: bytes) -> int:
    """Return by what size a JSON body is read: its bytes, and more for each object in it, since thousands of them may be short."""
    size = len(body)
    return size if size < _FEW_BYTES or size >= LONG_BYTES else size + _OBJECT_BYTES * body.count(b"{")


def size_of(request: Request) -> int:
    """Return by what size the work at a request is done: that of its body, or a large one where it has very many messages or parts."""
    messages = request.messages
    many = len(messages) > _MANY_MESSAGES
    many = many or len(request.tools) + sum([len(message.blocks) for message in messages]) > _MANY_PARTS
    return max(len(request.body_bytes), LONG_BYTES if many else 0)


def size_of_reply(response: Response) -> int:
    """Return by what size the work at a reply is done: that of what the model wrote, or a large one where it has very many blocks."""
    if len(response.blocks) > _MANY_BLOCKS:
        return LONG_BYTES
    size = 0
    for block in response.blocks:
        if isinstance(block, ToolCallBlock):
            size += len(block.arguments)
        elif isinstance(block, TextBlock | ReasoningBlock):
            size += len(block.text)
    return size


def without_collection(work: Callable[[], Result]) -> Result:
    """Do work without the collection of garbage: it stops all threads, to look at values of which none is garbage."""
    collects = gc.isenabled()
    gc.disable()
    try:
        return work()
    finally:
        if collects:
            gc.enable()
