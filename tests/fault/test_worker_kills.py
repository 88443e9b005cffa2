"""Workers that are killed, told to stop or held up: nothing is lost, and twice comes only what was in flight.

Rows 218, 221, 223, 254-256, 259-261, on ours and on Valkey. The small counts run always; the large ones are in the long
run. Both print what they measured.
"""

from __future__ import annotations

import random
import time
from collections import Counter
from collections.abc import Iterator

import pytest

from headrace import Client
from support.command_line import headrace
from support.servers import wait_until
from support.worker_processes import (
    SERVERS,
    WAIT_S,
    Crew,
    is_done,
    log_of,
    numbers,
    redeliveries_s,
    say,
    server_in_memory,
    show,
    told,
    worker,
    write_shop,
)

ORDERS = {"orders": "billing"}


def counts(*small: object, many: tuple[object, ...]) -> list[object]:
    return [pytest.param(*small, id="some"), pytest.param(*many, marks=pytest.mark.long, id="many")]


@pytest.fixture(params=SERVERS)
def url(request: pytest.FixtureRequest) -> Iterator[str]:
    with server_in_memory(request.param) as url:
        yield url


@pytest.mark.parametrize(("messages", "kills"), counts(1500, 3, many=(100_000, 200)))
def test_workers_killed_at_random_lose_nothing(tmp_path, capsys, url, messages, kills):
    """Rows 254 and 255: every message is done; twice at most what a killed worker held; soon run by another."""
    folder = write_shop(tmp_path, act="await asyncio.sleep(0.02)", lease="2s", retries=1000)  # Each kill is a run.
    chance = random.Random(messages)
    portion = messages // kills
    with Client(url, timeout="60s") as client, Crew(folder, url, 3, ORDERS) as crew:
        for number in range(kills):
            client.stream("orders").publish_many(range(number * portion, (number + 1) * portion))
            goal = number * portion + chance.randrange(portion)
            crew.wait_until(lambda goal=goal: client.command("LLEN", "done") >= goal, f"kill {number}")
            crew.kill_one(chance)
        crew.wait_until(lambda: is_done(client), "the rest to be done", timeout_s=10 * WAIT_S)
        done, runs = Counter(row.id for row in told(client, "done")), told(client, "runs")
        assert set(numbers(client, "done")) == set(range(kills * portion))
        in_flight = sum(len(kill.held) for kill in crew.kills)
        doubled = {entry_id for entry_id, count in done.items() if count > 1}
        late = log_of(folder).count("late_finish")  # A machine so busy that a living worker lost its lease: told.
        say(capsys, f"{kills} kills, {in_flight} in flight, {len(doubled)} of {len(done)} done twice, {late} late")
        assert sum(done.values()) - len(done) <= in_flight
        assert len(doubled - crew.held_at_kills) <= late
        assert client.stream("hr:{orders}:billing:dead").length() == 0
        show(capsys, "from a kill to the next run", redeliveries_s(crew.kills, runs), 4.0, is_judged=kills > 3)


@pytest.mark.parametrize(("messages", "stops"), counts(300, 3, many=(6000, 60)))
def test_workers_told_to_stop_at_random_leave_nothing_stuck(tmp_path, url, messages, stops):
    """Row 261: the lease is ten minutes, so nothing but giving back can bring a message to another worker."""
    folder = write_shop(tmp_path, act="await asyncio.sleep(0.02)", lease="10m")
    chance = random.Random(messages)
    portion = messages // stops
    with (
        Client(url, timeout="60s") as client,
        Crew(folder, url, 2, ORDERS, "--shutdown-timeout", "0s") as crew,
    ):
        for number in range(stops):
            client.stream("orders").publish_many(range(number * portion, (number + 1) * portion))
            crew.stop_one(chance)
        crew.wait_until(lambda: is_done(client), "the rest to be done", timeout_s=2 * WAIT_S)
        assert set(numbers(client, "done")) == set(range(stops * portion))


