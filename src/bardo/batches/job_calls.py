"""Send the calls of providers' batch APIs, and say of each failure whether the provider may have taken the call."""

from __future__ import annotations

from collections.abc import AsyncGenerator

import msgspec

from bardo.adapters.net.calls import Call, Reply
from bardo.batches.records import JobRecord
from bardo.call.services import Services
from bardo.catalog.batch_rows import BatchRow, batch_row
from bardo.dialects import dialect
from bardo.dialects.batches import batch_form
from bardo.dialects.batches.base import BatchCall, BatchForm
from bardo.planning.route import Provider, Target, endpoints_of
from bardo.values.errors import BardoError, InternalError, MalformedReply, ProviderError, Unreachable, UpstreamRefused

_ERROR_BYTES = 1024 * 1024
# A refusal with another status means that no job was made.
_UNSURE = (408, 409, 425)
_LATER = (408, 425, 429)


class Place(msgspec.Struct, frozen=True, kw_only=True):
    """Where a job is run: the provider at the endpoint it was planned for, its batch API, and which of its keys the job belongs to."""

    provider: Provider
    row: BatchRow
    form: BatchForm
    key: str = ""


class JobCalls:
    """The calls for jobs, over the transport and with the keys of the gateway."""

    def __init__(self, services: Services) -> None:
        self._services = services

    def place(self, job: JobRecord) -> Place:
        """Return where a job is run. Raises InternalError where its provider is no longer configured."""
        for provider in self._services.directory.providers:
            row = batch_row(provider.row)
            if provider.id == job.provider and row is not None:
                targets = endpoints_of(Target(provider=provider, model=job.model))
                same = (target.provider for target in targets if target.provider.row.dialect == job.dialect)
                return Place(provider=next(same, provider), row=row, form=batch_form(row.form), key=job.key)
        raise InternalError(f"the provider {job.provider} takes no batches here any more", hint="configure it again")

    def choose_key(self, job: JobRecord) -> str:
        """Return the label of the provider's key that a job is made with; empty where it has no more than one."""
        services, provider = self._services, self.place(job).provider
        rests, now = services.health.store.rests, services.watch()
        return services.keyring.choose(provider, job.model, rests, now, conversation=job.id.encode())

    async def ask(self, place: Place, call: BatchCall, headers: dict[str, str] | None = None) -> bytes:
        """Send a call, and return the body of the answer. Raises BardoError."""
        reply = await self._send(place, call, headers or {})
        return await reply.read(self._services.limits.max_reply_bytes)

    async def lines(self, place: Place, call: BatchCall) -> AsyncGenerator[bytes, None]:
        """Yield the lines of a file at the provider as they arrive. Raises BardoError, also for a line that is too long."""
        reply = await self._send(place, call, {})
        limit, held = self._services.limits.max_reply_bytes, bytearray()
        try:
            async for chunk in reply.chunks():
                held += chunk
                *whole, rest = held.split(b"\n") if b"\n" in chunk else (held,)
                for line in whole:
                    if line.strip():
                        yield bytes(line)
                held = bytearray(rest)
                if len(held) > limit:
                    raise MalformedReply(f"a result is larger than {limit} bytes", provider=place.provider.id)
            if held.strip():
                yield bytes(held)
        finally:
            await reply.close()

    async def _send(self, place: Place, call: BatchCall, headers: dict[str, str]) -> Reply:
        services, provider = self._services, place.provider
        own = {"content-type": call.content_type} if call.body else {}
        asked = Call(
            method=call.method,
            url=provider.url(call.path),
            headers={**own, **provider.row.headers, **headers},
            body=call.body,
            provider=provider.id,
        )
        if provider.row.auth == "google":
            await services.keyring.prepare(provider)
        signed = services.keyring.sign(asked, provider, clock=services.clock, key=place.key)
        reply = await services.transport.send(signed, services.limits.deadlines)
        if reply.status < 300:
            return reply
        try:
            body = await reply.read(_ERROR_BYTES)
        except ProviderError:
            body = b""  # The status says enough.
        refused = dialect(provider.row.dialect).decode_error(reply.status, body, reply.headers, provider.id)
        # A provider may quote the key that it refuses.
        services.clean(refused)
        raise refused


def may_have_been_taken(problem: BardoError) -> bool:
    """Whether a call that failed may have had its effect all the same."""
    if isinstance(problem, UpstreamRefused):
        return problem.status >= 500 or problem.status in _UNSURE
    return isinstance(problem, ProviderError) and not isinstance(problem, Unreachable)


def is_worth_another_try(problem: BardoError) -> bool:
    """Whether the same call may be taken later."""
    if isinstance(problem, UpstreamRefused):
        return problem.status >= 500 or problem.status in _LATER
    return isinstance(problem, ProviderError)


def seconds_asked_for(problem: BardoError) -> float:
    """Return how long a provider asked to wait; 0 where it did not, or not in seconds."""
    given = problem.retry_after if isinstance(problem, UpstreamRefused) else None
    try:
        return min(3600.0, max(0.0, float(given or 0)))
    except ValueError:
        return 0.0
