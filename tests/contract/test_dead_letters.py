"""Dead letters on every server: listed, sent again, dropped. Row 169, and 221: what was given up can be replayed."""

import pytest

from headrace import Bury, ConfigError, Context, NotFound
from support.worker_programs import is_empty, run, until

pytestmark = pytest.mark.any_socket


def declare(app, name):
    """A handler that buries until it is told that all is well."""
    state = {"is_well": False, "seen": []}

    @app.handler(name, group="billing")
    async def bill(order: dict, ctx: Context) -> None:
        if not state["is_well"]:
            raise Bury(f"timeout {order['id']}" if order["id"] % 2 else "declined")
        state["seen"].append((order["id"], ctx.attempt))

    return state


def test_letters_are_listed_filtered_and_got(app, name):
    declare(app, name)

    async def program():
        async with app.worker() as worker:
            ids = await app.publish_many(name, [{"id": number} for number in range(4)], key="k")
            await until(lambda: worker.counters[name, "billing"].buried == 4)
            dead = app.dead(name)
            letters = await dead.list()
            assert await dead.count() == 4
            assert [letter.payload["id"] for letter in await dead.list(where='error ~ "timeout"')] == [1, 3]
            assert len(await dead.list(where=lambda letter: letter.attempts > 1)) == 0
            assert len(await dead.list(limit=3)) == 3
            assert (await dead.get(letters[0].id)) == letters[0]
            with pytest.raises(NotFound, match="no dead letter 1-1"):
                await dead.get("1-1")
        return ids, letters

    ids, letters = run(program())
    assert [letter.entry_id for letter in letters] == ids
    first = letters[0]
    assert (first.stream, first.group, first.attempts, first.error, first.key) == (name, "billing", 1, "declined", "k")
    assert first.at is not None and first.pairs == ((b"data", b'{"id":0}'), (b"key", b"k"))


def test_a_letter_sent_again_is_handled_by_its_group_alone_as_a_first_attempt(app, name):
    state = declare(app, name)
    others = []

    @app.handler(name, group="audit")
    async def audit(order: dict) -> None:
        others.append(order["id"])

    async def program():
        async with app.worker() as worker:
            await app.publish_many(name, [{"id": number} for number in range(4)])
            await until(lambda: worker.counters[name, "billing"].buried == 4)
            dead = app.dead(name, "billing")
            assert await dead.replay(where="error ~ timeout", dry_run=True) == 2
            assert await dead.count() == 4
            state["is_well"] = True
            assert await dead.replay(where="error ~ timeout") == 2
            await until(lambda: len(state["seen"]) == 2)
            assert await dead.count() == 2
            assert await dead.replay() == 2
            await until(lambda: len(state["seen"]) == 4)
            await until(lambda: is_empty(app, f"hr:{{{name}}}:billing:again", "billing"))

    run(program())
    assert sorted(state["seen"]) == [(0, 1), (1, 1), (2, 1), (3, 1)]
    assert sorted(others) == [0, 1, 2, 3]


def test_a_letter_that_fails_again_keeps_where_it_came_from(app, name):
    declare(app, name)

    async def program():
        async with app.worker() as worker:
            entry_id = await app.publish(name, {"id": 1}, key="k")
            await until(lambda: worker.counters[name, "billing"].buried == 1)
            await app.dead(name).replay()
            await until(lambda: worker.counters[name, "billing"].buried == 2)
            [letter] = await app.dead(name).list()
        return entry_id, letter

    entry_id, letter = run(program())
    assert (letter.stream, letter.entry_id, letter.payload, letter.key) == (name, entry_id, {"id": 1}, "k")


def test_a_letter_may_go_to_another_stream(app, name):
    declare(app, name)

    async def program():
        async with app.worker() as worker:
            entry_id = await app.publish(name, {"id": 1})
            await until(lambda: worker.counters[name, "billing"].buried == 1)
            assert await app.dead(name).replay(to=f"{name}-again") == 1
            [entry] = await app.client.stream(f"{name}-again").range()
        return entry_id, entry

    entry_id, entry = run(program())
    assert entry.pairs == ((b"data", b'{"id":1}'), (b"hr:stream", name.encode()), (b"hr:id", entry_id.encode()))
    assert entry.payload == {"id": 1}


def test_letters_are_dropped_only_when_it_is_said_which(app, name):
    declare(app, name)

    async def program():
        async with app.worker() as worker:
            await app.publish_many(name, [{"id": number} for number in range(4)])
            await until(lambda: worker.counters[name, "billing"].buried == 4)
            dead = app.dead(name)
            with pytest.raises(ConfigError, match="say which"):
                await dead.drop()
            [first, *_] = await dead.list()
            assert await dead.drop(first.id) == 1
            assert await dead.drop(where="error ~ timeout") == 2
            assert await dead.drop(everything=True) == 1
            assert await dead.count() == 0

    run(program())


def test_which_group_is_meant_must_be_clear(app, name):
    declare(app, name)

    with pytest.raises(ConfigError, match="no handler of it"):
        app.dead("other")
    assert app.dead(name).group == "billing" and app.dead("other", "g").group == "g"