@pytest.mark.parametrize(("messages", "lease_s"), counts(4, 0.8, many=(40, 0.8)))
def test_a_handler_that_takes_ten_leases_runs_once(tmp_path, url, messages, lease_s):
    """Rows 218 and 260: some wait, some block the event loop of their worker; another worker would take them.

    Ten leases are less than the ten seconds after which a call of a handler beside it would count as unanswered.
    """
    act = f"time.sleep({10 * lease_s}) if number % 8 == 0 else await asyncio.sleep({10 * lease_s})"
    folder = write_shop(tmp_path, act=act, lease=f"{lease_s}s", concurrency=8)
    with Client(url) as client, Crew(folder, url, 2, ORDERS) as crew:
        client.stream("orders").publish_many(range(messages))
        crew.wait_until(lambda: is_done(client), "all of them", timeout_s=10 * messages * lease_s + WAIT_S)
        assert sorted(numbers(client, "runs")) == list(range(messages))
        assert sorted(numbers(client, "done")) == list(range(messages))


POISON = """if number % 10 == 7 and not await app.client.command("EXISTS", "healed"):
        os._exit(1) if number % 20 == 7 else app.client.none_such()"""


@pytest.mark.parametrize("messages", counts(20, many=(200,)))
def test_poison_runs_n_plus_one_times_and_can_be_sent_again(tmp_path, url, messages):
    """Rows 167-169 and 221: some kill their worker, some raise. Two retries are three runs, then dead letters."""
    folder = write_shop(tmp_path, act=POISON, lease="500ms", concurrency=1)
    poison = {number for number in range(messages) if number % 10 == 7}
    with Client(url, timeout="60s") as client, Crew(folder, url, 1, ORDERS) as crew:
        client.stream("orders").publish_many(range(messages))
        dead = client.stream("hr:{orders}:billing:dead")
        crew.wait_until(lambda: dead.length() == len(poison), "the poison to be buried", timeout_s=10 * WAIT_S)
        crew.wait_until(lambda: is_done(client), "the others", timeout_s=WAIT_S)
        runs = Counter(numbers(client, "runs"))
        assert {number: runs[number] for number in poison} == dict.fromkeys(poison, 3)
        assert set(numbers(client, "done")) == set(range(messages)) - poison
        for letter in dead.range():
            assert letter.fields["hr:attempts"] == "3" and letter.payload in poison
            words = "a worker ended while it ran this message" if letter.payload % 20 == 7 else "none_such"
            assert words in letter.fields["hr:error"]
        client.command("SET", "healed", 1)
        assert headrace("dlq", "replay", "orders", "billing", url=url).row["replayed"] == len(poison)
        crew.wait_until(lambda: set(numbers(client, "done")) == set(range(messages)), "those sent again")
        assert dead.length() == 0


CHAIN = """
import asyncio
from headrace import App, Context

app = App()

@app.handler("{chain}:one", lease="500ms", publish_to="{chain}:two", retries=100)
async def first(number: int) -> int:
    await asyncio.sleep(0.01)
    return number

@app.handler("{chain}:two", lease="500ms", publish_to="{chain}:three", retries=100)
async def second(number: int) -> int:
    await asyncio.sleep(0.01)
    return number

@app.handler("{chain}:three", lease="500ms", retries=100)
async def third(number: int, ctx: Context) -> None:
    await ctx.commit([("RPUSH", "{chain}:done", number)])
"""
STEPS = {"{chain}:one": "first", "{chain}:two": "second", "{chain}:three": "third"}


@pytest.mark.parametrize(("messages", "kills"), counts(600, 3, many=(20_000, 100)))
def test_a_chain_of_three_steps_under_kills_gives_each_result_once(tmp_path, capsys, url, messages, kills):
    """Rows 223 and 259: no chain is lost, none is doubled; the last step commits its effect."""
    (tmp_path / "shop.py").write_text(CHAIN)
    chance = random.Random(messages)
    portion = messages // kills
    with Client(url, timeout="60s") as client, Crew(tmp_path, url, 2, STEPS) as crew:

        def results() -> int:
            return int(client.command("LLEN", "{chain}:done"))

        for number in range(kills):
            client.stream("{chain}:one").publish_many(range(number * portion, (number + 1) * portion))
            crew.wait_until(lambda goal=number * portion: results() >= goal, f"kill {number}")
            crew.kill_one(chance)
        crew.wait_until(lambda: results() >= kills * portion, "all results", timeout_s=10 * WAIT_S)
        crew.wait_until(lambda: all(is_done(client, *step) for step in STEPS.items()), "all to be settled")
        found = [int(item) for item in client.command("LRANGE", "{chain}:done", 0, -1)]
        say(capsys, f"{kills} kills, {len(crew.held_at_kills)} in flight, {len(found)} results")
        assert sorted(found) == list(range(kills * portion))


