"""Where streams begin and end, asked of the broker, and what of them a batch shall read.

Runs on the driver, in the one process that plans a query, and keeps one client open there. The rules are those of
`offsets.py` and `ranges.py`; here are the questions they need answered.
"""

import logging
import os
from collections.abc import Iterable, Mapping
from typing import Final

from headrace.client.client import Client
from headrace.client.explain import no_stream
from headrace.client.flow import Flow
from headrace.client.requests import range_, stream_info
from headrace.client.results import StreamInfo
from headrace.errors import DataLoss, HeadraceError, NotFound
from headrace.pipeline.entry_ids import id_of, ms_of, text_of
from headrace.pipeline.offsets import WITNESSES, Loss, Mark, StreamFacts, find_loss, find_remake, make_mark
from headrace.pipeline.options import EARLIEST, LATEST, Bounds, Position, SourceOptions
from headrace.pipeline.ranges import Extent, Slice, Span, cut_spans, estimate_entries, place_end, place_end_by_sequence
from headrace.pipeline.reader import LossCheck, read_slice

EXACT_ENTRIES: Final = 10_000  # Up to here a limit is kept exactly, by reading so many entries while planning.
PROBE_ENTRIES: Final = 1000  # Read to see how densely entries come, where the limit is higher.
OWN_PREFIX: Final = "hr:"
REQUESTS_AT_ONCE: Final = 500
GO_ON: Final = "Set the option failOnDataLoss to false to go on with what is left."

log = logging.getLogger(__name__)


def count_cores() -> int:
    """Of this machine: the driver's. How many a cluster has is not told to those who plan; see minPartitions."""
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


def list_matching(client: Client, pattern: str) -> list[str]:
    """Streams by a pattern. Our own ones, like staged rows and dead letters, only if it begins with `hr:`."""
    is_open = pattern.startswith(OWN_PREFIX)
    return [name for name in client.streams(pattern) if name and (is_open or not name.startswith(OWN_PREFIX))]


