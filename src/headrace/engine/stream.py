"""Entries of one stream, and what the stream remembers about them.

Entries live in nodes (`node.py`), oldest first; the last node is the open tail. An entry is stored as the bytes of its
reply, so reading a range joins slices and encodes nothing. Callers make the ID with `next_id`, encode the entry, then
`append` both.

What survives the entries themselves: the highest ID ever given, how many were ever added, the highest deleted ID, the
groups, the idempotence records and the publish ids. A stream without entries goes on existing.
"""

from typing import Final

from headrace.engine.group import Group
from headrace.engine.idempotence import Idempotence
from headrace.engine.ids import MAX_PART, id_of, name_of
from headrace.engine.node import Node, name_in
from headrace.engine.publish_ids import PublishIds
from headrace.engine.shelf import NodeLimits

UNKNOWN: Final = -1  # Entries read, when that cannot be told.
UNPACKED_NODES: Final = 8  # So many sealed nodes behind the tail stay uncompressed: readers are usually there.
MAX_NODE_ENTRIES: Final = 10_000  # When the setting says "no limit".
MAX_NODE_BYTES: Final = 1 << 20
READY_DIGITS: Final = 2048  # Sequences below this have their text ready.
DIGITS: Final[list[bytes]] = [b"%d" % n for n in range(READY_DIGITS)]
LEAPS: Final = 1000  # Gaps between entries passed over in search of what a group needs.
WORTH_LISTING: Final = 4  # So many entries of one node are faster found by going through all of it.
OPEN_NODES: Final = 64  # Nodes opened by deletion are sealed again when there are more.


