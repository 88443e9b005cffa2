"""Calls of several steps, written once for both flavours.

A flow is a generator: it yields requests, is sent their decoded replies (or has their errors thrown in), and returns
its result. `run_flow` drives one over a Transport, `run_flow_async` over an AsyncTransport; neither knows what the flow
does. A request that is harmless to repeat is sent again when the connection breaks, until the client's timeout is used
up.
"""

import asyncio
import time
from collections.abc import Generator
from typing import Any, Final, TypeVar

from headrace.client.explain import explain, not_of_kind
from headrace.client.requests import Request, key_type
from headrace.client.transport import AsyncTransport, Transport
from headrace.errors import ConnectionLost, HeadraceError, WrongType

T = TypeVar("T")
Batch = list[Request[Any]]  # Sent in one go; the reply is a list with errors in place.
Flow = Generator[Request[Any] | Batch, Any, T]

FIRST_PAUSE_S: Final = 0.05  # Between attempts; doubles up to the longest.
LONGEST_PAUSE_S: Final = 1.0

KINDS: Final = {"RELIABLEQ": "queue", "zset": "sorted set"}  # What people call it; other types have their plain names.


def run_flow(transport: Transport, flow: Flow[T], timeout_s: float) -> T:
    flow = telling_kinds(flow)
    try:
        step = next(flow)
        while True:
            try:
                reply = send(transport, step, timeout_s)
            except HeadraceError as error:
                step = flow.throw(error if isinstance(step, list) else explain(error, step))
            else:
                step = flow.send(reply)
    except StopIteration as stop:
        return stop.value  # type: ignore[no-any-return]


async def run_flow_async(transport: AsyncTransport, flow: Flow[T], timeout_s: float) -> T:
    flow = telling_kinds(flow)
    try:
        step = next(flow)
        while True:
            try:
                reply = await send_async(transport, step, timeout_s)
            except HeadraceError as error:
                step = flow.throw(error if isinstance(step, list) else explain(error, step))
            else:
                step = flow.send(reply)
    except StopIteration as stop:
        return stop.value  # type: ignore[no-any-return]


def telling_kinds(flow: Flow[T]) -> Flow[T]:
    """The same flow. When it ends because a key is of another type, the server is asked of which."""
    try:
        return (yield from flow)
    except WrongType as error:
        if error.key is None:
            raise
        wrong = error
    assert wrong.key is not None
    try:
        kind: str = yield key_type(wrong.key)
    except HeadraceError:
        raise wrong from wrong.__cause__
    kind = KINDS.get(kind, kind)
    if kind == wrong.wanted:  # Another key of ours beside it is meant: the server's own words are right.
        raise wrong.__cause__ or wrong
    raise wrong if kind == "none" else not_of_kind(wrong.wanted, wrong.key, f"a {kind}") from wrong.__cause__


def together(*flows: Flow[Any]) -> Flow[list[Any]]:
    """Several flows in the same round trips: what each asks for next travels in one batch, in the order given.

    Per flow its result, or the error that ended it. A lost connection ends them all.
    """
    telling = [telling_kinds(flow) for flow in flows]
    results: list[Any] = [None] * len(flows)
    asked: dict[int, Request[Any]] = {}
    replies: list[tuple[int, Any]] = [(place, None) for place in range(len(flows))]
    while replies:
        for place, reply in replies:
            flow = telling[place]
            try:
                step = flow.throw(reply) if isinstance(reply, HeadraceError) else flow.send(reply)
            except StopIteration as stop:
                results[place] = stop.value
            except HeadraceError as error:
                results[place] = error
            else:
                assert isinstance(step, Request)  # One request at a time: batches are made here.
                asked[place] = step
        answers = (yield list(asked.values())) if asked else []
        replies = list(zip(asked, answers, strict=True))
        asked = {}
    return results


def send(transport: Transport, step: Request[Any] | Batch, timeout_s: float) -> Any:
    attempts = Attempts(step, timeout_s)
    while True:
        try:
            if isinstance(step, list):
                return decode_batch(step, transport.call_many(step, timeout_s))
            return step.decode(transport.call(step, timeout_s + step.wait_ms / 1000))
        except ConnectionLost as error:
            time.sleep(attempts.pause_s(error))


async def send_async(transport: AsyncTransport, step: Request[Any] | Batch, timeout_s: float) -> Any:
    attempts = Attempts(step, timeout_s)
    while True:
        try:
            if isinstance(step, list):
                return decode_batch(step, await transport.call_many(step, timeout_s))
            return step.decode(await transport.call(step, timeout_s + step.wait_ms / 1000))
        except ConnectionLost as error:
            await asyncio.sleep(attempts.pause_s(error))


class Attempts:
    """Whether, and after which pause, to send again."""

    def __init__(self, step: Request[Any] | Batch, timeout_s: float) -> None:
        requests = step if isinstance(step, list) else [step]
        self.is_repeatable = all(request.is_repeatable for request in requests)
        self.deadline_s = time.monotonic() + timeout_s
        self.next_pause_s = FIRST_PAUSE_S

    def pause_s(self, error: ConnectionLost) -> float:
        """How long to wait before the next attempt; raises the error when there is none."""
        pause_s = self.next_pause_s
        if not self.is_repeatable or time.monotonic() + pause_s > self.deadline_s:
            raise error
        self.next_pause_s = min(2 * pause_s, LONGEST_PAUSE_S)
        return pause_s


def decode_batch(batch: Batch, replies: list[Any]) -> list[Any]:
    return [
        explain(reply, request) if isinstance(reply, HeadraceError) else request.decode(reply)
        for request, reply in zip(batch, replies, strict=True)
    ]
