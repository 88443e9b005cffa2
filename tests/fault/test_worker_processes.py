"""headrace worker as processes: how they start, share the work, are told to stop, and end. Rows 252, 260, 261, 267.

What becomes of their messages when they are killed is in test_worker_kills.py.
"""

from __future__ import annotations

import os
import signal
from collections.abc import Iterator

import pytest

from headrace import Client
from headrace.testing import running_broker
from support.command_line import headrace
from support.servers import wait_until
from support.worker_processes import WAIT_S, is_done, log_of, numbers, worker, write_shop


@pytest.fixture
def broker_url() -> Iterator[str]:
    with running_broker() as broker:
        yield broker.url


def test_a_process_told_to_stop_leaves_nothing_stuck(tmp_path, broker_url):
    """Rows 261 and 267: the lease is ten minutes; whatever the first had, the second has at once."""
    folder = write_shop(tmp_path, act="await asyncio.sleep(3600)", lease="10m")
    with Client(broker_url) as client:
        client.stream("orders").publish_many(range(50))
        with worker(folder, broker_url, "--shutdown-timeout", "0s") as first:
            wait_until(lambda: len(numbers(client, "runs")) == 20, "the first 20 to run", timeout_s=WAIT_S)
            first.terminate()
            assert first.wait(60) == 0
        assert "released=30" in log_of(folder)  # Those that ran, and those read in advance.
        write_shop(folder, lease="10m")
        with worker(folder, broker_url):
            wait_until(lambda: is_done(client), "the second to have it all", timeout_s=WAIT_S)
        assert sorted(numbers(client, "done")) == list(range(50))


def test_several_processes_share_the_work_and_one_that_dies_is_replaced(tmp_path, broker_url):
    """Row 267. What the killed one held comes back when its lease has run out."""
    folder = write_shop(tmp_path, act="await asyncio.sleep(0.05)")
    with Client(broker_url) as client, worker(folder, broker_url, "--processes", "2") as supervisor:
        group = client.stream("orders").group("billing")
        wait_until(lambda: log_of(folder).count("worker_started") == 2, "two processes", timeout_s=WAIT_S)
        client.stream("orders").publish_many(range(100))
        wait_until(lambda: len(group.consumers()) == 2, "both to read", timeout_s=WAIT_S)
        pids = [int(line.split("pid=")[1]) for line in log_of(folder).splitlines() if "process_started" in line]
        os.kill(pids[0], signal.SIGKILL)
        wait_until(lambda: is_done(client), "all to be handled", timeout_s=WAIT_S)
        wait_until(lambda: log_of(folder).count("worker_started") == 3, "a new process", timeout_s=WAIT_S)
        assert set(numbers(client, "done")) == set(range(100))
        supervisor.terminate()
        assert supervisor.wait(60) == 0


def test_processes_told_to_stop_twice_wait_for_no_handler_and_give_everything_back(tmp_path, broker_url):
    """Row 261: the lease and the time to finish are ten minutes; the next worker has it all at once."""
    folder = write_shop(tmp_path, act="await asyncio.sleep(3600)", lease="10m", concurrency=5)
    with Client(broker_url) as client:
        client.stream("orders").publish_many(range(10))
        with worker(folder, broker_url, "--processes", "2", "--shutdown-timeout", "10m") as first:
            wait_until(lambda: len(numbers(client, "runs")) >= 5, "some to run", timeout_s=WAIT_S)
            group = client.stream("orders").group("billing")
            wait_until(lambda: len(group.pending(limit=20)) == 10, "all to be read", timeout_s=WAIT_S)
            first.terminate()
            first.send_signal(signal.SIGINT)
            assert first.wait(60) == 0
        write_shop(folder, lease="10m")
        with worker(folder, broker_url):
            wait_until(lambda: is_done(client), "the next to have it all", timeout_s=WAIT_S)
        assert sorted(numbers(client, "done")) == list(range(10))


def test_processes_end_when_their_supervisor_was_killed(tmp_path, broker_url):
    folder = write_shop(tmp_path)
    with worker(folder, broker_url, "--processes", "2") as supervisor:
        wait_until(lambda: log_of(folder).count("worker_started") == 2, "two processes", timeout_s=WAIT_S)
        supervisor.kill()
        supervisor.wait(60)
        wait_until(lambda: log_of(folder).count("worker_ended") == 2, "both to end", timeout_s=WAIT_S)