class Stream:
    __slots__ = (
        "limits", "nodes", "opened", "tail_names", "tail_entries", "room", "room_bytes", "spared_room", "prefix_ms",
        "prefix", "length", "last_ms", "last_seq", "entries_added", "max_deleted", "first_id", "groups", "idempotence",
        "publish_ids",
    )  # fmt: skip

    def __init__(self, limits: NodeLimits) -> None:
        self.limits = limits
        self.nodes: list[Node] = []
        self.opened: list[Node] = []  # Opened by deletion, oldest first.
        self.tail_names: list[bytes] = []
        self.tail_entries: list[bytes] = []
        self.room = 0  # Entries that still fit into the tail; 0 also when there is no tail.
        self.room_bytes = 0
        self.spared_room = 0  # What the next node has instead of a full one's room; 0: nothing special.
        self.prefix_ms = -1
        self.prefix = b""
        self.length = 0
        self.last_ms = 0
        self.last_seq = 0
        self.entries_added = 0
        self.max_deleted = 0
        self.first_id = 0  # 0 when there are no entries.
        self.groups: dict[bytes, Group] = {}
        self.idempotence: Idempotence | None = None
        self.publish_ids: PublishIds | None = None

    @property
    def last_id(self) -> int:
        return self.last_ms << 64 | self.last_seq

    # Adding

    def next_id(self, now_ms: int) -> tuple[int, int]:
        """The ID for an entry added now, as (milliseconds, sequence). (0, 0) when all IDs are used up."""
        if now_ms > self.last_ms:
            return now_ms, 0
        if self.last_seq < MAX_PART:
            return self.last_ms, self.last_seq + 1
        if self.last_ms < MAX_PART:
            return self.last_ms + 1, 0
        return 0, 0

    def name_next(self, ms: int, seq: int) -> bytes:
        """The name of a new entry. Entries of one millisecond share the first half: 30 ns instead of 150."""
        if ms != self.prefix_ms:
            self.prefix_ms = ms
            self.prefix = b"%d-" % ms
        return self.prefix + (DIGITS[seq] if seq < READY_DIGITS else b"%d" % seq)

    def append(self, ms: int, seq: int, name: bytes, entry: bytes) -> None:
        """Add an entry. Its ID must be greater than the last one; the caller has checked."""
        if self.room <= 0 or self.room_bytes <= 0:
            self.start_node(ms << 64 | seq)
        self.tail_names.append(name)
        self.tail_entries.append(entry)
        self.room -= 1
        self.room_bytes -= len(entry)
        self.length += 1
        self.entries_added += 1
        self.last_ms = ms
        self.last_seq = seq

    def start_node(self, first: int) -> None:
        """Begin a new tail; what was the tail is sealed, and one further back packed, or left to its place on disk."""
        if not self.nodes:
            self.first_id = first
        else:
            self.nodes[-1].seal()
            if len(self.nodes) > UNPACKED_NODES:
                old = self.nodes[-UNPACKED_NODES - 1]
                old.release(self.limits)
                old.pack()
        self.nodes.append(Node(first))
        self.hold_tail()
        limits = self.limits
        self.room = self.spared_room or limits.max_entries or MAX_NODE_ENTRIES
        self.spared_room = 0
        self.room_bytes = limits.max_bytes or MAX_NODE_BYTES

    def hold_tail(self) -> None:
        """Keep the lists of the last node at hand for append. To be called whenever they are other ones."""
        node = self.nodes[-1]
        if node.names is not None and node.entries is not None:
            self.tail_names = node.names
            self.tail_entries = node.entries

    def release(self) -> None:
        """Nodes behind the readers that have a place on disk go from memory."""
        for node in self.nodes[: -UNPACKED_NODES - 1]:
            node.release(self.limits)

    # Reading

    def node_index(self, entry_id: int) -> int:
        """Index of the node that holds entry_id if any does; -1 when it lies before all nodes."""
        nodes = self.nodes
        low = 0
        high = len(nodes)
        while low < high:
            middle = (low + high) >> 1
            if nodes[middle].first <= entry_id:
                low = middle + 1
            else:
                high = middle
        return low - 1

    def read_range(self, start: int, end: int, count: int) -> tuple[int, list[bytes]]:
        """Entries from start to end, both included, at most count (0: all): how many, and their bytes in pieces."""
        found = 0
        pieces: list[bytes] = []
        if self.length == 0 or start > end or start > self.last_id:
            return 0, pieces
        position = max(0, self.node_index(start))
        while position < len(self.nodes):
            node = self.nodes[position]
            if node.first > end:
                break
            low = node.find(start) if node.first < start else 0
            following = self.nodes[position + 1].first if position + 1 < len(self.nodes) else self.last_id + 1
            high = node.count if following <= end + 1 else node.find(end + 1)
            if count > 0 and high - low > count - found:
                high = low + count - found
            if high > low:
                pieces.append(node.joined() if high - low == node.count else node.sliced(low, high))
                found += high - low
                if found == count:
                    break
            position += 1
        return found, pieces

    def read_range_backwards(self, start: int, end: int, count: int) -> tuple[int, list[bytes]]:
        """As read_range, newest first."""
        found = 0
        pieces: list[bytes] = []
        if self.length == 0 or start > end:
            return 0, pieces
        position = self.node_index(end)
        while position >= 0:
            node = self.nodes[position]
            _, entries = node.listed()
            low = node.find(start) if node.first < start else 0
            high = node.find(end + 1)
            if count > 0:
                low = max(low, high - (count - found))
            for index in range(high - 1, low - 1, -1):
                pieces.append(entries[index])
            found += max(0, high - low)
            if (count > 0 and found == count) or node.first <= start:
                break
            position -= 1
        return found, pieces

    def find(self, entry_id: int) -> bytes | None:
        """The stored entry, or None."""
        position = self.node_index(entry_id)
        if position < 0:
            return None
        node = self.nodes[position]
        index = node.find(entry_id)
        if index >= node.count:
            return None
        entry = node.entry_at(index)
        return entry if entry.startswith(name_of(entry_id) + b"\r\n", entry.index(b"\n", 4) + 1) else None

    def last_entry_id(self) -> int:
        """The highest ID among the entries that are there; 0 when there are none."""
        return self.nodes[-1].last_id() if self.length else 0

    def entries_at(self, names: list[bytes]) -> list[bytes | None]:
        """The stored entries of these names, None for each that is gone. Cheap when the names are neighbours."""
        found: list[bytes | None] = []
        node: Node | None = None
        listed: dict[bytes, bytes] = {}
        for name in names:
            entry = listed.get(name)
            if entry is None:
                position = self.node_index(id_of(name))
                if position < 0:
                    found.append(None)
                    continue
                candidate = self.nodes[position]
                if candidate is not node:
                    node = candidate
                    node_names, node_entries = node.listed()
                    listed = dict(zip(node_names, node_entries, strict=True))
                    entry = listed.get(name)
            found.append(entry)
        return found

    def entries_by_name(self, names: list[bytes]) -> dict[bytes, bytes]:
        """The stored entries of these names, in any order; without those that are gone."""
        found: dict[bytes, bytes] = {}
        ids = sorted([id_of(name) for name in names])
        start = 0
        while start < len(ids):
            position = self.node_index(ids[start])
            following = self.nodes[position + 1].first if position + 1 < len(self.nodes) else self.last_id + 1
            end = start + 1
            while end < len(ids) and ids[end] < following:
                end += 1
            if end - start < WORTH_LISTING:
                for entry_id in ids[start:end]:
                    entry = self.find(entry_id)
                    if entry is not None:
                        found[name_of(entry_id)] = entry
            elif position >= 0:
                found.update(self.nodes[position].entries_among({name_of(entry_id) for entry_id in ids[start:end]}))
            start = end
        return found

    # Reading for a group

    def read_new(self, group: Group, count: int) -> tuple[list[bytes], list[bytes]]:
        """Entries behind the group's last delivered ID, at most count (0: all), as names and entries.

        The group keeps a cursor (node, index, that node's lists), so that a sequence of reads neither searches nor
        splits: 10 us a read without it, 3 us with it (bench/broker.py, workload of one entry a read).
        """
        last_id = group.last_id
        if self.length == 0 or last_id >= self.last_id:
            return [], []
        node = group.cursor_node
        if node is None or node.edits != group.cursor_edits or group.cursor_id != last_id:
            position = max(0, self.node_index(last_id))
            node = self.nodes[position]
            self.set_cursor(group, node, node.find(last_id + 1))
        names: list[bytes] = []
        entries: list[bytes] = []
        missing = count if count > 0 else self.length
        while True:
            low = group.cursor_index
            high = min(len(group.cursor_names), low + missing)
            if low == 0 and high == len(group.cursor_names) and not names:
                names = group.cursor_names[:]
                entries = group.cursor_entries[:]
            else:
                names += group.cursor_names[low:high]
                entries += group.cursor_entries[low:high]
            missing -= high - low
            group.cursor_index = high
            if missing == 0 or not self.advance_cursor(group):
                break
        return names, entries

    def leave_unread(self, group: Group, count: int) -> None:
        """The last ones that read_new gave are not delivered: the cursor goes back before them."""
        if count <= group.cursor_index:
            group.cursor_index -= count
        else:
            group.cursor_node = None

    def advance_cursor(self, group: Group) -> bool:
        """Move the cursor to the next node that has entries. False when it stands in the last one."""
        node = group.cursor_node
        if node is self.nodes[-1]:
            return False
        assert node is not None
        position = self.node_index(node.first) + 1
        if position >= len(self.nodes):
            return False
        self.set_cursor(group, self.nodes[position], 0)
        return True

    def set_cursor(self, group: Group, node: Node, index: int) -> None:
        group.cursor_node = node
        group.cursor_edits = node.edits
        group.cursor_index = index
        group.cursor_names, group.cursor_entries = node.listed()

    # Deleting

    def delete(self, ids: list[int]) -> list[int]:
        """Delete entries by ID, wherever they are. The IDs that were there."""
        deleted = self.take_out(ids)
        for entry_id in deleted:
            self.max_deleted = max(self.max_deleted, entry_id)
        return deleted

    def cut(self, ids: list[int], min_id: int) -> None:
        """Trim entries by ID, asked to trim below min_id (0: to a length). Trimming leaves max_deleted alone."""
        room = self.room
        highest = self.nodes[-1].highest_id() if self.nodes else 0
        self.take_out(ids)
        if not self.nodes and 0 < min_id <= highest:
            self.spared_room = room  # As in trim_below.

    def take_out(self, ids: list[int]) -> list[int]:
        """Remove entries by ID, wherever they are. The IDs that were there."""
        found: list[int] = []
        start = 0
        while start < len(ids):
            position = self.node_index(ids[start])
            first = self.nodes[position].first if position >= 0 else 0
            following = self.nodes[position + 1].first if position + 1 < len(self.nodes) else self.last_id + 1
            end = start + 1
            while end < len(ids) and first <= ids[end] < following:
                end += 1
            if position >= 0:
                found += self.take_out_of(position, ids[start:end])
            start = end
        if found:
            self.refresh_first_id()
        return found

    def take_out_of(self, position: int, ids: list[int]) -> list[int]:
        """The same in one node, at once: 10 us an entry one by one, 4 us so in hundreds."""
        node = self.nodes[position]
        index = node.find(ids[0])
        if index < node.count and node.id_at(index) == ids[0]:
            end = index + 1
            if len(ids) > 1:
                names, entries = self.listing_of(node)
                if len(ids) < len(names) and node.names is None:
                    self.note_opened(node)
                    node.open_as(names, entries)
                while end - index < len(ids) and end < len(names) and id_of(names[end]) == ids[end - index]:
                    end += 1
            if end - index == len(ids):  # Neighbours.
                self.remove(position, index, end)
                return ids
        elif len(ids) == 1:
            return []
        return self.pick_out(position, ids)

    def listing_of(self, node: Node) -> tuple[list[bytes], list[bytes]]:
        """As node.listed, which a group has often just asked for."""
        for group in self.groups.values():
            if group.cursor_node is node and group.cursor_edits == node.edits:
                return group.cursor_names, group.cursor_entries
        return node.listed()

    def pick_out(self, position: int, ids: list[int]) -> list[int]:
        """Entries here and there in one node."""
        node = self.nodes[position]
        names, _ = self.listing_of(node)
        wanted = {name_of(entry_id): entry_id for entry_id in ids}
        found = [wanted[name] for name in names if name in wanted]
        if len(found) == len(names):
            self.remove(position, 0, len(names))
        elif found:
            self.length -= len(found)
            self.note_opened(node)
            node.delete_names(set(wanted))
            self.hold_tail()
        return found

    def remove(self, position: int, low: int, high: int) -> None:
        """Take entries low to high - 1 out of one node; drop the node when it is empty."""
        node = self.nodes[position]
        self.length -= high - low
        if low == 0 and high == node.count:
            node.edits += 1
            del self.nodes[position]
            if node in self.opened:
                self.opened.remove(node)
            if position == len(self.nodes):
                self.room = 0
            return
        self.note_opened(node)
        node.delete(low, high)
        self.hold_tail()

    def note_opened(self, node: Node) -> None:
        """Entries are about to be deleted from a node, for which it is opened. It is packed again some time."""
        if node.names is None:
            self.opened.append(node)
            if len(self.opened) > OPEN_NODES:
                oldest = self.opened.pop(0)
                if oldest is not self.nodes[-1]:
                    oldest.pack()

    def drop_nodes(self, positions: set[int]) -> None:
        """Whole nodes are lost. What they held counts as deleted."""
        if not positions:
            return
        nodes = self.nodes
        last = max(positions)
        highest = self.last_id if last + 1 == len(nodes) else nodes[last + 1].first - 1
        self.max_deleted = max(self.max_deleted, highest)
        self.length -= sum([nodes[position].count for position in positions])
        if last + 1 == len(nodes):
            self.room = 0
        self.nodes = [node for position, node in enumerate(nodes) if position not in positions]
        self.refresh_first_id()

    def refresh_first_id(self) -> None:
        self.first_id = self.nodes[0].first_id() if self.length else 0

    def trim_below(self, entry_id: int) -> int:
        """Remove every entry with a lower ID. How many there were. Trimming leaves max_deleted alone, as Redis does."""
        before = self.length
        position = 0
        while position < len(self.nodes):
            following = self.nodes[position + 1].first if position + 1 < len(self.nodes) else self.last_id + 1
            if following > entry_id:
                break
            self.nodes[position].edits += 1
            self.length -= self.nodes[position].count
            position += 1
        del self.nodes[:position]
        if self.opened and position:
            first = self.nodes[0].first if self.nodes else self.last_id + 1
            self.opened = [node for node in self.opened if node.first >= first]
        if not self.nodes:
            self.room = 0
        if self.nodes and self.nodes[0].first < entry_id:
            high = self.nodes[0].find(entry_id)
            if high > 0:
                # Quirk of Redis, kept: a node whose end was deleted stays when trimming empties it, and is filled up.
                spared = self.room if len(self.nodes) == 1 and self.nodes[0].highest_id() >= entry_id else 0
                self.remove(0, 0, high)
                self.spared_room = 0 if self.nodes else spared
        self.refresh_first_id()
        return before - self.length

    def count_below(self, entry_id: int) -> int:
        """How many entries have a lower ID: what trim_below would remove."""
        position = self.node_index(entry_id)
        if position < 0:
            return 0
        return sum([node.count for node in self.nodes[:position]]) + self.nodes[position].find(entry_id)

    def first_kept(self, max_length: int) -> int:
        """The ID from which the newest max_length entries begin; the next unused ID when that is 0."""
        if max_length == 0:
            return self.last_id + 1
        surplus = self.length - max_length
        if surplus <= 0:
            return self.first_id
        for node in self.nodes:
            if surplus < node.count:
                return node.id_at(surplus)
            surplus -= node.count
        return self.last_id + 1

    def first_kept_by_nodes(self, max_length: int, min_id: int, limit: int) -> int:
        """Approximate trimming: as first_kept, but whole nodes only, and at most limit entries (0: no limit).

        A node goes when max_length entries stay without it (max_length >= 0), or when all of it is below min_id.
        """
        removed = 0
        for node in self.nodes:
            if max_length >= 0:
                stays = self.length - removed - node.count < max_length
            else:
                stays = node.highest_id() >= min_id
            if stays or (limit and removed + node.count > limit):
                return node.first
            removed += node.count
        return self.last_id + 1

    # What can be said about positions

    def has_deleted_after(self, entry_id: int) -> bool:
        """Whether an entry behind entry_id may have been deleted, so that counting up to it is not certain."""
        if self.length == 0 or self.max_deleted == 0 or self.first_id > self.max_deleted:
            return False
        return entry_id <= self.max_deleted

    def count_up_to(self, entry_id: int) -> int:
        """How many entries were ever added up to and including entry_id, or UNKNOWN."""
        if self.entries_added == 0:
            return 0
        last_id = self.last_id
        if self.length == 0 and entry_id <= last_id:
            return self.entries_added
        if entry_id != 0 and entry_id < self.max_deleted:
            return UNKNOWN
        if entry_id == last_id:
            return self.entries_added
        if entry_id > last_id:
            return UNKNOWN
        if self.max_deleted == 0 or self.max_deleted < self.first_id:
            if entry_id < self.first_id:
                return self.entries_added - self.length
            if entry_id == self.first_id:
                return self.entries_added - self.length + 1
        return UNKNOWN

    def lag_of(self, group: Group) -> int | None:
        """Entries the group has not been given yet, or None. Below 0 when counters were set by hand, as in Redis."""
        if self.length == 0:
            return 0
        if group.last_id < self.first_id and self.max_deleted < self.first_id:
            return self.length
        if group.entries_read != UNKNOWN and not self.has_deleted_after(group.last_id):
            return self.entries_added - group.entries_read
        read = self.count_up_to(group.last_id)
        return None if read == UNKNOWN else self.entries_added - read

    def count_read(self, group: Group, names: list[bytes]) -> None:
        """Move the group's position over entries it was just given, keeping its read counter where that is certain."""
        index = 0
        while index < len(names):
            entry_id = id_of(names[index])
            certain = group.entries_read != UNKNOWN and not self.has_deleted_after(group.last_id)
            if certain and group.last_id >= self.first_id:
                # Nothing between here and the end was deleted, so the rest counts one by one.
                group.entries_read += len(names) - index
                break
            group.entries_read = self.count_up_to(entry_id)
            group.last_id = entry_id
            index += 1
        group.last_id = id_of(names[-1])
        group.cursor_id = group.last_id

    def forget(self, names: list[bytes]) -> bool:
        """Every group drops its references to these entries. Whether there were any."""
        found = False
        for group in self.groups.values():
            if group.ack(names):
                found = True
        return found

    def slowest_group(self) -> tuple[int, bytes]:
        """The group that needs the oldest entries: where they begin, and its name. There must be a group."""
        return min([(self.first_needed(group), name) for name, group in self.groups.items()])

    def first_needed(self, group: Group) -> int:
        """Where what a group needs begins: its lowest pending entry, or the first ID it has not been given.

        Pending IDs whose entries are gone need nothing; after LEAPS gaps between entries the next one counts anyway.
        """
        following = group.last_id + 1
        start = 0
        for _ in range(LEAPS):
            names = group.pending_between(start, following - 1, 1, None)
            if not names:
                return following
            start = id_of(names[0])
            found, pieces = self.read_range(start, following - 1, 1)
            if not found:
                return following
            entry_id = id_of(name_in(pieces[0]))
            if entry_id == start:
                break
            start = entry_id
        return start

    def unneeded(self, names: list[bytes]) -> list[int]:
        """Of these entries those that no group needs: each has been given them and has them not pending. As IDs."""
        ids = [id_of(name) for name in names]
        if len(self.groups) > 1:
            return [entry_id for entry_id in ids if not self.is_wanted(entry_id)]
        for group in self.groups.values():
            last_id = group.last_id
            pending = group.pending
            ids = [one for one, name in zip(ids, names, strict=True) if one <= last_id and name not in pending]
        return ids

    def is_wanted(self, entry_id: int) -> bool:
        """Whether some group has not been given the entry yet, or has it pending. Rules the ACKED policy."""
        name = name_of(entry_id)
        return any(group.last_id < entry_id or name in group.pending for group in self.groups.values())
