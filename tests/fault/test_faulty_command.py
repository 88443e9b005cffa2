"""A command with a fault of its own: what is in memory may then differ from the journal, and nobody may rely on it."""

from __future__ import annotations

import os
import threading
from collections.abc import Iterator
from pathlib import Path

import pytest
import redis

from headrace import Client, ConnectionLost
from support.durable_broker import DurableBroker
from support.other_process import PROGRAM, Other
from support.servers import wait_until

TESTS = Path(__file__).resolve().parents[1]
ENVIRONMENT = {**os.environ, "PYTHONPATH": os.pathsep.join([str(TESTS), os.environ.get("PYTHONPATH", "")])}


@pytest.fixture
def broker(tmp_path: Path) -> Iterator[DurableBroker]:
    with DurableBroker(tmp_path / "data", environment=ENVIRONMENT, module="support.faulty_commands") as broker:
        broker.start()
        yield broker


@pytest.mark.parametrize("is_transaction", [False, True])
def test_a_write_that_fails_half_way_ends_the_broker_before_anybody_sees_what_it_did(
    broker: DurableBroker, is_transaction: bool
) -> None:
    with broker.client() as writer, broker.client() as reader:
        writer.set("key", "sound")
        reader.get("key")
        with writer.pipeline(transaction=is_transaction) as block, pytest.raises(redis.ConnectionError):
            block.set("before", "1").append("key", "fault").set("after", "1").execute()
        with pytest.raises(redis.ConnectionError):
            reader.strlen("key")
    code, said = broker.end()

    assert code == 1
    assert "a fault made for a test" in said and "start the broker again" in said
    broker.start()
    with broker.client() as client:
        assert client.mget("key", "before", "after") == [b"sound", None, None]


def test_a_read_that_fails_is_an_error_and_all_goes_on(broker: DurableBroker) -> None:
    with broker.client() as client, broker.client() as waiting:
        client.set("key", "fault")
        with pytest.raises(redis.ResponseError, match=r"internal error.*KeyError"):
            client.get("key")
        replies = client.pipeline().set("other", "1").get("key").get("other").execute(raise_on_error=False)
        assert (replies[0], str(replies[1])[:14], replies[2]) == (True, "internal error", b"1")

        errors: list[str] = []

        def wait() -> None:
            with pytest.raises(redis.ResponseError) as caught:
                waiting.xread({"orders": "$"}, block=0)
            errors.append(str(caught.value))

        thread = threading.Thread(target=wait)
        thread.start()
        wait_until(lambda: client.info("clients")["blocked_clients"] == 1, "the reader")
        assert client.xadd("orders", {"item": "fault"})
        thread.join(60)
        assert errors and "internal error" in errors[0]
        assert waiting.strlen("key") == 5
    code, said = broker.stop()

    assert code == 0
    assert "Traceback" in said and said.count("a fault made for a test") >= 3


def test_without_a_journal_only_the_client_that_met_the_fault_is_cut_off(tmp_path: Path) -> None:
    with DurableBroker(tmp_path, "--memory", environment=ENVIRONMENT, module="support.faulty_commands") as broker:
        broker.start()
        with broker.client() as writer, broker.client() as other:
            other.set("other", "1")
            with pytest.raises(redis.ConnectionError):
                writer.append("key", "fault")
            assert other.get("other") == b"1"


def test_the_host_of_a_folder_opens_it_again_after_a_write_of_another_process_has_failed(tmp_path: Path) -> None:
    url = f"embedded:{tmp_path / 'data'}"
    program = "import support.faulty_commands" + PROGRAM
    with Other(url, environment=ENVIRONMENT, program=program) as host, Client(url) as attached:
        assert attached.command("SET", "key", "sound")
        with pytest.raises(ConnectionLost):
            attached.command("APPEND", "key", "fault")

        assert host("client.command('GET', 'key')") == "b'sound'"
        assert attached.command("GET", "key") == b"sound"
