"""The HTTP side of the coordinator: views, refusals, limits, and a broker that goes away. Rows 232, 233, 235, 238."""

import asyncio
import signal
from contextlib import contextmanager

import pytest

from headrace import AsyncClient
from headrace.errors import ConfigError
from headrace.ordered import api, coordinator, master
from headrace.ordered.bodies import MOST_BODY_BYTES
from headrace.ordered.endpoints import ENDPOINTS
from support.deployments import KEEPS_EVERYTHING, Process, is_from_wheel, real_kinds
from support.durable_broker import DurableBroker
from support.ordered_programs import scene
from support.worker_programs import run, until

pytestmark = pytest.mark.any_socket


def test_the_views_show_holders_messages_and_keys(url, name):
    """Rows 232 and 233: message_ids and ticket_ids come from the lanes; nothing is stored twice."""

    async def program():
        async with scene(url, name) as it:
            session = await it.register("c1", capacity=2, health="http://127.0.0.1:1/api/health")
            first, second = [await it.add("7", number) for number in range(2)]
            await it.add("8")
            [message, _] = await it.messages("c1", 2)
            ticket = await it.ok("GET", "/api/tickets/7")
            assert ticket["message_ids"] == [first, second] and ticket["messages"] == 2
            assert (ticket["consumer_name"], ticket["state"], ticket["fence"]) == ("c1", "held", message["fence"])
            assert ticket["since_ms"] < ticket["until_ms"]
            [consumer] = (await it.ok("GET", "/api/consumers"))["consumers"]
            assert (sorted(consumer["ticket_ids"]), consumer["session"], consumer["capacity"]) == (
                ["7", "8"],
                session,
                2,
            )
            assert consumer["healthURL"] == "http://127.0.0.1:1/api/health" and consumer["alive"]
            lanes = await it.ok("GET", "/api/lanes")
            assert (lanes["stream"], lanes["key_fields"], lanes["consumers"]) == (name, ["ticket_id"], 1)
            health = await it.ok("GET", "/api/health")
            assert health["name"] and health["uptime_s"] >= 0 and health["held_or_waiting"] == 2

    run(program())


@pytest.mark.parametrize("which", ["tickets", "consumers"])
def test_a_map_whose_name_something_else_has_is_told_at_the_start(url, name, which):
    async def program():
        async with AsyncClient(url) as client:
            await client.command("XADD", f"{{{name}}}:{which}", "*", "a", "b")
        with pytest.raises(ConfigError, match=f"is a stream, .*another one: --{which}"):
            async with scene(url, name):
                pass

    run(program())


def test_keys_come_in_pages_and_by_state(url, name):
    async def program():
        async with scene(url, name) as it:
            await it.register("c1", capacity=3)
            for number in range(30):
                await it.add(str(number))
            await it.messages("c1", 3)
            await it.client.command("XREADGROUP", "GROUP", it.master.order.group, "master", "STREAMS", name, ">")
            [message, *_] = await it.messages("c1", 3)
            await it.acknowledge("c1", message)  # The next one to be taken puts what was read into lanes.
            await until(lambda: knows_all(it))
            found, cursor = set(), 0
            while cursor is not None:
                page = await it.ok("GET", f"/api/tickets?limit=10&cursor={cursor}")
                found |= {row["ticket_id"] for row in page["tickets"]}
                cursor = page["cursor"]
            assert found == {str(number) for number in range(30)} - {message["ticket_id"]}
            held = (await it.ok("GET", "/api/tickets?state=held&limit=1000"))["tickets"]
            assert {row["consumer_name"] for row in held} == {"c1"} and len(held) == 3
            assert (await it.ok("GET", "/api/parked"))["tickets"] == []

    async def knows_all(it):
        return (await it.ok("GET", "/api/lanes"))["keys"] == 29

    run(program())


def test_what_cannot_be_served_is_refused_in_json_with_what_to_do(url, name):
    post = "POST"
    cases = [
        ("GET", "/", None, 404),
        ("GET", "/api/consumers/register", None, 405),
        (post, "/api/tickets", {}, 405),
        (post, "/api/consumers/register", b"{", 400),
        (post, "/api/consumers/register", {"consumer": ""}, 400),
        (post, "/api/consumers/register", {"consumer": "c1", "healthURL": "nowhere"}, 400),
        (post, "/api/consumers/register", {"consumer": "lanes"}, 400),
        (post, "/api/consumers/register", {"consumer": "master"}, 400),
        (post, "/api/consumers/register", b'{"consumer": "' + b"x" * MOST_BODY_BYTES + b'"}', 413),
        (post, "/api/messages/acknowledge", {"consumer": "c1"}, 400),
        (post, "/api/messages/acknowledge", {"consumer": "c1", "ticket_id": "7", "message_id": "x"}, 400),
        (post, "/api/consumers/heartbeat", {"consumer": "unknown"}, 404),
        ("GET", "/api/consumers/unknown/messages", None, 404),
        ("GET", "/api/tickets/none", None, 404),
        ("GET", "/api/tickets?state=lost", None, 400),
        ("GET", "/api/tickets?limit=0", None, 400),
        ("GET", "/api/tickets?limit=1001", None, 400),
        ("GET", "/api/tickets?cursor=-1", None, 400),
        ("GET", "/api/consumers/c1/messages?wait=31", None, 400),
        ("GET", "/api/consumers/c1/messages?wait=nan", None, 400),
        ("GET", "/api/consumers/c1/messages?after=x", None, 400),
    ]

    async def program():
        async with scene(url, name) as it:
            for method, path, body, expected in cases:
                status, answer = await it.call(method, path, body)
                assert status == expected, (method, path, answer)
                assert answer["error"] and answer["what_to_do"]
            document = await it.ok("GET", "/openapi.json")
            assert set(document["paths"]) == {endpoint.path for endpoint in ENDPOINTS}

    run(program())


