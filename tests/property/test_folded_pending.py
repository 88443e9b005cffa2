"""A group that folds its old deliveries tells the same as one that does not."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from headrace.engine.dump import load_group, put_group
from headrace.engine.group import Group
from headrace.engine.ids import MAX_ID, id_of
from headrace.engine.payload import Reader

CONSUMERS = (b"ann", b"bob")
numbers = st.integers(1, 200)
step = st.one_of(
    st.tuples(st.just("deliver"), st.sampled_from(CONSUMERS), st.integers(1, 3)),
    st.tuples(st.just("deliver"), st.sampled_from(CONSUMERS), st.integers(1, 30)),
    st.tuples(st.just("ack"), numbers, st.integers(1, 20)),
    st.tuples(st.just("assign"), st.sampled_from(CONSUMERS), numbers, st.integers(1, 12)),
    st.tuples(st.just("claim"), st.sampled_from(CONSUMERS), numbers, st.integers(0, 12)),
    st.tuples(st.just("release"), numbers),
    st.tuples(st.just("range"), numbers, st.integers(0, 40)),
    st.tuples(st.just("idle"), st.integers(0, 40)),
    st.tuples(st.just("set back"), numbers),
    st.tuples(st.just("delete"), st.sampled_from(CONSUMERS)),
)


def run(group: Group, steps: list[tuple]) -> list[object]:
    """What the group says after each step."""
    said: list[object] = []
    for number, (verb, *words) in enumerate(steps):
        now_ms = number // 3
        if verb == "deliver":
            first = (group.last_id >> 64) + 1
            names = [b"%d-0" % number for number in range(first, first + words[1])]
            group.deliver(group.get_consumer(words[0], now_ms), names, now_ms)
            group.last_id = (first + words[1] - 1) << 64
        elif verb == "ack":
            said.append(group.ack([b"%d-0" % number for number in range(words[0], words[0] + words[1])]))
        elif verb == "assign":
            names = group.pending_between(words[1] << 64, MAX_ID, words[2], None)
            group.assign(group.get_consumer(words[0], now_ms), names, now_ms, 2)
        elif verb == "claim":
            names = group.pending_between(words[1] << 64, MAX_ID, 2, None)
            group.assign(group.get_consumer(words[0], now_ms), names, words[2], 3)  # As if it had been long ago.
        elif verb == "release":
            group.assign(None, group.pending_between(words[0] << 64, MAX_ID, 3, None), 0, 1)
        elif verb == "range":
            owners = [None, *group.consumers.values()]
            said.append([group.pending_between(words[0] << 64, MAX_ID, words[1], owner) for owner in owners])
        elif verb == "idle":
            said.append(list_idle(group, words[0]))
        elif verb == "set back":
            group.set_last_id(min(group.last_id, words[0] << 64))
        else:
            said.append(group.delete_consumer(words[0]))
        said.append((len(group.pending), [one.count_pending() for one in group.consumers.values()]))
        said.append(group.edges() if len(group.pending) else None)
    everything = group.pending_between(0, MAX_ID, 0, None)
    said.append([(name, group.pending[name].time_ms, group.pending[name].count) for name in everything])
    return said


def list_idle(group: Group, latest_ms: int) -> list[tuple[int, int, bytes]]:
    """What is idle, the oldest first. In which order the entries of one moment come is left open."""
    found = []
    for delivery in group.idle_deliveries(latest_ms):
        found += [(delivery.time_ms, id_of(name), name) for name in group.names_from(delivery, 0, 99)[0]]
    assert [time_ms for time_ms, _, _ in found] == sorted(time_ms for time_ms, _, _ in found)
    return sorted(found)


@given(st.lists(step, max_size=60), st.integers(0, 20))
def test_folding_changes_nothing_that_can_be_seen(steps: list[tuple], most: int) -> None:
    plain, folding = Group(0, 0), Group(0, 0)
    folding.pending.most = most

    assert run(folding, steps) == run(plain, steps)
    assert stories(load_group(Reader(dumped(folding), 0, 2**31))) == stories(plain)


def dumped(group: Group) -> bytes:
    parts: list[bytes] = []
    put_group(parts, b"g", group)
    return b"".join(parts[2:])  # Without the name, which is read by others.


def stories(group: Group) -> list[tuple]:
    """Everything that is pending, with its consumer, time and count."""
    found = [(name, group.pending[name]) for name in group.pending_between(0, MAX_ID, 0, None)]
    return [(name, one.consumer and one.consumer.name, one.time_ms, one.count) for name, one in found]