DELAYED = """
import time
from headrace import App, Context

app = App()

@app.handler("orders", group="billing", lease="2s")
async def bill(order: dict, ctx: Context) -> None:
    now_ms = time.time_ns() // 1000000
    name = "early" if now_ms < order["due_ms"] else "done"
    await app.client.command("RPUSH", name, f"{ctx.id} {order['id']} {now_ms}")
"""


@pytest.mark.parametrize(("messages", "kills", "longest_s"), counts(400, 3, 4.0, many=(10_000, 50, 150.0)))
def test_delayed_messages_survive_kills_and_are_never_early(tmp_path, capsys, url, messages, kills, longest_s):
    """Row 256: none is lost, none early; twice only what was in flight when a worker was killed."""
    (tmp_path / "shop.py").write_text(DELAYED)
    chance = random.Random(messages)
    due_ms: dict[int, int] = {}
    with Client(url, timeout="60s") as client, Crew(tmp_path, url, 2, ORDERS) as crew:
        for number in range(messages):
            delay_s = round(chance.uniform(0, longest_s), 3)
            due_ms[number] = time.time_ns() // 1_000_000 + int(delay_s * 1000)
            client.stream("orders").publish({"id": number, "due_ms": due_ms[number]}, delay=delay_s)
        for round_ in range(kills):
            goal = (round_ + 1) * messages // (kills + 1)
            crew.wait_until(lambda goal=goal: client.command("LLEN", "done") >= goal, f"{goal}", timeout_s=2 * WAIT_S)
            crew.kill_any(chance)
        crew.wait_until(lambda: set(numbers(client, "done")) == set(due_ms), "all", timeout_s=longest_s + WAIT_S)
        crew.wait_until(lambda: is_done(client), "all to be settled")
        done = told(client, "done")
        assert client.command("LLEN", "early") == 0
        assert client.command("ZCARD", "hr:{orders}:delayed") == 0
        doubled = {entry_id for entry_id, count in Counter(row.id for row in done).items() if count > 1}
        say(capsys, f"{kills} kills, {len(crew.held_at_kills)} in flight, {len(doubled)} of {messages} done twice")
        assert len(doubled - crew.held_at_kills) <= log_of(tmp_path).count("late_finish")
        assert len({row.id for row in done}) == messages  # Each came into the stream once.
        first: dict[int, int] = {}
        for row in done:
            first.setdefault(row.number, row.at_ms)
        late_s = [(first[number] - at_ms) / 1000 for number, at_ms in due_ms.items()]
        # One may be held by several that are killed in turn.
        show(capsys, "behind their time", late_s, 10.0, is_judged=kills > 3)


def test_a_retry_waits_in_the_broker_and_not_in_the_worker(tmp_path, url):
    """Row 255: the worker is killed while a retry waits; another runs it, as the second attempt."""
    folder = write_shop(tmp_path, act="raise ValueError('no')", lease="10m")
    with Client(url) as client:
        client.stream("orders").publish(1)
        with worker(folder, url) as process:
            wait_until(lambda: client.command("ZCARD", "hr:{orders}:billing:due") == 1, "a retry", timeout_s=WAIT_S)
            process.kill()
            process.wait(60)
        runs = len(numbers(client, "runs"))
        write_shop(folder, lease="10m")
        with worker(folder, url):
            wait_until(lambda: is_done(client), "another worker to run it", timeout_s=WAIT_S)
        assert len(numbers(client, "runs")) == runs + 1 and numbers(client, "done") == [1]