def test_a_token_is_asked_for_everywhere_but_where_monitors_look(url, name):
    async def program():
        async with scene(url, name, token="secret") as it:
            for endpoint in ENDPOINTS:
                path = endpoint.path.replace("{name}", "c1").replace("{key}", "7")
                status, _ = await it.call(endpoint.method, path, {"consumer": "c1"} if endpoint.body else None)
                assert (status == 401) == (not endpoint.is_open), endpoint
            answer = await it.caller.call("GET", it.master.url + "/api/lanes", token="secret", timeout_s=30)
            assert answer.status == 200

    run(program())


def test_no_more_consumers_than_the_limit_may_register(url, name, monkeypatch):
    monkeypatch.setattr(coordinator, "MOST_CONSUMERS", 2)

    async def program():
        async with scene(url, name) as it:
            for consumer in ("c1", "c2", "c1"):
                await it.register(consumer)
            status, answer = await it.call("POST", "/api/consumers/register", {"consumer": "c3"})
            assert status == 429 and answer["what_to_do"]
            await it.ok("POST", "/api/consumers/leave", {"consumer": "c1"})
            await it.register("c3")

    run(program())


def test_a_body_that_does_not_arrive_is_given_up(url, name, monkeypatch):
    monkeypatch.setattr(api, "BODY_S", 0.1)

    async def program():
        async with scene(url, name) as it:
            reader, writer = await asyncio.open_connection("127.0.0.1", it.master.serving.port)
            head = b"POST /api/consumers/register HTTP/1.1\r\nHost: localhost\r\nContent-Length: 100\r\n\r\n{"
            writer.write(head)
            assert (await reader.readline()).split()[1] == b"408"
            writer.close()
            await asyncio.gather(writer.wait_closed(), return_exceptions=True)

    run(program())


def test_a_group_that_was_removed_is_made_again(url, name):
    async def program():
        async with scene(url, name) as it:
            await it.register("c1")
            await it.client.command("DEL", name)
            await it.client.command("DEL", it.master.order.keys[5])  # The settings.
            await until(lambda: is_there(it))
            await it.register("c1")
            await it.add("7")
            assert len(await it.messages("c1")) == 1

    async def is_there(it):
        return (await it.call("GET", "/api/lanes"))[0] == 200

    run(program())


# A broker that goes away


@contextmanager
def ours(folder):
    with DurableBroker(folder, "--fsync", "no") as broker:
        broker.start()
        yield f"redis://127.0.0.1:{broker.port}", broker.kill, broker.start


@contextmanager
def valkey(_folder):
    [kind] = [kind for kind in real_kinds() if is_from_wheel(kind)]
    with Process(kind, *KEEPS_EVERYTHING) as server:
        yield server.url, lambda: server.end(signal.SIGKILL), server.start


@pytest.mark.parametrize("start", [ours, valkey])
def test_while_the_broker_is_away_requests_get_503_and_then_it_goes_on_by_itself(start, tmp_path, name, monkeypatch):
    monkeypatch.setattr(master, "ANSWER_S", 1.0)

    async def program(url, kill, start_again):
        async with scene(url, name, lease_ms=5000) as it:
            await it.register("c1")
            await it.add("7", "before")
            [message] = await it.messages("c1")
            await asyncio.to_thread(kill)
            for method, path, body in (
                ("GET", "/api/health", None),
                ("POST", "/api/messages/acknowledge", {"consumer": "c1", "ticket_id": "7", "message_id": "1-0"}),
            ):
                status, answer = await it.call(method, path, body)
                assert status == 503 and "by itself" in answer["what_to_do"]
            await asyncio.to_thread(start_again)
            await until(lambda: is_well(it))
            assert (await it.acknowledge("c1", message))[0] in (200, 409)  # Or its lease ended meanwhile.
            await it.client.ping()  # Finds the connection broken, and makes another.
            await it.add("8", "after")
            await until(lambda: has_done(it))

    async def is_well(it):
        return (await it.call("GET", "/api/health"))[0] == 200

    async def has_done(it):
        for message in await it.messages("c1", 0):
            await it.acknowledge("c1", message)
        return not await it.owners()

    with start(tmp_path / "data") as (url, kill, start_again):
        run(program(url, kill, start_again))
