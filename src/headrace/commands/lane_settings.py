"""LANE.CONFIG: by what messages are kept in order, and what happens to those that fail. All steps read it first.

The settings are fields of the hash `order`, as text. The names of KEYFIELDS stand there as `length:bytes`, one behind
the other.
"""

from typing import Final

from headrace.commands.call import Call
from headrace.commands.hashes import find_hash
from headrace.commands.hr_keys import GroupKeys
from headrace.commands.lane_keys import LANES, LaneKeys
from headrace.commands.lane_ticket import read_number
from headrace.commands.numbers import parse_within
from headrace.commands.refusals import SYNTAX
from headrace.errors import CommandError

LONGEST_LEASE_MS: Final = 2**52
MOST_FIELDS: Final = 64
MOST_ATTEMPTS: Final = 2**31
BAD_FIELDS: Final = f"ERR KEYFIELDS must be followed by a number, 1 to {MOST_FIELDS}, and by as many names"
BAD_LEASE: Final = "ERR LEASE is not a positive number of milliseconds"
NO_SETS: Final = "ERR LAYOUT must be LIST here: SET is for servers that refuse keys nobody declared"
FIRST: Final = b"0-0"  # Where a rebuild begins.


class LaneSettings:
    __slots__ = (
        "key_fields", "poison", "max_attempts", "keyless", "lease_ms", "reader", "tickets", "consumers", "layout",
    )  # fmt: skip

    def __init__(self, keys: LaneKeys) -> None:
        self.key_fields: list[bytes] = []
        self.poison = b"park"
        self.max_attempts = 0  # No limit.
        self.keyless = b"own"
        self.lease_ms = 30_000
        self.reader = b"master"
        self.tickets = keys.tickets
        self.consumers = keys.consumers
        self.layout = b"list"

    def encode(self) -> list[bytes]:
        """Fields and values of the hash."""
        names = b"".join([b"%d:%b" % (len(name), name) for name in self.key_fields])
        return [
            b"keyfields", names, b"poison", self.poison, b"maxattempts", b"%d" % self.max_attempts, b"keyless",
            self.keyless, b"lease", b"%d" % self.lease_ms, b"reader", self.reader, b"tickets", self.tickets,
            b"consumers", self.consumers, b"layout", self.layout,
        ]  # fmt: skip


def read_settings(fields: dict[bytes, bytes], keys: LaneKeys) -> LaneSettings:
    """As far as they make sense: the hash is an ordinary one."""
    settings = LaneSettings(keys)
    settings.key_fields = decode_names(fields.get(b"keyfields", b""))
    settings.poison = fields.get(b"poison", settings.poison)
    settings.max_attempts = read_number(fields.get(b"maxattempts", b""))
    settings.keyless = fields.get(b"keyless", settings.keyless)
    settings.lease_ms = read_number(fields.get(b"lease", b"")) or settings.lease_ms
    settings.reader = fields.get(b"reader", settings.reader)
    settings.tickets = fields.get(b"tickets", settings.tickets)
    settings.consumers = fields.get(b"consumers", settings.consumers)
    settings.layout = fields.get(b"layout", settings.layout)
    return settings


def decode_names(joined: bytes) -> list[bytes]:
    names: list[bytes] = []
    place = 0
    while place < len(joined):
        colon = joined.find(b":", place)
        if colon < 0 or not joined[place:colon].isdigit() or colon - place > len(b"%d" % len(joined)):
            break
        end = colon + 1 + int(joined[place:colon])
        names.append(joined[colon + 1 : end])
        place = end
    return names


def find_settings(ctx: Call, keys: LaneKeys) -> LaneSettings | None:
    """None before LANE.CONFIG. The keys get the names they have."""
    fields = find_hash(ctx, keys.order)
    if fields is None or b"keyfields" not in fields:
        return None
    settings = read_settings(fields, keys)
    keys.tickets = settings.tickets
    keys.consumers = settings.consumers
    return settings


# Reading LANE.CONFIG


def parse_config(argv: list[bytes], keys: LaneKeys) -> LaneSettings:
    settings = LaneSettings(keys)
    seen: set[bytes] = set()
    index = 3
    while index + 1 < len(argv):
        option = argv[index].upper()
        value = argv[index + 1]
        if option in seen:
            raise CommandError(SYNTAX)
        seen.add(option)
        index += 2
        if option == b"KEYFIELDS":
            count = parse_within(value, 1, min(MOST_FIELDS, len(argv) - index), BAD_FIELDS, BAD_FIELDS)
            settings.key_fields = argv[index : index + count]
            index += count
        elif option == b"MAPS" and index < len(argv):
            settings.tickets = value
            settings.consumers = argv[index]
            index += 1
        else:
            set_option(settings, option, value)
    if index != len(argv) or not settings.key_fields:
        raise CommandError(SYNTAX)
    if b"" in settings.key_fields:
        raise CommandError("ERR a name of KEYFIELDS must not be empty")
    return settings


def set_option(settings: LaneSettings, option: bytes, value: bytes) -> None:
    word = value.lower()
    if option == b"POISON" and word in (b"park", b"skip"):
        settings.poison = word
    elif option == b"MAXATTEMPTS":
        error = "ERR MAXATTEMPTS is not a number of attempts, or 0 for no limit"
        settings.max_attempts = parse_within(value, 0, MOST_ATTEMPTS, error, error)
    elif option == b"KEYLESS" and word in (b"own", b"dead"):
        settings.keyless = word
    elif option == b"LEASE":
        settings.lease_ms = parse_within(value, 1, LONGEST_LEASE_MS, BAD_LEASE, BAD_LEASE)
    elif option == b"READER":
        if value in (b"", LANES):
            raise CommandError("ERR READER must be a consumer's name other than 'lanes'")
        settings.reader = value
    elif option == b"LAYOUT" and word in (b"list", b"set"):
        if word == b"set":
            raise CommandError(NO_SETS)
    else:
        raise CommandError(SYNTAX)


def check_maps(stream: bytes, group: bytes, settings: LaneSettings) -> None:
    """The two maps must not be keys that are used for something else."""
    keys = LaneKeys(stream, group)
    beside = GroupKeys(stream, group)
    used = {stream, keys.ready, keys.until, keys.order, keys.dead, beside.due, beside.attempts, beside.again}
    for name in (settings.tickets, settings.consumers):
        if name in used or name.startswith(keys.lane):
            raise CommandError("ERR MAPS must not name the stream or another key of the group")
    if settings.tickets == settings.consumers:
        raise CommandError("ERR MAPS must name two different keys")
