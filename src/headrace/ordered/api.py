"""The HTTP skin of the coordinator: requests to calls, refusals to JSON. Decides nothing."""

import asyncio
import logging
from collections.abc import Awaitable, Callable, Iterable
from typing import Any, Final
from urllib.parse import unquote_to_bytes

from starlette.applications import Starlette
from starlette.exceptions import HTTPException
from starlette.requests import ClientDisconnect, Request
from starlette.responses import Response
from starlette.routing import Route

from headrace.client.lane_views import STATES
from headrace.client.results import decode_text
from headrace.errors import HeadraceError
from headrace.ordered.bodies import MOST_BODY_BYTES, check_consumer, read_bodies, read_body
from headrace.ordered.coordinator import Coordinator
from headrace.ordered.endpoints import ENDPOINTS, LONGEST_WAIT_S, Endpoint
from headrace.ordered.guard import Guard
from headrace.ordered.json_text import encode_json
from headrace.ordered.openapi import openapi_document
from headrace.ordered.refusal import Refusal, refusal_of
from headrace.ordered.views import LARGEST_PAGE, PAGE, Views

BODY_S: Final = 10.0  # For a body to arrive.
LARGEST_NUMBER: Final = 2**63 - 1
LOG: Final = logging.getLogger("headrace.ordered")

Health = Callable[[], Awaitable[dict[str, Any]]]


class Api:
    """Has a method for each endpoint; `app` is what a server runs."""

    def __init__(self, coordinator: Coordinator, views: Views, health: Health, guard: Guard) -> None:
        self.coordinator = coordinator
        self.views = views
        self.tell_health = health
        self.guard = guard
        self.document = openapi_document()

    def app(self) -> Starlette:
        routes = [
            Route(endpoint.path.replace("{key}", "{key:path}"), self.serve(endpoint), methods=[endpoint.method])
            for endpoint in ENDPOINTS
        ]
        return Starlette(routes=routes, exception_handlers={HTTPException: answer_http_error, Exception: answer_bug})

    def serve(self, endpoint: Endpoint) -> Callable[[Request], Awaitable[Response]]:
        call = getattr(self, endpoint.name)

        async def answer(request: Request) -> Response:
            try:
                if not endpoint.is_open:
                    self.guard.check(request.headers)
                if endpoint.body is not None:
                    data = await read_data(request)
                    if endpoint.takes_lists and data.lstrip()[:1] == b"[":
                        return respond(await call_each(call, read_bodies(data, endpoint.body)))
                    return respond(await call(read_body(data, endpoint.body)))
                return respond(await call(request))
            except HeadraceError as error:
                return respond_refusal(refusal_of(error))

        return answer

    # Each under the name that endpoints.py has for it

    async def register(self, body: Any) -> dict[str, Any]:
        return await self.coordinator.register(body)

    async def heartbeat(self, body: Any) -> dict[str, Any]:
        return await self.coordinator.heartbeat(body)

    async def leave(self, body: Any) -> dict[str, Any]:
        return await self.coordinator.leave(body)

    async def acknowledge(self, body: Any) -> dict[str, Any]:
        return await self.coordinator.acknowledge(body)

    async def fail(self, body: Any) -> dict[str, Any]:
        return await self.coordinator.fail(body)

    async def messages(self, request: Request) -> dict[str, Any]:
        consumer = path_part(request, "/api/consumers/", "/messages")
        check_consumer(consumer)
        after = number_of(request, "after", 0, LARGEST_NUMBER)
        session = number_of(request, "session", 1, LARGEST_NUMBER) or None
        return await self.coordinator.messages(consumer, session, after, seconds_of(request, "wait"))

    async def consumers(self, _request: Request) -> dict[str, Any]:
        return await self.views.consumers()

    async def tickets(self, request: Request) -> dict[str, Any]:
        state = request.query_params.get("state")
        if state not in (None, *STATES):
            raise Refusal(400, f"state is {state!r}.", f"Ask for one of {', '.join(STATES)}, or leave it out.")
        return await self.page(request, state)

    async def parked(self, request: Request) -> dict[str, Any]:
        return await self.page(request, "parked")

    async def page(self, request: Request, state: str | None) -> dict[str, Any]:
        cursor = number_of(request, "cursor", 0, 2**64 - 1)
        return await self.views.tickets(state, cursor, number_of(request, "limit", 1, LARGEST_PAGE, PAGE))

    async def ticket(self, request: Request) -> dict[str, Any]:
        return await self.views.ticket(path_part(request, "/api/tickets/", ""))

    async def lanes(self, _request: Request) -> dict[str, Any]:
        return await self.views.lanes()

    async def health(self, _request: Request) -> dict[str, Any]:
        return await self.tell_health()

    async def openapi(self, _request: Request) -> dict[str, Any]:
        return self.document


