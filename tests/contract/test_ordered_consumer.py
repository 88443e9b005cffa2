"""Delegated consumers, through a coordinator and straight from the broker. Rows 227, 238, 239, 242, 250, 306."""

import asyncio
import json
import os
import signal
import subprocess
import sys
import threading
import time
from contextlib import asynccontextmanager
from dataclasses import replace

import pytest

from headrace import AsyncClient, Bury, ConfigError, OrderedConsumer, Retries, Retry
from headrace.client import lane_steps
from headrace.ordered.consumer_settings import find_settings
from headrace.ordered.http_call import Caller
from headrace.ordered.master import Master
from support.ordered_programs import GROUP, Scene, scene, settings_for
from support.worker_programs import run, until

pytestmark = [pytest.mark.any_socket, pytest.mark.other_process]

QUICK = Retries(first="10ms", longest="20ms")


@pytest.fixture(params=["master", "broker"])
def way(request, url, name):
    """way(...) is a scene, and a function that makes consumers of one kind in it."""

    @asynccontextmanager
    async def open_scene(**words):
        if request.param == "master":
            async with scene(url, name, **words) as it:
                yield (
                    it,
                    lambda handler, **more: OrderedConsumer(
                        handler, master=it.master.url, stream=name, **{"retries": QUICK, **more}
                    ),
                )
            return
        async with AsyncClient(url) as client:  # No coordinator: only its settings.
            settings = settings_for(name, **words)
            await client.stream(name).group(GROUP).create(start="beginning")
            await client.run(lane_steps.config(client._facts, settings.order))
            yield (
                Scene(client, name, []),
                lambda handler, **more: OrderedConsumer(handler, url=url, stream=name, **{"retries": QUICK, **more}),
            )

    return open_scene


async def is_drained(it):
    """Everything was read, and nothing is pending."""
    stream = it.client.stream(it.stream)
    last_read = (await stream.group(GROUP).info()).last_delivered_id
    return last_read == (await stream.info()).last_id and not await it.owners()


class Journal:
    """What handlers did: per key the numbers in order, and whether two of one key ever ran at once."""

    def __init__(self):
        self.seen = {}
        self.running = set()
        self.most = 0

    async def handle(self, message):
        assert message.key not in self.running, f"two of {message.key} at once"
        self.running.add(message.key)
        self.most = max(self.most, len(self.running))
        await asyncio.sleep(0.001)
        self.running.discard(message.key)
        self.seen.setdefault(message.key, []).append(int(message.fields["n"]))

    @property
    def count(self):
        return sum(map(len, self.seen.values()))


def test_messages_of_one_key_run_one_after_the_other_and_those_of_others_beside_them(way):
    """Row 227: three consumers, 15 keys, 150 messages: exact sequences, no overlap."""

    async def program():
        journal = Journal()
        async with way() as (it, make):
            for number in range(150):
                await it.add(str(number % 15), number)
            async with make(journal.handle, name="c1"), make(journal.handle), make(journal.handle):
                await until(lambda: journal.count == 150)
                await until(lambda: is_drained(it))
        assert journal.seen == {str(key): list(range(key, 150, 15)) for key in range(15)}
        assert journal.most > 1

    run(program())


def test_an_idle_consumer_calls_once_a_second_at_most_and_wakes_at_once(way):
    """Row 239: counted, not timed; and a message read counts as one delivery."""

    async def program():
        calls = []
        arrived = asyncio.Event()

        async def handle(message):
            [pending] = await it.client.stream(it.stream).group(GROUP).pending()
            assert pending.deliveries == message.attempt == 1
            arrived.set()

        async with way() as (it, make), make(handle, name="c1") as consumer:
            count_calls(consumer, calls)
            start_s = time.monotonic()
            await asyncio.sleep(2.5)  # What is counted is how often it calls in this time.
            assert len(calls) <= time.monotonic() - start_s + 3, calls  # The first ones build the lanes.
            await it.add("7")
            async with asyncio.timeout(60):
                await arrived.wait()

    run(program())


