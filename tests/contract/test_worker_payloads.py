"""What a message becomes by the annotation of its handler, on every server. Row 253."""

from dataclasses import dataclass
from typing import TypedDict

import msgspec
import pydantic
import pytest

from headrace import Entry
from support.worker_programs import run, until

pytestmark = pytest.mark.any_socket


@dataclass
class Order:
    id: int


class OrderDict(TypedDict):
    id: int


class OrderStruct(msgspec.Struct):
    id: int


class OrderModel(pydantic.BaseModel):
    id: int


def test_every_kind_of_annotation(app, name):
    """Row 253."""
    seen = {}

    @app.handler(name)
    async def as_dict(order: dict) -> None:
        seen["dict"] = order

    @app.handler(name)
    async def as_dataclass(order: Order) -> None:
        seen["dataclass"] = order

    @app.handler(name)
    async def as_typed_dict(order: OrderDict) -> None:
        seen["typed dict"] = order

    @app.handler(name)
    async def as_struct(order: OrderStruct) -> None:
        seen["struct"] = order

    @app.handler(name)
    async def as_model(order: OrderModel) -> None:
        seen["model"] = order

    @app.handler(name)
    async def as_bytes(order: bytes) -> None:
        seen["bytes"] = order

    @app.handler(name)
    def as_text(order: str) -> None:
        seen["text"] = order

    @app.handler(name)
    async def as_entry(order: Entry) -> None:
        seen["entry"] = order.pairs

    async def program():
        async with app.worker():
            await app.publish(name, {"id": 17})
            await until(lambda: len(seen) == 8)

    run(program())
    assert seen == {
        "dict": {"id": 17}, "dataclass": Order(17), "typed dict": {"id": 17}, "struct": OrderStruct(17),
        "model": OrderModel(id=17), "bytes": b'{"id":17}', "text": '{"id":17}', "entry": ((b"data", b'{"id":17}'),),
    }  # fmt: skip
