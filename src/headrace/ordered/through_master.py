"""A consumer's messages through the coordinator: HTTP only. It asks and waits; the coordinator takes on its behalf."""

import asyncio
import base64
from collections.abc import Collection, Sequence
from dataclasses import dataclass
from typing import Any, Final
from urllib.parse import quote

import msgspec

from headrace.client.results import Entry, encode_text
from headrace.errors import AccessDenied, ConfigError, ConnectionLost, HeadraceError
from headrace.ordered.addresses import ACKNOWLEDGE, REGISTER, base_of
from headrace.ordered.bodies import MOST_BODY_BYTES, MOST_TOGETHER
from headrace.ordered.delegated_message import Fetched, NotRegistered, OrderedMessage, Superseded
from headrace.ordered.http_call import Caller

ANSWER_S: Final = 10.0
LONGEST_WAIT_S: Final = 20.0  # Of one question for its answer; and no longer than a third of the lease.


@dataclass(frozen=True, slots=True)
class Done:
    """A message that is done: what to say about it, and who waits to hear whether it counts."""

    body: bytes
    heard: asyncio.Future[bool]


class ThroughMaster:
    takes = False

    def __init__(self, consumer: str, register_url: str, acknowledge_url: str, token: str, stream: str) -> None:
        self.consumer = consumer
        self.base = base_of(register_url, REGISTER, "master_register_api_url")
        self.acknowledge_base = base_of(acknowledge_url, ACKNOWLEDGE, "master_acknowledge_api_url")
        self.token = token
        self.stream = stream
        self.caller = Caller()
        self.session = 0
        self.after = 0
        self.wait_s = 0.0
        self.done: list[Done] = []  # Messages to acknowledge.
        self.telling: asyncio.Task[None] | None = None

    async def register(self, capacity: int, health_url: str) -> int:
        body = {"consumer": self.consumer, "capacity": capacity, "healthURL": health_url or None}
        answer = await self.call("POST", self.base + REGISTER, body)
        self.session, self.after = int(answer["session"]), 0
        self.wait_s = min(LONGEST_WAIT_S, answer["lease_ms"] / 3000)
        return int(answer["lease_ms"])

    async def fetch(self, room: int, running: Collection[OrderedMessage]) -> Fetched:  # noqa: ARG002 - known there.
        name = quote(encode_text(self.consumer), safe="")
        query = f"wait={self.wait_s}&after={self.after}&session={self.session}"
        url = f"{self.base}/api/consumers/{name}/messages?{query}"
        try:
            answer = await self.call("GET", url, timeout_s=ANSWER_S + self.wait_s)
        except Conflict as error:
            raise Superseded(str(error)) from error
        self.after = int(answer["after"])
        held = set(answer["held"])
        messages = [self.read_message(row) for row in answer["messages"]]
        return Fetched(messages, [one.fence for one in running if one.fence not in held])

    def read_message(self, row: dict[str, Any]) -> OrderedMessage:
        pairs = tuple((base64.b64decode(name), base64.b64decode(value)) for name, value in row["pairs"])
        entry = Entry(row["message_id"], pairs, self.stream)
        return OrderedMessage(row["ticket_id"], int(row["fence"]), int(row["attempt"]), "", entry)

    async def keep(self, running: Collection[OrderedMessage]) -> list[int]:  # noqa: ARG002 - the coordinator extends.
        """The question for messages is the sign of life; what is lost comes with its answer."""
        return []

    async def acknowledge(self, message: OrderedMessage) -> bool:
        """With others that are done at the same time: one request is under way, what comes meanwhile goes together."""
        done = Done(msgspec.json.encode(self.body_of(message)), asyncio.get_running_loop().create_future())
        self.done.append(done)
        if self.telling is None or self.telling.done():
            self.telling = asyncio.ensure_future(self.tell_done())
        return await done.heard

    async def tell_done(self) -> None:
        while self.done:
            part = first_part(self.done)
            del self.done[: len(part)]
            try:
                answers = await self.call_each(part)
            except Exception as error:  # Whatever it is, those who wait must hear of it.
                answers = [error] * len(part)
            for done, answer in zip(part, answers, strict=True):
                answer_done(done, answer)

    async def call_each(self, part: Sequence[Done]) -> list[Any]:
        data = b"[%b]" % b",".join(done.body for done in part)
        url = self.acknowledge_base + ACKNOWLEDGE
        answers = await self.call("POST", url, data)
        if not isinstance(answers, list) or len(answers) != len(part):
            raise ConnectionLost(f"{url} gave an answer that cannot be used.")
        return [refused(url, row["status"], row) if "status" in row else row for row in answers]

    async def fail(self, message: OrderedMessage, error: str, delay_ms: int, *, buries: bool) -> bool:
        more = {"error": error, "delay_ms": delay_ms, "bury": buries}
        try:
            await self.call("POST", self.base + "/api/messages/fail", {**self.body_of(message), **more})
        except (Conflict, NotRegistered):
            return False
        return True

    def body_of(self, message: OrderedMessage) -> dict[str, Any]:
        return {
            "consumer": self.consumer,
            "ticket_id": message.key,
            "message_id": message.id,
            "fence": message.fence,
            "session": self.session,
        }

    async def leave(self) -> None:
        try:
            body = {"consumer": self.consumer, "session": self.session}
            await self.call("POST", self.base + "/api/consumers/leave", body)
        except Conflict:
            return  # Another one has the name: it is not ours to leave.

    async def close(self) -> None:
        if self.telling is not None:
            self.telling.cancel()
            await asyncio.gather(self.telling, return_exceptions=True)
        for done in self.done:
            done.heard.cancel()
        await self.caller.close()

    async def call(
        self, method: str, url: str, body: dict[str, Any] | bytes = b"", *, timeout_s: float = ANSWER_S
    ) -> Any:  # fmt: skip
        data = body if isinstance(body, bytes) else msgspec.json.encode(body)
        answer = await self.caller.call(method, url, body=data, token=self.token, timeout_s=timeout_s)
        try:
            found = msgspec.json.decode(answer.body)
        except msgspec.DecodeError:
            found = None
        if answer.status == 200 and isinstance(found, (dict, list)):
            return found
        raise refused(url, answer.status, found)


def first_part(done: Sequence[Done]) -> list[Done]:
    """What fits into one request: at least one."""
    part, size = [done[0]], len(done[0].body)
    for one in done[1:MOST_TOGETHER]:
        size += len(one.body) + 1
        if size > MOST_BODY_BYTES - 2:
            break
        part.append(one)
    return part


def answer_done(done: Done, answer: Any) -> None:
    if done.heard.done():  # Who waited has gone.
        return
    if isinstance(answer, (Conflict, NotRegistered)):
        done.heard.set_result(False)
    elif isinstance(answer, Exception):
        done.heard.set_exception(answer)
    else:
        done.heard.set_result(True)


class Conflict(HeadraceError):
    """Refused because somebody else has it by now."""


def refused(url: str, status: int, found: Any) -> HeadraceError:
    said = f"{found.get('error')} {found.get('what_to_do')}" if isinstance(found, dict) else f"It answered {status}."
    if status == 409:
        return Conflict(said)
    if status == 404 and isinstance(found, dict):
        return NotRegistered(said)
    if status in (401, 403):
        return AccessDenied(f"{url} refuses: {said}")
    if status == 400:
        return ConfigError(f"{url} refuses: {said}")
    return ConnectionLost(f"{url} cannot do it now: {said}")