class Planner:
    """Plans the batches of one query. Close it."""

    def __init__(self, options: SourceOptions) -> None:
        self.options = options
        self.opened: Client | None = None
        self.told: dict[str, Mark] = {}  # The last loss that was reported, by stream; each is one line.

    @property
    def client(self) -> Client:
        if self.opened is None:
            self.opened = Client(self.options.url)
        return self.opened

    def close(self) -> None:
        client, self.opened = self.opened, None
        if client is not None:
            client.close()

    # Facts

    def list_names(self) -> list[str]:
        """The streams that are to be read: those listed, or those there are now that match."""
        if self.options.pattern is None:
            return list(self.options.streams)
        return list_matching(self.client, self.options.pattern)

    def fetch_facts(self, names: Iterable[str]) -> dict[str, StreamFacts]:
        """By name, without those that do not exist. Raises WrongType for a key that is no stream."""
        wanted = sorted(names)
        found: dict[str, StreamFacts] = {}
        for begin in range(0, len(wanted), REQUESTS_AT_ONCE):
            found.update(self.client.run(ask_facts(wanted[begin : begin + REQUESTS_AT_ONCE])))
        return found

    def get_facts(self, names: Iterable[str]) -> dict[str, StreamFacts]:
        """The same for streams that must exist."""
        wanted = list(names)
        facts = self.fetch_facts(wanted)
        for name in wanted:
            if name not in facts and self.options.pattern is None:
                raise no_stream(name)
        return facts

    def find_next(self, positions: Mapping[str, int], facts: Mapping[str, StreamFacts]) -> dict[str, int]:
        """The lowest entry behind each position, by stream, without those that have none."""
        found: dict[str, int] = {}
        unknown: list[tuple[str, int]] = []
        for name, position in positions.items():
            first = facts[name].first_id
            if first is not None and first > position:
                found[name] = first
            elif first is not None and position < facts[name].last_id:
                unknown.append((name, position))
        for begin in range(0, len(unknown), REQUESTS_AT_ONCE):
            found.update(self.client.run(ask_next(unknown[begin : begin + REQUESTS_AT_ONCE])))
        return found

    # Where to begin and to end

    def start_marks(self) -> dict[str, Mark]:
        """Where a new query begins."""
        facts = self.get_facts(self.list_names())
        positions = self.start_positions(facts)
        following = self.find_next(positions, facts)
        return {name: make_mark(facts[name], positions[name], following.get(name)) for name in facts}

    def start_positions(self, facts: Mapping[str, StreamFacts]) -> dict[str, int]:
        """The ID behind which to begin, by stream."""
        group = self.options.start_group
        if group is not None:
            groups = {name: self.client.stream(name).group(group).info() for name in facts}
            return {name: id_of(info.last_delivered_id) for name, info in groups.items()}
        return {name: begin_behind(fact, self.options.start.of(name)) for name, fact in facts.items()}

    def latest_ids(self) -> dict[str, int]:
        return {name: fact.last_id for name, fact in self.fetch_facts(self.list_names()).items()}

    def next_marks(
        self, start: Mapping[str, Mark], limit: int | None, targets: Mapping[str, int] | None
    ) -> dict[str, Mark]:
        """Where the next batch ends: at most `limit` entries further, and not beyond the targets, if there are any."""
        names = self.list_names()
        # A stream that is no longer listed keeps its mark; one that no longer matches may be gone.
        facts = self.fetch_facts(names if self.options.pattern is None else {*names, *start})
        marks = dict(start)
        ends: dict[str, int] = {}
        for name in sorted({*names, *start}):
            if name not in names and (self.options.pattern is None or name in facts):
                continue
            if name not in start:
                if targets is None or name in targets:
                    self.join(name, marks, facts)
            elif not self.goes_on(name, start[name], facts.get(name)):
                if self.options.archive is None:
                    marks[name] = Mark(0)
                if name not in names:
                    del marks[name]
                continue
            if name in marks:
                end = facts[name].last_id if targets is None else min(facts[name].last_id, targets.get(name, 0))
                if end > marks[name].id:
                    ends[name] = end
        if limit is not None:
            ends = self.limit_ends(marks, ends, facts, limit)
        following = self.find_next(ends, facts)
        return marks | {name: make_mark(facts[name], end, following.get(name)) for name, end in ends.items()}

    def join(self, name: str, marks: dict[str, Mark], facts: Mapping[str, StreamFacts]) -> None:
        """A stream that is new to the query is read from its beginning; in an archive, behind what the table has."""
        if name in facts:
            marks[name] = Mark(self.archived_through(name))
            self.reject_mixture(marks[name], facts[name])
        elif self.options.pattern is None:
            raise no_stream(name)

    def limit_ends(
        self, marks: Mapping[str, Mark], ends: Mapping[str, int], facts: Mapping[str, StreamFacts], limit: int
    ) -> dict[str, int]:
        """Every stream gets an even share; what one does not need goes to the others."""
        sizes = {name: estimate_entries(extent_of(facts[name]), marks[name].id + 1, end) for name, end in ends.items()}
        if limit >= len(ends):
            order = sorted(ends, key=lambda name: sizes[name])  # The small ones first: they leave the most.
        else:
            order = sorted(ends, key=lambda name: marks[name].id)  # Not all get one: those that are behind the most.
        limited: dict[str, int] = {}
        left = limit
        for place, name in enumerate(order):
            if left == 0:
                break
            share = max(1, left // (len(order) - place))
            if limit > EXACT_ENTRIES and sizes[name] <= share:
                limited[name], used = ends[name], sizes[name]
            else:
                wanted = share if limit <= EXACT_ENTRIES else min(share, PROBE_ENTRIES)
                limited[name], used = self.limit_end(facts[name], marks[name].id, ends[name], share, wanted)
            left -= min(left, used)
        return limited

    def limit_end(self, facts: StreamFacts, after: int, end: int, share: int, wanted: int) -> tuple[int, int]:
        """The ID at which to end, and about how many entries lie up to there; up to `wanted` they are counted."""
        first, last, seen = self.probe(Slice(facts.name, text_of(after), text_of(end)), wanted)
        if seen <= wanted:  # There are no more.
            return end, seen
        if share == wanted:
            return last, share
        if ms_of(first) == ms_of(last) != ms_of(end):
            by_sequence = place_end_by_sequence(first, last, wanted, share)
            following = self.client.run(ask_next([(facts.name, by_sequence)])).get(facts.name)
            if following is not None and ms_of(following) == ms_of(first):
                return by_sequence, share
        extent = Extent(first, end, estimate_entries(extent_of(facts), first, end))
        return place_end(extent, first, last, wanted, share), share

    def probe(self, piece: Slice, wanted: int) -> tuple[int, int, int]:
        """The first entry of a slice, the one number `wanted`, and how many there are, or were counted."""
        first = last = seen = 0
        for page in read_slice(self.options.url, piece, self.options.page_entries, LossCheck(fails=False)):
            if not seen:
                first = id_of(page.ids[0].as_py().decode())
            if seen < wanted <= seen + page.count:
                last = id_of(page.ids[wanted - seen - 1].as_py().decode())
            seen += page.count
            if seen > wanted:
                break
        return first, last, seen

    def report(self, marks: Mapping[str, Mark]) -> dict[str, object]:
        """The last ID of each stream, and under the empty name about how many entries lie behind the mark."""
        facts = self.fetch_facts(self.list_names())
        lags = {name: {"lag": estimate_lag(marks.get(name, Mark(0)), facts[name])} for name in sorted(facts)}
        return {WITNESSES: lags, **{name: text_of(facts[name].last_id) for name in sorted(facts)}}

    # What to read

    def batch_slices(self, start: Mapping[str, Mark], end: Mapping[str, Mark]) -> list[Slice]:
        """The slices of one batch of a streaming query."""
        moved = [name for name in end if end[name].id > (start[name].id if name in start else 0)]
        facts = self.fetch_facts(moved)
        bounds: dict[str, tuple[int, int]] = {}
        for name in moved:
            mark, fact = start.get(name) or Mark(self.archived_through(name)), facts.get(name)
            if name in start and not self.goes_on(name, mark, fact):
                continue
            if not self.is_anew(find_remake(name, Mark(end[name].id), fact), end[name]):
                bounds[name] = (mark.id, end[name].id)
            elif fact is not None:
                self.reject_mixture(end[name], fact)
        return self.cut(bounds, facts)

    def cut(self, bounds: Mapping[str, tuple[int, int]], facts: Mapping[str, StreamFacts]) -> list[Slice]:
        """Slices of what lies behind the first and up to the second ID, by stream."""
        following = self.find_next({name: after for name, (after, _) in bounds.items()}, facts)
        spans = [
            Span(name, after, through, extent_of(facts[name]), following.get(name), facts[name].deleted_id)
            for name, (after, through) in bounds.items()
        ]
        return cut_spans(spans, count_cores(), self.options.min_partitions)

    # Lost entries

    def is_anew(self, loss: Loss | None, mark: Mark) -> bool:
        """Whether the stream has to be read from its beginning. Lost entries are a DataLoss, or are reported, once."""
        if loss is None:
            return False
        if self.options.fails_on_data_loss:
            raise DataLoss(f"{loss.sentence}. {GO_ON}")
        if self.told.get(loss.stream) != mark:
            self.told[loss.stream] = mark
            log.warning("%s; reading goes on with what is left.", loss.sentence)
        return loss.is_anew

    def goes_on(self, name: str, mark: Mark, facts: StreamFacts | None) -> bool:
        """Whether reading goes on behind the mark. A stream that was made anew is read from its beginning instead.

        In an archive it is not: the table has one stream of a name, and its IDs only grow.
        """
        if not self.is_anew(find_loss(name, mark, facts), mark):
            return True
        if self.options.archive is None or facts is None:
            return False
        self.reject_mixture(mark, facts)
        return True

    # Archives

    def archived_through(self, name: str) -> int:
        """How far the table of the archive has a stream that joins: more than nothing if it was there before."""
        if self.options.archive is None:
            return 0
        from headrace.pipeline.archive_files import find_through  # Brings the table formats.

        return find_through(self.options.archive, name)

    def reject_mixture(self, mark: Mark, facts: StreamFacts) -> None:
        """Raises for entries that would be taken for those the table has up to the mark."""
        if self.options.archive is not None and facts.first_id is not None and facts.first_id <= mark.id:
            raise DataLoss(
                f"stream {facts.name!r} was deleted and made anew: it begins with {text_of(facts.first_id)}, and "
                f"another one of this name is archived up to {text_of(mark.id)}. Archive it to another folder."
            )


def begin_behind(facts: StreamFacts, position: Position) -> int:
    """The ID behind which to read, so that reading begins with the position."""
    if position == EARLIEST:
        return facts.last_id if facts.first_id is None else facts.first_id - 1
    if position == LATEST:
        return facts.last_id
    assert isinstance(position, int)
    return max(0, position - 1)


def end_with(facts: StreamFacts, bounds: Bounds) -> int:
    position = bounds.of(facts.name)
    if position == LATEST:
        return facts.last_id
    return 0 if position == EARLIEST else min(int(position), facts.last_id)


def estimate_lag(mark: Mark, facts: StreamFacts) -> int:
    """Counted where everything was read at the mark; estimated where not."""
    if mark.added is not None and facts.added is not None:
        return max(0, facts.added - mark.added)
    begin = mark.id + 1 if mark.next_id is None else mark.next_id
    return estimate_entries(extent_of(facts), begin, facts.last_id)


def extent_of(facts: StreamFacts) -> Extent:
    return Extent(facts.last_id if facts.first_id is None else facts.first_id, facts.last_id, facts.length)


# Questions


def ask_facts(names: list[str]) -> Flow[dict[str, StreamFacts]]:
    replies = yield [stream_info(name) for name in names]
    found: dict[str, StreamFacts] = {}
    for name, reply in zip(names, replies, strict=True):
        if isinstance(reply, StreamInfo):
            found[name] = read_facts(reply)
        elif not isinstance(reply, NotFound):
            raise reply
    return found


def read_facts(info: StreamInfo) -> StreamFacts:
    return StreamFacts(
        name=info.name,
        length=info.length,
        first_id=None if info.first_entry is None else id_of(info.first_entry.id),
        last_id=id_of(info.last_id),
        added=info.entries_added,
        deleted_id=0 if info.max_deleted_id is None else id_of(info.max_deleted_id),
    )


def ask_next(positions: list[tuple[str, int]]) -> Flow[dict[str, int]]:
    replies = yield [range_(name, "(" + text_of(after), "+", 1, newest_first=False) for name, after in positions]
    found: dict[str, int] = {}
    for (name, _), reply in zip(positions, replies, strict=True):
        if isinstance(reply, HeadraceError):
            raise reply
        if reply:
            found[name] = id_of(reply[0].id)
    return found
