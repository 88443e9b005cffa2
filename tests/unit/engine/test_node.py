"""A node answers alike whether it is open, sealed, packed or stored."""

from __future__ import annotations

import pytest

from headrace.engine.ids import name_of
from headrace.engine.node import Node, name_in
from headrace.engine.shelf import NOWHERE, NodeLimits, encode_node, join_place
from headrace.wire.encoder import encode_bulk, encode_entry
from support.shelf import Shelf

FORMS = ["open", "sealed", "packed", "stored", "opened again"]
IDS = [3 << 64, 3 << 64 | 1, 5 << 64, 9 << 64 | 2**64 - 1, 2**128 - 1]


def entry_of(entry_id: int, value: bytes = b"same words compress well " * 4) -> bytes:
    return encode_entry(encode_bulk(name_of(entry_id)), [b"f", value], 0)


def store(node: Node) -> None:
    """Put it on a shelf."""
    node.seal()
    limits = NodeLimits()
    segment, offset, size = Shelf(limits)(encode_node(node.plain()))
    node.place = join_place(segment, offset, size)
    node.release(limits)
    assert node.size_bytes() == 0


def node_of(ids: list[int], form: str) -> Node:
    node = Node(ids[0])
    assert node.names is not None and node.entries is not None
    for entry_id in ids:
        node.names.append(name_of(entry_id))
        node.entries.append(entry_of(entry_id))
    if form == "sealed":
        node.seal()
    elif form == "packed":
        node.pack()
        assert node.is_packed
    elif form == "stored":
        store(node)
    elif form == "opened again":
        store(node)
        node.open()
    return node


@pytest.fixture(params=FORMS)
def node(request: pytest.FixtureRequest) -> Node:
    return node_of(IDS, request.param)


def test_it_lists_its_entries(node: Node) -> None:
    names, entries = node.listed()

    assert names == [name_of(entry_id) for entry_id in IDS]
    assert entries == [entry_of(entry_id) for entry_id in IDS]


def test_it_gives_all_entries_as_one_piece_of_reply(node: Node) -> None:
    assert node.joined() == b"".join(entry_of(entry_id) for entry_id in IDS)


def test_it_gives_a_slice_as_one_piece_of_reply(node: Node) -> None:
    assert node.sliced(1, 3) == entry_of(IDS[1]) + entry_of(IDS[2])
    assert node.sliced(2, 2) == b""


def test_it_gives_one_entry(node: Node) -> None:
    assert [node.entry_at(index) for index in range(node.count)] == [entry_of(entry_id) for entry_id in IDS]


def test_it_knows_its_first_and_last_id(node: Node) -> None:
    assert (node.first_id(), node.last_id()) == (IDS[0], IDS[-1])


@pytest.mark.parametrize(
    ("wanted", "index"),
    [(0, 0), (IDS[0], 0), (IDS[0] + 1, 1), (IDS[1] + 1, 2), (IDS[2], 2), (IDS[2] + 1, 3), (IDS[4], 4), (IDS[4] + 1, 5)],
)
def test_it_finds_where_an_id_is_or_would_be(node: Node, wanted: int, index: int) -> None:
    assert node.find(wanted) == index


def test_deleting_takes_entries_out_of_the_middle(node: Node) -> None:
    node.delete(1, 3)

    assert node.listed()[0] == [name_of(IDS[0]), name_of(IDS[3]), name_of(IDS[4])]
    assert node.count == 3
    assert node.sliced(0, 3) == entry_of(IDS[0]) + entry_of(IDS[3]) + entry_of(IDS[4])


def test_deleting_tells_readers_that_indexes_have_moved(node: Node) -> None:
    before = node.edits
    node.delete(0, 1)

    assert node.edits > before


def test_a_reader_keeps_the_lists_it_has_while_entries_are_deleted() -> None:
    node = node_of(IDS, "open")
    names, _ = node.listed()
    node.delete(0, 2)

    assert len(names) == len(IDS)


def test_it_remembers_the_highest_id_it_ever_held(node: Node) -> None:
    node.delete(3, 5)

    assert node.last_id() == IDS[2]
    assert node.highest_id() == IDS[4]


def test_a_node_keeps_its_place_until_it_is_changed() -> None:
    node = node_of(IDS, "stored")
    place = node.place
    node.pack()
    assert (node.place, node.size_bytes()) == (place, 0)

    node.delete(0, 1)

    assert node.place == NOWHERE
    assert node.shelf is None


def test_a_node_without_a_place_is_not_released() -> None:
    node = node_of(IDS, "packed")
    node.release(NodeLimits())

    assert node.listed()[0] == [name_of(entry_id) for entry_id in IDS]


def test_sealing_and_packing_again_changes_nothing() -> None:
    node = node_of(IDS, "packed")
    blob = node.blob
    node.seal()
    node.pack()

    assert node.blob == blob


def test_what_does_not_compress_stays_as_it_is() -> None:
    node = Node(1 << 64)
    assert node.names is not None and node.entries is not None
    node.names.append(b"1-0")
    node.entries.append(entry_of(1 << 64, b"x"))
    node.pack()

    assert not node.is_packed
    assert node.joined() == entry_of(1 << 64, b"x")


def test_a_packed_node_takes_less(node: Node) -> None:
    plain = sum(len(entry_of(entry_id)) for entry_id in IDS)
    node.pack()

    assert node.size_bytes() < plain


@pytest.mark.parametrize("entry_id", [1, 1 << 64, 2**128 - 1])
def test_the_name_can_be_read_off_a_stored_entry(entry_id: int) -> None:
    assert name_in(entry_of(entry_id)) == name_of(entry_id)
