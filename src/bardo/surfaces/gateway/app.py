"""The ASGI application: one request in, one answer out, and an error in the caller's own dialect where it cannot be."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Coroutine, Mapping
from datetime import UTC, datetime
from functools import partial
from typing import TYPE_CHECKING, Any, Literal

from bardo.adapters.config.accounts import Account
from bardo.adapters.config.gateway import ErrorReply, GatewaySettings, bounds_of
from bardo.adapters.sealing import Sealer
from bardo.adapters.stores.database.problems import DatabaseProblem
from bardo.adapters.stores.response_store import ResponseStore
from bardo.batches.service import BatchService
from bardo.call.services import Services
from bardo.dialects import dialect
from bardo.services.accounts.accounts import Accounts
from bardo.services.facts.feedback import FeedbackRecorder
from bardo.surfaces.gateway.answer import JSON, Answer, Draining, error_body, error_headers, error_status
from bardo.surfaces.gateway.batches import (
    cancel_batch,
    cancel_message_batch,
    create_batch,
    create_message_batch,
    delete_message_batch,
    list_batches,
    list_message_batches,
    read_message_batch,
    show_batch,
    show_message_batch,
)
from bardo.surfaces.gateway.callers import (
    ACCOUNT,
    KEY,
    Access,
    Pairs,
    answer_preflight,
    caller_of,
    for_origin,
    is_preflight,
    is_signed,
    keys_of,
    origin_headers,
    path_without_key,
    secrets_of,
    without_path_key,
)
from bardo.surfaces.gateway.context import (
    GatewayContext,
    PanelLoader,
    ServeOperation,
    mistake,
    show_panel,
    show_panel_problem,
)
from bardo.surfaces.gateway.files import delete_file, list_files, read_file, show_file, upload_file
from bardo.surfaces.gateway.generate import complete, generate
from bardo.surfaces.gateway.http import ClientDisconnected, Receive, Scope, Send, encode_headers
from bardo.surfaces.gateway.ollama import (
    generate_or_load,
    list_local_models,
    loaded_models,
    root,
    show_capabilities,
    show_local_model,
    version,
)
from bardo.surfaces.gateway.operations import (
    count_tokens,
    embeddings,
    health,
    list_models,
    metrics,
    provider_health,
    ready,
    show_model,
)
from bardo.surfaces.gateway.own_endpoints import (
    forget_episode,
    forget_lessons,
    list_lessons,
    purge_cache,
    search_memory,
    send_events,
    show_cache,
    show_episode,
    show_openapi,
    show_usage,
    take_feedback,
)
from bardo.surfaces.gateway.responses import (
    add_items,
    compact,
    create_conversation,
    delete_conversation,
    delete_item,
    delete_response,
    list_input,
    list_items,
    respond,
    show_conversation,
    show_item,
    show_response,
    update_conversation,
)
from bardo.surfaces.gateway.routes import (
    BatchEndpoint,
    Endpoint,
    Route,
    dialect_of_path,
    find_route,
    for_client,
    is_panel,
)
from bardo.surfaces.gateway.websocket import PATHS, OpenSockets, ResponsesSocket, Serve, as_denial
from bardo.values.errors import BardoError, Forbidden, Unauthorized, UpgradeRequired, shutting_down

if TYPE_CHECKING:
    from bardo.adapters.stores.memory.reasoning_memory import ReasoningMemory

OPERATIONS: Mapping[Endpoint | BatchEndpoint, ServeOperation] = {
    "generate": generate,
    "respond": respond,
    "compact": compact,
    "show_response": show_response,
    "delete_response": delete_response,
    "list_input": list_input,
    "create_conversation": create_conversation,
    "show_conversation": show_conversation,
    "update_conversation": update_conversation,
    "delete_conversation": delete_conversation,
    "list_items": list_items,
    "add_items": add_items,
    "show_item": show_item,
    "delete_item": delete_item,
    "complete": complete,
    "embed": embeddings,
    "models": list_models,
    "model": show_model,
    "count_tokens": count_tokens,
    "generate_or_load": generate_or_load,
    "show_capabilities": show_capabilities,
    "loaded_models": loaded_models,
    "list_local_models": list_local_models,
    "show_local_model": show_local_model,
    "version": version,
    "root": root,
    "feedback": take_feedback,
    "usage": show_usage,
    "show_cache": show_cache,
    "purge_cache": purge_cache,
    "search_memory": search_memory,
    "show_episode": show_episode,
    "forget_episode": forget_episode,
    "provider_health": provider_health,
    "list_lessons": list_lessons,
    "forget_lessons": forget_lessons,
    "forget_lesson": forget_lessons,
    "metrics": metrics,
    "events": send_events,
    "health": health,
    "ready": ready,
    "panel": show_panel,
    "openapi": show_openapi,
    "upload_file": upload_file,
    "list_files": list_files,
    "show_file": show_file,
    "delete_file": delete_file,
    "read_file": read_file,
    "create_batch": create_batch,
    "list_batches": list_batches,
    "show_batch": show_batch,
    "cancel_batch": cancel_batch,
    "create_message_batch": create_message_batch,
    "list_message_batches": list_message_batches,
    "show_message_batch": show_message_batch,
    "delete_message_batch": delete_message_batch,
    "cancel_message_batch": cancel_message_batch,
    "read_message_batch": read_message_batch,
}
"""What each endpoint does."""


class Gateway:
    """Answers requests with the help of one Runner. `start` and `stop` are run with the server's own.

    `before` is the gateway of an earlier configuration: who reads its events reads those of this one too.
    """

    def __init__(
        self,
        services: Services,
        settings: GatewaySettings,
        *,
        responses: ResponseStore | None = None,
        feedback: FeedbackRecorder | None = None,
        accounts: Accounts | None = None,
        batches: BatchService | None = None,
        panel: PanelLoader | None = None,
        before: Gateway | None = None,
        memory: ReasoningMemory | None = None,
        sealer: Sealer | None = None,
        start: Callable[[], Coroutine[Any, Any, None]] | None = None,
        stop: Callable[[], Coroutine[Any, Any, None]] | None = None,
    ) -> None:
        self.bounds = bounds_of(settings)
        self._context: GatewayContext = GatewayContext(
            services,
            max_body=settings.max_body_bytes,
            max_values=settings.max_total_values,
            keep_alive_seconds=settings.keep_alive_seconds,
            unasked_thinking=settings.unasked_thinking,
            draining=partial(
                Draining, drains=settings.drain_cancelled, seconds=settings.drain_seconds, tokens=settings.drain_tokens
            ),
            responses=responses,
            feedback=feedback,
            accounts=accounts,
            batches=batches,
            panel=panel,
            events=None if before is None else before._context.events,
            memory=memory,
            sealer=sealer,
        )
        if batches is not None:
            batches.is_busy = self._context.is_busy
        self._access = Access(settings)
        self._settings = settings
        self.sockets: OpenSockets = OpenSockets() if before is None else before.sockets
        self._start = start
        self._stop = stop

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Serve one ASGI scope: answer one request by HTTP, or hand on what is none."""
        if scope["type"] == "websocket":
            await self.websocket(scope, receive, send, self)
        elif scope["type"] == "lifespan":
            await self._lifespan(receive, send)
        if scope["type"] != "http":
            return
        if scope["path"].startswith("/k/"):
            scope = without_path_key(scope)
        answer, route = Answer(send), None
        self._context.open_requests += 1
        try:
            origin = self._access.check(scope)
            if origin:
                send = for_origin(send, origin)
                answer = Answer(send)
                if is_preflight(scope, origin):
                    await answer_preflight(scope, send)
                    return
            route = find_route(scope["method"], scope["path"], scope["query_string"])
            if route.by_client:
                route = for_client(route, scope)
            if route.endpoint == "panel":
                # Pages of other origins that may call the gateway may not read its panel.
                if origin:
                    raise Forbidden("the panel answers its own pages alone", hint="open /panel in a browser")
            elif self._context.accounts is not None:
                await authenticate(self._context, self._context.accounts, route, scope, answer)
            await OPERATIONS[route.endpoint](self._context, route, scope, receive, answer)
        except ClientDisconnected:
            return
        except BardoError as told:
            # Where a store is stands in the log of the program alone.
            problem = mistake(scope["path"]) if isinstance(told, DatabaseProblem) else told
            self._context.services.clean(problem, secrets_of(scope))
            if is_panel(scope["path"]) and self._context.panel is not None:
                await show_panel_problem(self._context.panel, self._context, scope, answer, problem)
            else:
                await answer.error(problem, _language(route, scope))
        except asyncio.CancelledError:
            await answer.error(shutting_down(), _language(route, scope))
            raise
        except Exception:  # noqa: BLE001 - the last line of defence: one request fails, bardo keeps serving
            await answer.error(mistake(scope["path"]), _language(route, scope))
        finally:
            self._context.open_requests -= 1
            self._context.values.release(scope)

    def end_streams(self) -> None:
        """End what has no end of its own, because the gateway stops: streams of events, and WebSockets once their requests are answered."""
        self._context.end_streams()
        self.sockets.end()

    def encode_error(self, path: str, headers: Pairs, problem: BardoError) -> ErrorReply:
        """Return the answer to a request that the server refused before it came here."""
        language = dialect_of_path(path_without_key(path))
        own = encode_headers([("content-type", JSON), *error_headers(problem, language)])
        origin = self._access.allowed_origin(headers)
        visible = origin_headers(origin) if origin else []
        return ErrorReply(
            status=error_status(problem, language), headers=[*own, *visible], body=error_body(problem, language)
        )

    async def _lifespan(self, receive: Receive, send: Send) -> None:
        while True:
            message = await receive()
            hook, event = (
                (self._start, "startup") if message["type"] == "lifespan.startup" else (self._stop, "shutdown")
            )
            if hook is not None:
                await hook()
            await send({"type": f"lifespan.{event}.complete"})
            if event == "shutdown":
                return

    @property
    def max_body_bytes(self) -> int:
        """How long a body may be."""
        return self._context.max_body

    @property
    def is_busy(self) -> bool:
        """Whether requests are being answered; who only reads events does not count."""
        return self._context.is_busy()

    async def websocket(self, scope: Scope, receive: Receive, send: Send, serve: Serve) -> None:
        """Answer a request for a WebSocket. `serve` answers the requests that come by it: the configuration may change meanwhile."""
        scope = without_path_key(scope)
        handshake = {**scope, "method": "GET"}
        answer, path, settings = Answer(as_denial(scope, send)), scope["path"], self._settings
        try:
            self._access.check(handshake)
            if path not in PATHS or not settings.websockets:
                where = (
                    "at /v1/responses alone"
                    if settings.websockets
                    else "by this gateway: [gateway] websockets is false"
                )
                raise UpgradeRequired(f"WebSockets are served {where}", hint="send the request by HTTP")
            if self._context.accounts is not None:
                route = find_route("POST", path, scope["query_string"])
                await authenticate(self._context, self._context.accounts, route, handshake, answer)
            await receive()
            tenant = caller_of(handshake).tenant
            socket = ResponsesSocket(serve, scope, receive, send, settings, self.sockets)
            self.sockets.add(socket, tenant, settings.max_websockets_per_key)
        except BardoError as told:
            problem = mistake(path) if isinstance(told, DatabaseProblem) else told
            self._context.services.clean(problem, secrets_of(handshake))
            await answer.error(problem, dialect_of_path(path))
            return
        try:
            await socket.run()
        finally:
            self.sockets.remove(socket, tenant)


