"""Documented usage of delegated consumers that must type-check."""

from headrace import Bury, OrderedConsumer, OrderedMessage, Retries, Retry


async def handle(message: OrderedMessage) -> None:
    if message.attempt > 3:
        raise Bury("no such ticket")
    if not message.fields.get("action"):
        raise Retry(after="5m")
    print(message.key, message.id, message.fence, message.payload)  # noqa: T201 - as in the docs.


def handle_in_a_thread(message: OrderedMessage) -> str:
    return message.key


async def main() -> None:
    async with OrderedConsumer(handle, master="http://localhost:7381", name="c1", port=7382, token="secret"):
        pass
    consumer = OrderedConsumer(
        handle_in_a_thread, url="redis://localhost", stream="tickets", group="billing", key_field="ticket_id",
        capacity=20, retries=Retries(first="1s"), shutdown_timeout="10s", delete=True,
    )  # fmt: skip
    consumer.stop()
    await consumer.run()
