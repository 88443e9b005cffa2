"""How long entries stay, on every server: kept where it is asked for, gone when no group needs them. Row 263."""

import pytest

from headrace import App
from headrace.worker import housekeeping
from support.worker_programs import is_empty, run, until

pytestmark = pytest.mark.any_socket


def test_entries_are_kept_where_it_is_asked_for(url, name):
    """keep=True on one handler keeps the stream's entries."""
    app = App(url)

    @app.handler(name, keep=True)
    async def bill(number: int) -> None: ...

    async def program():
        async with app.worker() as worker:
            await app.publish_many(name, range(5))
            await until(lambda: worker.counters[name, "bill"].done == 5)
            return await app.client.stream(name).length()

    assert run(program()) == 5


def test_what_no_group_needs_goes_also_when_others_acknowledged_it(app, name, monkeypatch):
    """Row 263. A plain consumer never deletes, a group is abandoned and destroyed: only what a group needs stays."""
    monkeypatch.setattr(housekeeping, "EVERY_S", 0.02)
    monkeypatch.setattr(housekeeping, "TRIM_EVERY_S", 0.02)

    @app.handler(name)
    async def bill(number: int) -> None: ...

    async def program():
        stream = app.client.stream(name)
        slow, abandoned = stream.group("slow"), stream.group("abandoned")
        await slow.create(start="beginning")
        await abandoned.create(start="beginning")
        async with app.worker() as worker:
            ids = await app.publish_many(name, range(6))
            await until(lambda: worker.counters[name, "bill"].done == 6)
            entries = await slow.read("reader", count=4, wait="5s")
            await slow.ack(*[entry.id for entry in entries if entry.id != ids[2]])
            kept_for_both = await stream.length()
            await abandoned.destroy()
            await until(lambda: first_is(stream, ids[2]))
            kept_for_slow = [entry.id for entry in await stream.range()]
            await slow.ack(ids[2])
            await slow.ack(*[entry.id for entry in await slow.read("reader", count=4, wait="5s")])
            await until(lambda: is_empty(app, name, "bill"))
            return ids, kept_for_both, kept_for_slow

    ids, kept_for_both, kept_for_slow = run(program())
    assert kept_for_both == 6
    assert kept_for_slow == ids[2:]


async def first_is(stream, entry_id):
    return [entry.id for entry in await stream.range()][:1] == [entry_id]
