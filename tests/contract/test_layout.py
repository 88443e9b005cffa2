"""publish: the entry layout headrace writes, and twice is once."""

import threading
from dataclasses import dataclass

import msgspec
import pydantic
import pytest

from headrace import ConfigError


@dataclass
class Order:
    id: int
    items: list[str]


class Invoice(msgspec.Struct):
    number: int


class Customer(pydantic.BaseModel):
    name: str


def test_a_message_is_stored_in_the_documented_layout(stream):
    entry_id = stream.publish(
        {"id": 17, "total": 9.9}, key="customer-42", id="order-17", headers={"source": "shop", "naïve": "é"}
    )

    assert stream.get(entry_id).pairs == (
        (b"data", b'{"id":17,"total":9.9}'),
        (b"key", b"customer-42"),
        (b"id", b"order-17"),
        (b"h:source", b"shop"),
        ("h:naïve".encode(), "é".encode()),
    )


@pytest.mark.parametrize(
    ("payload", "read_back"),
    [
        ({"a": [1, None, True]}, {"a": [1, None, True]}),
        ([1, 2], [1, 2]),
        (17, 17),
        (None, None),
        ("text, not JSON", "text, not JSON"),
        (b"\x00\xff", b"\x00\xff"),
        (bytearray(b"ab"), b"ab"),
        (Order(1, ["tea"]), {"id": 1, "items": ["tea"]}),
        (Invoice(7), {"number": 7}),
        (Customer(name="Ann"), {"name": "Ann"}),
    ],
    ids=lambda value: type(value).__name__,
)
def test_what_is_published_is_read_back(stream, payload, read_back):
    assert stream.get(stream.publish(payload)).payload == read_back


def test_key_id_and_headers_are_read_back(stream):
    entry = stream.get(stream.publish("x", key="k", id="i", headers={"a": "1"}))

    assert (entry.key, entry.publish_id, entry.headers) == ("k", "i", {"a": "1"})
    bare = stream.get(stream.publish("x"))
    assert (bare.key, bare.publish_id, bare.headers) == (None, None, {})


def test_many_messages_are_published_in_order(stream):
    ids = stream.publish_many(({"n": number} for number in range(1_200)), key="k", headers={"h": "1"})

    entries = stream.range()
    assert [entry.id for entry in entries] == ids
    assert [entry.payload["n"] for entry in entries] == list(range(1_200))
    assert {(entry.key, entry.headers["h"]) for entry in entries} == {("k", "1")}


def test_what_cannot_be_json_is_refused_before_anything_is_sent(stream):
    with pytest.raises(ConfigError, match="object"):
        stream.publish(object())
    assert stream.length() == 0


def test_publishing_twice_with_the_same_id_is_once(stream):
    first = stream.publish({"n": 1}, id="order-17")

    assert stream.publish({"n": 1}, id="order-17") == first
    assert stream.publish({"n": 2}, id="order-18") != first
    assert stream.length() == 2


def test_publish_ids_of_two_streams_are_apart(client, name):
    one, two = client.stream(f"{name}-one"), client.stream(f"{name}-two")
    one.publish("x", id="a")
    two.publish("x", id="a")

    assert (one.length(), two.length()) == (1, 1)


def test_the_id_still_counts_when_the_entry_is_gone(stream):
    first = stream.publish("x", id="a")
    stream.delete(first)

    assert stream.publish("x", id="a") == first
    assert stream.length() == 0


def test_many_publishers_of_the_same_ids_add_each_once(connect, name):
    streams = [connect().stream(name) for _ in range(4)]
    answers: list[list[str]] = [[] for _ in streams]

    def publish(index: int) -> None:
        answers[index] = [streams[index].publish({"n": number}, id=f"order-{number}") for number in range(50)]

    threads = [threading.Thread(target=publish, args=(index,)) for index in range(len(streams))]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()

    assert streams[0].length() == 50
    assert all(answer == answers[0] for answer in answers)