def count_calls(consumer, calls):
    """Whatever it asks, over HTTP or of the broker."""
    target = consumer.source.caller if hasattr(consumer.source, "caller") else consumer.source.client
    method = "call" if hasattr(consumer.source, "caller") else "run"
    original = getattr(target, method)

    async def counted(*words, **more):
        calls.append(words[:2])
        return await original(*words, **more)

    setattr(target, method, counted)


def test_a_failed_message_comes_again_before_the_others_of_its_key(way):
    async def program():
        seen = []

        async def handle(message):
            seen.append((message.fields["n"], message.attempt))
            if message.fields["n"] == "0" and message.attempt < 3:
                raise Retry("not yet", after="10ms") if message.attempt == 1 else ValueError("again")

        async with way() as (it, make):
            for number in range(2):
                await it.add("7", number)
            async with make(handle) as consumer:
                await until(lambda: is_drained(it))
                await until(lambda: (consumer.runner.failed, consumer.runner.done) == (2, 2))
        assert seen == [("0", 1), ("0", 2), ("0", 3), ("1", 1)]

    run(program())


def test_a_hopeless_message_goes_to_the_dead_letters_and_the_key_goes_on(way, name):
    async def program():
        seen = []

        async def handle(message):
            seen.append(message.fields["n"])
            if message.fields["n"] == "0":
                raise Bury("no such ticket")

        async with way() as (it, make):
            for number in range(2):
                await it.add("7", number)
            async with make(handle):
                await until(lambda: is_drained(it))
            dead = settings_for(name).order.dead
            [[_, pairs]] = await it.client.command("XRANGE", dead, "-", "+")
            assert b"no such ticket" in pairs
        assert seen == ["0", "1"]

    run(program())


def test_a_plain_function_runs_in_a_thread(way):
    async def program():
        threads = set()

        def handle(message):
            threads.add(threading.current_thread().name)

        async with way() as (it, make):
            for number in range(5):
                await it.add(str(number))
            async with make(handle):
                await until(lambda: is_drained(it))
        assert threads and threading.main_thread().name not in threads

    run(program())


def test_what_is_unfinished_at_the_end_goes_to_others_at_once_and_uncounted(way):
    """Row 250: the lease is 30 s, and nobody waits for it."""

    async def program():
        started, seen = asyncio.Event(), []

        async def hang(message):
            started.set()
            await asyncio.sleep(3600)

        async def handle(message):
            seen.append((message.fields["n"], message.attempt))

        async with way() as (it, make):
            for number in range(2):
                await it.add("7", number)
            async with make(hang, shutdown_timeout="10ms"):
                await started.wait()
            async with make(handle):
                await until(lambda: is_drained(it))
        assert seen == [("0", 1), ("1", 1)]

    run(program())


def test_a_long_handler_keeps_its_key_over_several_leases(way):
    async def program():
        fences = []

        async def handle(message):
            fences.append(message.fence)
            await asyncio.sleep(4)  # Longer than two leases.

        async with way(lease_ms=1500) as (it, make):
            await it.add("7")
            async with make(handle, port=0), make(handle, port=0):
                await until(lambda: is_drained(it))
        assert len(fences) == 1

    run(program())


def test_a_consumer_whose_name_was_taken_over_ends(way):
    async def program():
        async def handle(message):
            pass

        async with way() as (_, make):
            old = make(handle, name="c1")
            running = asyncio.ensure_future(old.run())
            await until(lambda: old.loops)
            async with make(handle, name="c1"):
                with pytest.raises(ConfigError, match="another process has registered as 'c1'"):
                    await running

    run(program())


def test_a_consumer_that_was_forgotten_registers_again(way, name):
    async def program():
        journal = Journal()
        async with way() as (it, make), make(journal.handle, name="c1"):
            await it.add("7", 0)
            await until(lambda: journal.count == 1)
            await it.client.command("DEL", settings_for(name).order.consumers)
            await it.add("7", 1)
            await until(lambda: journal.count == 2)

    run(program())


