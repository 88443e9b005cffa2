"""Trimming, shared by XADD and XTRIM: the options, the work, and the record of it.

MAXLEN and MINID say how much goes. `~` removes whole nodes only. What happens to pending references is the policy:
KEEPREF leaves them, DELREF removes them, ACKED keeps every entry that some group still needs. Quirk of Redis, kept:
with DELREF and ACKED, `~` only brings its limit; nodes are cut.
"""

from typing import Final

from headrace.commands.call import Call
from headrace.commands.notifications import STREAM
from headrace.commands.numbers import parse_integer
from headrace.engine.ids import id_of, name_of, parse_strict_id
from headrace.engine.stream import Stream
from headrace.errors import CommandError
from headrace.journal.record import CUT, FORGET, TRIM, encode_record

KEEP_REFERENCES: Final = 0
DELETE_REFERENCES: Final = 1
ONLY_ACKED: Final = 2
POLICIES: Final = {b"KEEPREF": KEEP_REFERENCES, b"DELREF": DELETE_REFERENCES, b"ACKED": ONLY_ACKED}

NODES_PER_CALL: Final = 100  # Approximate trimming without LIMIT stops after so many full nodes, as Redis does.
MOST_PER_CALL: Final = 1_000_000


class Trim:
    """The trim options of one command."""

    __slots__ = ("max_length", "min_id", "is_given", "is_approximate", "limit", "has_limit", "policy", "has_policy")

    def __init__(self) -> None:
        self.max_length = -1
        self.min_id = 0
        self.is_given = False
        self.is_approximate = False
        self.limit = 0
        self.has_limit = False
        self.policy = KEEP_REFERENCES
        self.has_policy = False

    def take(self, argv: list[bytes], index: int, option: bytes) -> int:
        """Read the option at index if it is one of ours; the index behind it, or -1."""
        more = len(argv) - 1 - index
        if option in (b"MAXLEN", b"MINID") and more:
            if self.is_given:
                raise CommandError("ERR syntax error, MAXLEN and MINID options at the same time are not compatible")
            if more >= 2 and argv[index + 1] in (b"~", b"="):
                self.is_approximate = argv[index + 1] == b"~"
                index += 1
            self.is_given = True
            if option == b"MAXLEN":
                self.max_length = parse_integer(argv[index + 1])
                if self.max_length < 0:
                    raise CommandError("ERR The MAXLEN argument must be >= 0.")
            else:
                self.min_id = parse_strict_id(argv[index + 1])
            return index + 2
        if option == b"LIMIT" and more:
            self.limit = parse_integer(argv[index + 1])
            if self.limit < 0:
                raise CommandError("ERR The LIMIT argument must be >= 0.")
            self.has_limit = True
            return index + 2
        if option in POLICIES and not self.has_policy:
            self.policy = POLICIES[option]
            self.has_policy = True
            return index + 1
        return -1

    def finish(self, ctx: Call, *, must_trim: bool) -> None:
        """Check the options together, once all are read."""
        if self.limit and not self.is_given:
            raise CommandError("ERR syntax error, LIMIT cannot be used without specifying a trimming strategy")
        if must_trim and not self.is_given:
            raise CommandError("ERR syntax error, XTRIM must be called with a trimming strategy")
        if self.has_limit and not self.is_approximate:
            raise CommandError("ERR syntax error, LIMIT cannot be used without the special ~ option")
        if self.is_approximate and not self.has_limit:
            entries = NODES_PER_CALL * ctx.state.settings.limits.max_entries
            self.limit = min(entries, MOST_PER_CALL) if entries > 0 else NODES_PER_CALL * 100


def trim(ctx: Call, key: bytes, stream: Stream, options: Trim) -> tuple[int, bytes]:
    """How many entries went, and the record of it (empty when nobody keeps a journal)."""
    removed, record = trim_by_id(ctx, key, stream, options)
    if removed:
        ctx.notify(STREAM, b"xtrim", key)
    return removed, record


def trim_by_id(ctx: Call, key: bytes, stream: Stream, options: Trim) -> tuple[int, bytes]:
    if options.policy != KEEP_REFERENCES:
        return trim_with_policy(ctx, key, stream, options)
    if options.is_approximate:
        below = stream.first_kept_by_nodes(options.max_length, options.min_id, options.limit)
    elif options.max_length >= 0:
        below = stream.first_kept(options.max_length)
    else:
        below = options.min_id
    removed = stream.trim_below(below)
    if removed == 0 or not ctx.journaling:
        return removed, b""
    return removed, encode_record(TRIM, ctx.db.number, key, name_of(below))


def trim_with_policy(ctx: Call, key: bytes, stream: Stream, options: Trim) -> tuple[int, bytes]:
    """DELREF and ACKED look at every entry."""
    cut = choose(stream, options)
    if not cut:
        return 0, b""
    stream.cut(cut, options.min_id)
    names = [name_of(entry_id) for entry_id in cut]
    record = encode_record(CUT, ctx.db.number, key, name_of(options.min_id), *names) if ctx.journaling else b""
    if options.policy == DELETE_REFERENCES:
        stream.forget(names)
        if ctx.journaling:
            record += encode_record(FORGET, ctx.db.number, key, *names)
    return len(cut), record


def choose(stream: Stream, options: Trim) -> list[int]:
    """The entries to trim, oldest first. ACKED passes over those still wanted and goes on behind them."""
    chosen: list[int] = []
    max_length = options.max_length
    for node in stream.nodes:
        left = stream.length - len(chosen)
        if max_length >= 0 and left <= max_length:
            break
        if options.limit and len(chosen) + node.count > options.limit:
            break
        names, _ = node.listed()
        is_whole = left - node.count >= max_length if max_length >= 0 else node.highest_id() < options.min_id
        for name in names:
            entry_id = id_of(name)
            if max_length >= 0:
                if stream.length - len(chosen) <= max_length:
                    break
            elif entry_id >= options.min_id:
                break
            if options.policy == ONLY_ACKED and stream.is_wanted(entry_id):
                continue
            chosen.append(entry_id)
        if not is_whole:
            break
    return chosen