# Reading requests


async def read_data(request: Request) -> bytes:
    pieces: list[bytes] = []
    size = 0
    try:
        async with asyncio.timeout(BODY_S):
            async for piece in request.stream():
                size += len(piece)
                if size > MOST_BODY_BYTES:
                    raise Refusal(413, "The body is too large.", f"Send {MOST_BODY_BYTES} bytes at the most.")
                pieces.append(piece)
    except TimeoutError:
        raise Refusal(408, f"The body did not arrive within {BODY_S:g} s.", "Send it again.") from None
    except ClientDisconnect:
        raise Refusal(400, "The body ended early.", "Send it again.") from None
    return b"".join(pieces)


def path_part(request: Request, before: str, after: str) -> str:
    """Names are bytes: those that are no UTF-8 come percent-encoded, and only the raw path still has them."""
    raw: bytes = request.scope.get("raw_path") or request.scope["path"].encode()
    part = raw.partition(b"?")[0].removeprefix(before.encode()).removesuffix(after.encode())
    return decode_text(unquote_to_bytes(part))


def number_of(request: Request, name: str, least: int, most: int, default: int = 0) -> int:
    text = request.query_params.get(name)
    if text is None:
        return default
    if not (text.isascii() and text.isdecimal() and len(text) <= 20 and least <= int(text) <= most):
        raise Refusal(400, f"{name} is {text[:50]!r}.", f"Give a whole number from {least} to {most}.")
    return int(text)


def seconds_of(request: Request, name: str) -> float:
    text = request.query_params.get(name, "0")
    try:
        seconds = float(text)
    except ValueError:
        seconds = -1
    if not 0 <= seconds <= LONGEST_WAIT_S:
        raise Refusal(400, f"{name} is {text[:50]!r}.", f"Give seconds, from 0 to {LONGEST_WAIT_S}.")
    return seconds


# Answering


async def call_each(call: Callable[[Any], Awaitable[dict[str, Any]]], bodies: Iterable[Any]) -> list[dict[str, Any]]:
    """All at the same time; one that is refused says so in its place."""

    async def answer(body: Any) -> dict[str, Any]:
        try:
            return await call(body)
        except HeadraceError as error:
            refusal = refusal_of(error)
            return {"status": refusal.status, "error": refusal.error, "what_to_do": refusal.what_to_do}

    return list(await asyncio.gather(*map(answer, bodies)))


def respond(value: Any, status: int = 200) -> Response:
    headers = {"Cache-Control": "no-store", "X-Content-Type-Options": "nosniff"}
    return Response(encode_json(value), status, headers, media_type="application/json")


def respond_refusal(refusal: Refusal) -> Response:
    return respond({"error": refusal.error, "what_to_do": refusal.what_to_do}, refusal.status)


async def answer_http_error(request: Request, error: Exception) -> Response:
    """What Starlette refuses by itself: paths and methods that there are not."""
    assert isinstance(error, HTTPException)
    paths: Iterable[str] = dict.fromkeys(endpoint.path for endpoint in ENDPOINTS)
    if error.status_code == 405:
        return respond_refusal(Refusal(405, f"{request.method} is not for this path.", "See /openapi.json."))
    what_to_do = f"There is: {', '.join(paths)}."
    return respond_refusal(Refusal(error.status_code, f"There is no {request.url.path!r}.", what_to_do))


async def answer_bug(_request: Request, error: Exception) -> Response:
    """The last line of defence: a mistake of ours is told in the log, and ends one request only."""
    LOG.error("request_failed", exc_info=error)
    return respond_refusal(Refusal(500, "The coordinator made a mistake.", "See its log."))
