"""Requirement 266: hooks in their documented order."""

import asyncio

import pytest

from headrace import App, ConfigError, Middleware
from headrace.app.middleware import Hooks


def recording(name, log):
    class Recording(Middleware):
        async def before_publish(self, message):
            log.append(f"{name} before {message.stream}")

        async def after_publish(self, message, entry_id):
            log.append(f"{name} after {message.stream}")

    return Recording()


def test_before_hooks_run_in_order_and_after_hooks_in_reverse():
    log = []

    async def publish():
        async with App("embedded:") as app:
            app.middleware(recording("one", log))
            app.middleware(recording("two", log))
            await app.publish("orders-of-middleware", {"id": 1})

    asyncio.run(publish())

    assert log == [
        "one before orders-of-middleware",
        "two before orders-of-middleware",
        "two after orders-of-middleware",
        "one after orders-of-middleware",
    ]


def test_hooks_that_are_not_overridden_are_not_there():
    hooks = Hooks()
    hooks.add(recording("one", []))

    assert hooks.has("before_publish") and not hooks.has("before_process", "after_ack")


def test_something_else_is_refused():
    with pytest.raises(ConfigError, match="no Middleware"):
        App("embedded:").middleware(object())
