"""What functions ask for, and how messages become that: requirement 253."""

from dataclasses import dataclass
from typing import Any, TypedDict

import msgspec
import pydantic
import pytest

from headrace import Context, Entry
from headrace.app.delivery import Delivery
from headrace.app.signature import read_parameters, resolve
from headrace.errors import ConfigError, Misfit


@dataclass
class Order:
    id: int
    total: float = 0.0


class OrderDict(TypedDict):
    id: int


class OrderStruct(msgspec.Struct):
    id: int


class OrderModel(pydantic.BaseModel):
    id: int


class Database: ...


def signature_of(function, provided=(), *, is_batch=False):
    return resolve(function.__name__, read_parameters(function), dict.fromkeys(provided, function), is_batch=is_batch)


def delivery(*words):
    return Delivery("1-0", list(words), "orders", 0.0, 0, is_again=False)


def decode(annotation, *words):
    def handler(message): ...

    handler.__annotations__["message"] = annotation
    return signature_of(handler).decode(delivery(*words))


@pytest.mark.parametrize(
    ("annotation", "expected"),
    [
        (dict, {"id": 17}),
        (dict[str, int], {"id": 17}),
        (Order, Order(17)),
        (OrderDict, {"id": 17}),
        (OrderStruct, OrderStruct(17)),
        (OrderModel, OrderModel(id=17)),
        (bytes, b'{"id":17}'),
        (str, '{"id":17}'),
        (Any, {"id": 17}),
        (Entry, Entry("1-0", ((b"data", b'{"id":17}'),), "orders")),
    ],
)
def test_a_published_message_becomes_what_the_annotation_says(annotation, expected):
    assert decode(annotation, b"data", b'{"id":17}') == expected


@pytest.mark.parametrize(
    ("annotation", "expected"),
    [
        (dict, {"id": "17"}),
        (Order, Order(17)),
        (OrderDict, {"id": 17}),
        (OrderStruct, OrderStruct(17)),
        (OrderModel, OrderModel(id=17)),
        (Any, {"id": "17"}),
    ],
)
def test_an_entry_of_somebody_else_is_read_from_its_fields(annotation, expected):
    assert decode(annotation, b"id", b"17", b"hr:id", b"1-0") == expected


def test_the_last_of_several_data_fields_counts():
    assert decode(dict, b"data", b'{"a":1}', b"data", b'{"a":2}') == {"a": 2}
    assert decode(bytes, b"data", b"x", b"key", b"k") == b"x"


@pytest.mark.parametrize("annotation", [dict, Order, OrderDict, OrderStruct, OrderModel, Any, int])
@pytest.mark.parametrize("data", [b"{", b"\xff\xfe", b'{"id":"not a number"', b"[" * 100_000])
def test_what_is_not_json_is_a_misfit(annotation, data):
    with pytest.raises(Misfit):
        decode(annotation, b"data", data)


@pytest.mark.parametrize("annotation", [Order, OrderDict, OrderStruct, OrderModel])
def test_a_misfit_names_the_type_the_reason_and_the_data(annotation):
    with pytest.raises(Misfit, match=r"no Order(.|\n)*id(.|\n)*begins with") as raised:
        decode(annotation, b"data", b'{"id":"seventeen"}')

    assert '{"id":"seventeen"}' in str(raised.value)


@pytest.mark.parametrize("annotation", [bytes, str])
def test_bytes_and_text_need_the_data_field(annotation):
    with pytest.raises(Misfit, match="no field 'data'"):
        decode(annotation, b"id", b"17")


def test_context_and_provided_types_are_told_from_the_message():
    async def bill(order: Order, ctx: Context, database: Database, note: str = "x"): ...

    signature = signature_of(bill, [Database])

    assert (signature.message, signature.context, signature.injected) == ("order", "ctx", {"database": Database})


def test_a_handler_may_take_the_context_alone():
    def bill(ctx: Context): ...

    signature = signature_of(bill)

    assert signature.message is None and signature.context == "ctx"


def test_two_messages_are_refused_in_words_that_help():
    def bill(order: Order, database: Database): ...

    with pytest.raises(ConfigError, match=r"bill asks for order, database.*app\.provide"):
        signature_of(bill)


def test_a_batch_takes_a_list_and_contexts():
    def store(orders: list[Order], contexts: list[Context]): ...

    signature = signature_of(store, is_batch=True)

    assert signature.decode(delivery(b"data", b'{"id":1}')) == Order(1)
    assert signature.context == "contexts"


def test_a_batch_handler_with_other_annotations_is_told_what_to_write():
    def store(orders: dict): ...

    def store_with_context(orders: list, ctx: Context): ...

    with pytest.raises(ConfigError, match=r"orders: list\["):
        signature_of(store, is_batch=True)
    with pytest.raises(ConfigError, match=r"ctx: list\[Context\]"):
        signature_of(store_with_context, is_batch=True)


def test_annotations_that_no_message_can_become_are_named():
    def bill(order: Database): ...

    def late(order: "Nowhere"): ...  # noqa: F821 - that is the point.

    def by_position(order: dict, /): ...

    with pytest.raises(ConfigError, match="cannot become"):
        decode_first(bill)
    with pytest.raises(ConfigError, match="Nowhere"):
        read_parameters(late)
    with pytest.raises(ConfigError, match="by position only"):
        read_parameters(by_position)


def decode_first(function):
    return signature_of(function)
