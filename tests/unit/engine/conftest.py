"""What several tests of the engine begin with."""

from __future__ import annotations

import pytest

from headrace.engine.stream import Stream
from support.memory import ManualClock, MemoryBroker


@pytest.fixture
def stream(broker: MemoryBroker, clock: ManualClock) -> Stream:
    """A stream with everything a stream can have."""
    broker("CONFIG SET stream-node-max-entries 3")
    for number in range(1, 41):
        broker("XADD", "orders", f"{number}-{number % 3}", "item", b"\r\n" * number, "empty", "")
    broker("XADD orders IDMP ann m1 * item tea")
    broker("XADD orders IDMP ann m1 * item tea")
    broker("HR.ADD orders ID once WINDOW 60000 MAX 10 FIELDS 2 item tea")
    broker("XDEL orders 2-2 17-2 40-1")
    broker("XTRIM orders MINID 4")
    broker("XGROUP CREATE orders billing 0")
    broker("XGROUP CREATE orders mail $ ENTRIESREAD 7")
    broker("XREADGROUP GROUP billing ann COUNT 10 STREAMS orders >")
    clock.advance(s=1)
    broker("XREADGROUP GROUP billing bob COUNT 10 STREAMS orders >")
    broker("XGROUP CREATECONSUMER orders billing idle")
    broker("XACK orders billing 5-2 6-0")
    broker("XCLAIM orders billing bob 0 7-1 8-2 RETRYCOUNT 9")
    broker("XNACK orders billing SILENT IDS 2 9-0 10-1")
    found = broker.state.databases[0].values[b"orders"]
    assert isinstance(found, Stream)
    return found