def test_reload_starts_anew_when_a_file_changes(tmp_path, broker_url):
    folder = write_shop(tmp_path, act="await app.client.command('RPUSH', 'version', 'old')")
    with Client(broker_url) as client, worker(folder, broker_url, "--reload"):
        client.stream("orders").publish(1)
        wait_until(lambda: client.command("LRANGE", "version", 0, -1) == [b"old"], "the old version", timeout_s=WAIT_S)
        write_shop(folder, act="await app.client.command('RPUSH', 'version', 'new')")
        wait_until(lambda: log_of(folder).count("worker_started") == 2, "the new process", timeout_s=WAIT_S)
        client.stream("orders").publish(2)
        wait_until(lambda: is_done(client), "the second message", timeout_s=WAIT_S)
        assert client.command("LRANGE", "version", 0, -1) == [b"old", b"new"]


def test_two_processes_on_a_folder_that_the_supervisor_hosts(tmp_path):
    """Rows 252 and 267: other programs publish to the same folder. The first hosts it, and leaves."""
    folder = write_shop(tmp_path)
    url = f"embedded:{folder}/data"
    with Client(url) as client:
        client.stream("orders").publish_many(range(10))
        with worker(folder, url, "--processes", "2"):
            wait_until(lambda: is_done(client), "the first ten", timeout_s=WAIT_S)
            client.close()
            with Client(url) as another:
                another.stream("orders").publish_many(range(10, 20))
                wait_until(lambda: is_done(another), "the others", timeout_s=WAIT_S)
                assert sorted(numbers(another, "done")) == list(range(20))


def test_a_worker_that_was_stopped_past_its_lease_finishes_late_and_is_refused(tmp_path, broker_url):
    """Row 260: SIGSTOP in the middle of a run; another worker has taken the message over when it goes on."""
    folder = write_shop(tmp_path, act="await asyncio.sleep(1)", lease="500ms")
    with Client(broker_url) as client, worker(folder, broker_url) as first:
        client.stream("orders").publish(1)
        wait_until(lambda: len(numbers(client, "runs")) == 1, "the first run", timeout_s=WAIT_S)
        first.send_signal(signal.SIGSTOP)
        try:
            with worker(folder, broker_url):
                wait_until(lambda: is_done(client), "the second to be done", timeout_s=WAIT_S)
                first.send_signal(signal.SIGCONT)
                wait_until(lambda: "late_finish" in log_of(folder), "the late finisher", timeout_s=WAIT_S)
        finally:
            first.send_signal(signal.SIGCONT)
    assert log_of(folder).count("late=1") == 1 and log_of(folder).count("done=1 ") == 1


@pytest.mark.parametrize(
    ("place", "words"),
    [
        ("shop", "names no app"),
        ("nowhere:app", "no module 'nowhere'"),
        ("shop:empty", "has no handlers"),
        ("shop:memory", "in memory"),
        ("shop:wrong", "no URLs that begin with http:"),
    ],
)
def test_a_place_that_cannot_be_is_wrong_usage(tmp_path, monkeypatch, place, words):
    monkeypatch.chdir(tmp_path)
    write_shop(tmp_path)
    with (tmp_path / "shop.py").open("a") as file:
        file.write("\nempty = App('redis://localhost')\nmemory = App('embedded:')\nmemory.handler('orders')(act)\n")
        file.write("\nwrong = App('http://localhost')\nwrong.handler('orders')(act)\n")

    ended = headrace("worker", place)

    assert ended.code == 2 and words in ended.err


def test_publish_finds_the_broker_of_an_app(tmp_path, monkeypatch, broker_url):
    """The URL is written once, in the app. A delayed message has no ID yet."""
    monkeypatch.chdir(tmp_path)
    (tmp_path / "shop.py").write_text(f"from headrace import App\napp = App({broker_url!r})\n")

    published = headrace("publish", "--app", "shop:app", "orders", "id:=17")
    delayed = headrace("publish", "--app", "shop:app", "orders", "id:=18", "--delay", "1h")

    with Client(broker_url) as client:
        assert [entry.id for entry in client.stream("orders").range()] == [published.row["id"]]
        assert delayed.row == {"id": None} and client.command("ZCARD", "hr:{orders}:delayed") == 1
    wrong = headrace("publish", "--app", "nowhere:app", "orders", "id:=17")
    assert wrong.code == 2 and "no module 'nowhere'" in wrong.err
