"""Dead letters of a group: looked at, sent again, dropped. Written once for both flavours.

A dead letter is the original fields followed by `hr:stream`, `hr:id`, `hr:group`, `hr:attempts`, `hr:error`,
`hr:traceback` and `hr:at`. One that is sent again keeps `hr:stream` and `hr:id`, through any number of burials. It goes
to the group's stream `again` by its own ID as publish id, and is then deleted: stopped in between and done once more,
it still goes once.
"""

import re
from collections.abc import Callable
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any, Final

from headrace.client import publish_flows, requests
from headrace.client.flow import Flow
from headrace.client.flows import Facts, create_group
from headrace.client.lane_keys import order_key
from headrace.client.results import Entry, Pairs, encode_text
from headrace.client.worker_keys import group_keys
from headrace.errors import ConfigError, NotFound, Refused

PAGE: Final = 500
STORY: Final = b"hr:"
LONGEST_NUMBER: Final = 16  # Digits.
LAST_MS: Final = 253_402_300_800_000  # The end of the year 9999, and of Python's times.
CONDITION: Final = re.compile(r"\s*(id|entry|error|attempts|key)\s*(~|!=|=|<=|>=|<|>)\s*(.+?)\s*", re.DOTALL)


@dataclass(frozen=True, slots=True)
class DeadLetter:
    """A message that was given up, and why."""

    id: str  # Its own, among the dead letters.
    stream: str  # Where it was published,
    entry_id: str  # and as what.
    group: str
    attempts: int
    error: str
    traceback: str
    at: datetime | None  # When it was buried.
    pairs: Pairs  # The original fields.

    @property
    def entry(self) -> Entry:
        """As it was published."""
        return Entry(self.entry_id, self.pairs, self.stream)

    @property
    def payload(self) -> Any:
        return self.entry.payload

    @property
    def key(self) -> str | None:
        return self.entry.key


Where = Callable[[DeadLetter], bool]


def read_letter(entry: Entry) -> DeadLetter:
    fields = entry.fields
    at_ms = number_in(fields, "hr:at")
    return DeadLetter(
        id=entry.id,
        stream=fields.get("hr:stream", ""),
        entry_id=fields.get("hr:id", ""),
        group=fields.get("hr:group", ""),
        attempts=number_in(fields, "hr:attempts"),
        error=fields.get("hr:error", ""),
        traceback=fields.get("hr:traceback", ""),
        at=datetime.fromtimestamp(at_ms / 1000, UTC) if 0 < at_ms < LAST_MS else None,
        pairs=tuple(pair for pair in entry.pairs if not pair[0].startswith(STORY)),
    )


def number_in(fields: dict[str, str], name: str) -> int:
    """0 where there is none: dead letters lie in an ordinary stream."""
    text = fields.get(name, "")
    return int(text) if text.isdecimal() and len(text) <= LONGEST_NUMBER else 0


def page(stream: str, group: str, after: str) -> Flow[list[DeadLetter]]:
    """The next ones behind an ID, oldest first."""
    dead = group_keys(stream, group).dead
    start = f"({after}" if after else "-"
    entries = yield from requests.range_(dead, start, "+", PAGE, newest_first=False).run()
    return [read_letter(entry) for entry in entries]


def get(stream: str, group: str, letter_id: str) -> Flow[DeadLetter]:
    dead = group_keys(stream, group).dead
    entries = yield from requests.range_(dead, letter_id, letter_id, 1, newest_first=False).run()
    if not entries:
        raise NotFound(f"group {group!r} of {stream!r} has no dead letter {letter_id}.", "ERR")
    return read_letter(entries[0])


def prepare_replay(stream: str, group: str) -> Flow[bool]:
    """The group reads `again` from its beginning. A group that keeps order reads no such stream."""
    order = order_key(stream, group)
    if (yield from requests.Request(("EXISTS", order), requests.number, order, is_repeatable=True).run()):
        raise Refused(
            f"group {group!r} of {stream!r} keeps order per key: a dead letter that only it gets again would come out "
            f"of turn. Publish it anew, behind everything else and for all groups: --to {stream}, or to={stream!r}."
        )
    return (yield from create_group(group_keys(stream, group).again, group, "0"))


def replay(facts: Facts, stream: str, group: str, letter: DeadLetter, to: str | None) -> Flow[None]:
    """Send one again: to its group alone, or as a new message to a stream."""
    keys = group_keys(stream, group)
    pairs = [*letter.pairs, (b"hr:stream", encode_text(letter.stream)), (b"hr:id", encode_text(letter.entry_id))]
    yield from publish_flows.add_once(facts, to or keys.again, pairs, f"{keys.dead}:{letter.id}")
    yield from requests.delete(keys.dead, [letter.id]).run()


def drop(stream: str, group: str, ids: list[str]) -> Flow[int]:
    """How many were there."""
    if not ids:
        return 0
    return (yield from requests.delete(group_keys(stream, group).dead, ids).run())


def count(stream: str, group: str) -> Flow[int]:
    return (yield from requests.length(group_keys(stream, group).dead).run())


# Conditions


def parse_where(text: str) -> Where:
    """A condition as it is written on the command line: 'error ~ "timeout"', 'attempts >= 3', 'key = customer-42'."""
    match = CONDITION.fullmatch(text)
    if match is None:
        raise ConfigError(
            f"{text!r} is no condition; write one like 'error ~ \"timeout\"', 'attempts >= 3' or 'key = customer-42'. "
            "There are id, entry, error, attempts and key; ~ is a regular expression."
        )
    field, operator, value = match[1], match[2], unquoted(match[3])
    if operator == "~":
        return matching(field, value)
    if field == "attempts":
        if not value.isdecimal():
            raise ConfigError(f"attempts is compared with {value!r}; give a number.")
        return comparing(field, operator, int(value))
    return comparing(field, operator, value)


def unquoted(text: str) -> str:
    return text[1:-1] if len(text) > 1 and text[0] == text[-1] and text[0] in "'\"" else text


def matching(field: str, pattern: str) -> Where:
    try:
        found = re.compile(pattern)
    except re.error as error:
        raise ConfigError(f"{pattern!r} is no regular expression: {error}.") from error
    return lambda letter: found.search(str(value_of(letter, field) or "")) is not None


def comparing(field: str, operator: str, value: Any) -> Where:
    tests: dict[str, Callable[[Any], bool]] = {
        "=": lambda found: found == value, "!=": lambda found: found != value, "<": lambda found: found < value,
        ">": lambda found: found > value, "<=": lambda found: found <= value, ">=": lambda found: found >= value,
    }  # fmt: skip
    test = tests[operator]

    def where(letter: DeadLetter) -> bool:
        found = value_of(letter, field)
        return test("" if found is None else found)

    return where


def value_of(letter: DeadLetter, field: str) -> Any:
    return letter.entry_id if field == "entry" else getattr(letter, field)