def _language(route: Route | None, scope: Scope) -> str:
    """Return the dialect to answer an error in; `route` is None if none was found."""
    return dialect_of_path(scope["path"]) if route is None else route.dialect


_WINDOW = 60
_LIMITS: tuple[tuple[str, Literal["requests", "tokens"]], ...] = (
    ("requests_per_minute", "requests"),
    ("tokens_per_minute", "tokens"),
)


async def authenticate(context: GatewayContext, accounts: Accounts, route: Route, scope: Scope, answer: Answer) -> None:
    """Find whose key a request has, and note it in `scope`. Raises Unauthorized."""
    if route.endpoint == "health" or (route.endpoint == "root" and scope["method"] == "HEAD"):
        # Programs look at a health endpoint, or send `HEAD /`, to see whether somebody is there.
        return
    keys = keys_of(scope)
    if not keys and is_signed(scope):
        # A signature proves a secret that both sides know. bardo keeps no secrets of keys, only digests.
        hint = "give AWS's library the key as a bearer token: AWS_BEARER_TOKEN_BEDROCK=bardo_…"
        raise Unauthorized("requests signed as AWS's are hold no key that can be checked", hint=hint)
    if not keys and route.endpoint == "ready":
        return
    key = await accounts.own_key(keys) if len(keys) > 1 else next(iter(keys), "")
    account = await accounts.account_of(key)
    if account is not None:
        scope[ACCOUNT], scope[KEY] = account, key
        if account.limited:
            answer.own_headers = lambda: limit_headers(account, accounts, route.dialect, context.services.clock())
            answer.has_login = caller_of(scope).login is not None


def limit_headers(account: Account, accounts: Accounts, dialect_name: str, now: float) -> list[tuple[str, str]]:
    """Return the rest of the limits of a minute, in the headers that the libraries of a dialect read."""
    found, prefix = accounts.remaining(account), dialect(dialect_name).limit_prefix
    headers: list[tuple[str, str]] = []
    for name, kind in _LIMITS:
        if name not in found:
            continue
        limit, left = found[name]
        reset = 0 if left == limit else _WINDOW
        date = datetime.fromtimestamp(int(now + reset), UTC).strftime("%Y-%m-%dT%H:%M:%SZ")
        parts = (("limit", str(limit)), ("remaining", str(left)), ("reset", date if prefix else f"{reset}s"))
        headers += [
            (f"{prefix}{kind}-{part}" if prefix else f"x-ratelimit-{part}-{kind}", value) for part, value in parts
        ]
    return headers
