"""Entries that lie on disk and cannot be read any more end the broker, before anything else is promised."""

from pathlib import Path

import pytest
import redis

from support.durable_broker import DurableBroker


@pytest.mark.parametrize("command", ["XRANGE orders 1-0 1-0", "XDEL orders 1-0 2-0"])
def test_a_broker_that_cannot_read_its_segment_says_so_and_ends(tmp_path: Path, command: str) -> None:
    with DurableBroker(tmp_path) as broker:
        broker.start()
        with broker.client() as client:
            pipeline = client.pipeline(transaction=False)
            for number in range(1, 3001):
                pipeline.xadd("orders", {"number": number}, id=f"{number}-0")
            pipeline.execute()
            client.save()
            segment = tmp_path / "segment-00000001"
            data = bytearray(segment.read_bytes())
            data[len(data) // 100] ^= 0x55
            segment.write_bytes(data)
            with pytest.raises(redis.ConnectionError):
                client.execute_command(*command.split())
        code, said = broker.end()

        assert code == 1
        assert "segment-00000001 is damaged at byte" in said
        with pytest.raises(AssertionError, match="segment-00000001 is damaged at byte"):
            broker.start()