def test_its_health_tells_its_name_its_uptime_and_the_keys_it_holds(way):
    """Row 238."""

    async def program():
        started, go_on = asyncio.Event(), asyncio.Event()

        async def handle(message):
            started.set()
            await go_on.wait()

        async with way() as (it, make), make(handle, name="c1", port=0) as consumer:
            await it.add("7")
            await started.wait()
            caller = Caller()
            answer = await caller.call("GET", consumer.health_url, timeout_s=30)
            await caller.close()
            facts = json.loads(answer.body)
            assert (answer.status, facts["name"], facts["held"]) == (200, "c1", ["7"]) and facts["uptime_s"] >= 0
            go_on.set()
            await until(lambda: is_drained(it))

    run(program())


def test_settings_of_the_article_lead_to_the_coordinator(url, name):
    """Row 306: from the environment."""

    async def program():
        journal = Journal()
        async with scene(url, name) as it:
            around = {
                "ticket_stream": name,
                "consumer": "c9",
                "master_register_api_url": f"{it.master.url}/api/consumers/register",
                "master_acknowledge_api_url": f"{it.master.url}/api/messages/acknowledge",
            }
            async with OrderedConsumer(journal.handle, settings=find_settings({}, environment=around)):
                await it.add("7", 1)
                await until(lambda: journal.count == 1)
                [consumer] = (await it.ok("GET", "/api/consumers"))["consumers"]
                assert consumer["consumer"] == "c9"

    run(program())


PROGRAM = """
import os, time

def handle(message):
    with open(os.environ["SEEN"], "a") as seen:
        seen.write(f"{os.getpid()} {message.key} {message.fields['n']}\\n")
    time.sleep(0.02)
"""


def test_a_killed_process_loses_nothing_and_nothing_overtakes(url, name, tmp_path):
    """Row 242: two processes, one is killed in the middle; every message is handled, each key in order."""
    (tmp_path / "program.py").write_text(PROGRAM)
    seen = tmp_path / "seen"
    seen.touch()

    def start(master):
        command = [sys.executable, "-m", "headrace", "ordered", "consumer", "program:handle", "--master", master]
        command += ["--stream", name, "--port", "0", "--capacity", "3"]
        environment = {**os.environ, "SEEN": str(seen), "PYTHONPATH": os.pathsep.join(sys.path)}
        return subprocess.Popen(command, cwd=tmp_path, env=environment, stderr=subprocess.PIPE)

    async def program():
        async with scene(url, name, masters=2, lease_ms=2000) as it:
            processes = [start(master.url) for master in it.masters]
            try:
                for number in range(60):
                    await it.add(str(number % 6), number)
                await until(lambda: len(seen.read_text().splitlines()) >= 15)
                killed = processes.pop(0)
                killed.kill()
                killed.communicate()
                await until(lambda: is_drained(it))
            finally:
                for process in processes:
                    process.send_signal(signal.SIGTERM)
                codes = [(process.communicate(timeout=60), process.returncode) for process in processes]
            assert codes[-1][1] == 0, codes

    run(program())
    by_key = {}
    for line in seen.read_text().splitlines():
        _, key, number = line.split()
        by_key.setdefault(key, []).append(int(number))
    for key, numbers in by_key.items():
        assert numbers == sorted(numbers)  # One that was not acknowledged may come again, and nothing before it.
        assert sorted(set(numbers)) == list(range(int(key), 60, 6))


def test_keys_that_were_given_up_while_the_coordinator_was_away_come_again(url, name):
    """Another coordinator holds them meanwhile, as the consumer's health answers: nobody else would get them."""
    began, ended = [], []

    async def handle(message):
        began.append(message.fence)
        try:
            await asyncio.sleep(3600 if len(began) == 1 else 0)
        finally:
            ended.append(message.fence)

    async def test():
        async with scene(url, name, masters=2, lease_ms=600) as it:
            first, second = it.masters
            await it.add("7", 1)
            consumer = OrderedConsumer(handle, master=first.url, stream=name, port=0, capacity=1, retries=QUICK)
            async with consumer:
                await until(lambda: began, "the message")
                await first.finish()
                await until(lambda: ended, "the consumer to give it up")
                port = int(first.url.rsplit(":", 1)[1])
                it.masters[0] = Master(url, replace(first.settings, port=port))
                await it.masters[0].start()
                await until(lambda: consumer.runner.done == 1, "the message to come again")
            assert began[1] > began[0] and await is_drained(it)
            assert second.url != first.url

    run(test())
