"""The master-consumers pattern as one builds it from its description, with plain commands: it has 20 ways to break.

    master reads new messages (XREADGROUP … master >), looks its ticket up in `tickets`, else chooses a consumer,
    gives it the message (XCLAIM), and notes that in `tickets` and `consumers`
    consumer reads what it was given (XREADGROUP … consumer 0), handles it, XACK, and tells the master
    recovery of consumers whose health call fails, and of messages that are idle (XAUTOCLAIM)

It is meant to be as good as it can be: both maps are read from the server for every decision, never from memory, so a
second master and a restarted one see what the first one wrote. Each step is a method, and a test stops between two of
them where a process would have died. The choice of a consumer is the test's, where the pattern leaves it to chance.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field
from typing import Any

GROUP = "concurrency_stream_group"
MASTER = "master"


@dataclass(frozen=True)
class Message:
    id: str
    ticket: str  # Empty when the entry is gone from the stream.
    number: str


@dataclass
class Health:
    """Who answers the health call. Somebody may work and not answer, or answer and not work."""

    silent: set[str] = field(default_factory=set)

    def __call__(self, consumer: str) -> bool:
        return consumer not in self.silent


class NaiveMaster:
    def __init__(self, client: Any, stream: str, choose: Callable[[list[str]], str] = min) -> None:
        self.client = client
        self.stream = stream
        self.choose = choose
        self.tickets = f"{{{stream}}}:tickets"
        self.consumers = f"{{{stream}}}:consumers"
        self.written_bytes = 0  # To `tickets`.

    # What consumers call

    def register(self, consumer: str) -> None:
        self.write(self.consumers, consumer, {"healthURL": f"http://{consumer}/api/health", "ticket_ids": []})

    def acknowledge(self, consumer: str, message: Message) -> None:
        ticket = self.find(self.tickets, message.ticket)
        if ticket is not None:
            ticket["message_ids"] = [one for one in ticket["message_ids"] if one != message.id]
            self.write_or_drop(self.tickets, message.ticket, ticket, "message_ids")
        holder = self.find(self.consumers, consumer)
        if holder is not None and (ticket is None or not ticket["message_ids"]):
            holder["ticket_ids"] = [one for one in holder["ticket_ids"] if one != message.ticket]
            self.write(self.consumers, consumer, holder)

    # Delegating, step by step

    def read(self, count: int = 100) -> list[Message]:
        argv = ("XREADGROUP", "GROUP", GROUP, MASTER, "COUNT", count, "STREAMS", self.stream, ">")
        return read_reply(self.client.command(*argv))

    def consumer_for(self, message: Message) -> str:
        ticket = self.find(self.tickets, message.ticket)
        return self.choose(self.registered()) if ticket is None else str(ticket["consumer_name"])

    def claim(self, message_id: str, consumer: str) -> bool:
        return bool(self.client.command("XCLAIM", self.stream, GROUP, consumer, 0, message_id))

    def note(self, message: Message, consumer: str) -> None:
        ticket = self.find(self.tickets, message.ticket) or {"consumer_name": consumer, "message_ids": []}
        ids = [*ticket["message_ids"], *([] if message.id in ticket["message_ids"] else [message.id])]
        self.write(self.tickets, message.ticket, {"consumer_name": consumer, "message_ids": ids})
        holder = self.find(self.consumers, consumer)
        if holder is not None and message.ticket not in holder["ticket_ids"]:
            holder["ticket_ids"].append(message.ticket)
            self.write(self.consumers, consumer, holder)

    def delegate(self, messages: Iterable[Message]) -> None:
        for message in messages:
            consumer = self.consumer_for(message)
            self.claim(message.id, consumer)
            self.note(message, consumer)

    def run(self) -> None:
        """All that is new, from the stream to the consumers."""
        while messages := self.read():
            self.delegate(messages)

    # Recovering

    def recover_offline(self, is_alive: Callable[[str], bool]) -> None:
        for _ in self.recovering_offline(is_alive):
            pass

    def recovering_offline(self, is_alive: Callable[[str], bool]) -> Iterator[str]:
        """Stops behind each message that was moved: other threads of the master run then."""
        for consumer in [one for one in self.registered() if not is_alive(one)]:
            others = [one for one in self.registered() if one != consumer and is_alive(one)]
            holder = self.find(self.consumers, consumer)
            self.client.command("HDEL", self.consumers, consumer)
            for ticket_id in holder["ticket_ids"] if holder and others else ():
                ticket = self.find(self.tickets, ticket_id)
                if ticket is None:
                    continue
                other = self.choose(others)
                for message_id in ticket["message_ids"]:
                    self.claim(message_id, other)
                    yield message_id
                self.write(self.tickets, ticket_id, {**ticket, "consumer_name": other})
                for message_id in ticket["message_ids"]:
                    self.note(Message(message_id, ticket_id, ""), other)

    def recover_idle(self, min_idle_ms: int, is_alive: Callable[[str], bool]) -> list[Message]:
        """What was found idle, after it was delegated."""
        reply = self.client.command("XAUTOCLAIM", self.stream, GROUP, MASTER, min_idle_ms, "0-0")
        messages = read_entries(reply[1])
        for message in messages:
            ticket = self.find(self.tickets, message.ticket)
            if ticket is not None and not is_alive(ticket["consumer_name"]):
                other = self.choose([one for one in self.registered() if is_alive(one)])
                self.write(self.tickets, message.ticket, {**ticket, "consumer_name": other})
                for message_id in ticket["message_ids"]:
                    self.claim(message_id, other)
            self.delegate([message])
        return messages

    # The maps

    def registered(self) -> list[str]:
        return sorted(name.decode() for name in self.client.command("HKEYS", self.consumers))

    def find(self, table: str, name: str) -> dict[str, Any] | None:
        text = self.client.command("HGET", table, name)
        return None if text is None else json.loads(text)

    def write(self, table: str, name: str, value: dict[str, Any]) -> None:
        text = json.dumps(value)
        self.written_bytes += len(text) if table == self.tickets else 0
        self.client.command("HSET", table, name, text)

    def write_or_drop(self, table: str, name: str, value: dict[str, Any], what: str) -> None:
        if value[what]:
            self.write(table, name, value)
        else:
            self.client.command("HDEL", table, name)


class NaiveConsumer:
    def __init__(self, master: NaiveMaster, name: str) -> None:
        self.master = master
        self.name = name
        self.client = master.client
        self.stream = master.stream
        master.register(name)

    def poll(self, *, block_ms: int | None = None) -> list[Message]:
        """What was delegated to it and is not acknowledged: all of it, in the order of the stream."""
        return read_reply(self.raw_poll(block_ms=block_ms))

    def raw_poll(self, *, block_ms: int | None = None) -> Any:
        block = () if block_ms is None else ("BLOCK", block_ms)
        return self.client.command("XREADGROUP", "GROUP", GROUP, self.name, *block, "STREAMS", self.stream, "0")

    def act(self, message: Message) -> None:
        """The effect of a message, where everybody can see who did what in which order."""
        self.client.command("RPUSH", done_key(self.stream, message.ticket), f"{message.number} {self.name}")

    def ack(self, message: Message) -> int:
        acked: int = self.client.command("XACK", self.stream, GROUP, message.id)
        return acked

    def finish(self, message: Message) -> None:
        self.act(message)
        self.ack(message)
        self.master.acknowledge(self.name, message)


def done_key(stream: str, ticket: str) -> str:
    return f"{{{stream}}}:done:{ticket}"


def read_reply(reply: Any) -> list[Message]:
    return [message for _, entries in pairs_of(reply) for message in read_entries(entries)]


def pairs_of(reply: Any) -> list[Any]:
    """Streams with their entries; RESP3 has them as a map."""
    return list(reply.items()) if isinstance(reply, dict) else [tuple(pair) for pair in reply or ()]


def read_entries(entries: Any) -> list[Message]:
    messages = []
    for entry_id, words in entries:
        fields = dict(zip(words[::2], words[1::2], strict=True)) if words else {}
        messages.append(
            Message(entry_id.decode(), fields.get(b"ticket_id", b"").decode(), fields.get(b"n", b"").decode())
        )
    return messages
