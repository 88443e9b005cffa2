"""The keys beside a stream that keep one group's messages in order per key. client/lane_keys.py has the same names.

    hr:{orders}:billing:lane:KEY     list: IDs of the undone messages of one key, in the order of the stream
    hr:{orders}:billing:tickets      hash: every key with undone messages, and its state (lane_ticket.py)
    hr:{orders}:billing:ready        list: keys with work and without a holder, first come first served
    hr:{orders}:billing:until        sorted set: keys by the end of their lease or their pause, in ms
    hr:{orders}:billing:consumers    hash: who takes keys
    hr:{orders}:billing:order        hash: the settings and the last fence

They are ordinary keys: whoever scans, dumps or journals the keyspace sees them. `tickets` and `consumers` may have
other names (MAPS of LANE.CONFIG).
"""

from typing import Final

from headrace.commands.hr_keys import GroupKeys, beside

LANES: Final = b"lanes"  # The consumer that has the entries of all lanes nobody holds.


class LaneKeys:
    __slots__ = ("lane", "ready", "until", "order", "dead", "tickets", "consumers")

    def __init__(self, stream: bytes, group: bytes) -> None:
        base = beside(stream, group + b":")
        self.lane = base + b"lane:"  # What all lanes begin with.
        self.ready = base + b"ready"
        self.until = base + b"until"
        self.order = base + b"order"
        self.dead = GroupKeys(stream, group).dead
        self.tickets = base + b"tickets"
        self.consumers = base + b"consumers"

    def all(self) -> set[bytes]:
        """All but the lanes."""
        return {self.ready, self.until, self.order, self.dead, self.tickets, self.consumers}
