"""Option strings of `format("headrace")` -> frozen SourceOptions and SinkOptions. Pure.

Spark gives all options as text and does not care for the case of their names; here they come in any case. A bad option
is a ConfigError of one sentence that names it and says what to write. `url` may hold a password, so it is in no
message and in no repr.

A position is an entry ID as a number (see `entry_ids.py`), "earliest" or "latest". As a start it is the first ID to be
read, as an end the last one, both included.
"""

import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import UTC, datetime
from difflib import get_close_matches
from typing import Final, Literal

from headrace.client.client import choose_url
from headrace.client.times import ENTRY_ID
from headrace.client.urls import absolute_url, parse_url
from headrace.errors import ConfigError
from headrace.pipeline.entry_ids import MAX_PART

Position = int | Literal["earliest", "latest"]

EARLIEST: Final = "earliest"
LATEST: Final = "latest"
MAX_PARTITIONS: Final = 10_000  # Each is a task; more only keeps the driver busy.
MAX_PAGE_ENTRIES: Final = 100_000  # A reply is held in memory.
DEFAULT_PAGE_ENTRIES: Final = 5000  # Larger pages are not faster.

SOURCE_OPTIONS: Final = (
    "url", "streams", "streamsPattern", "startingOffsets", "startingTimestamp", "startingGroup", "endingOffsets",
    "endingTimestamp", "maxEntriesPerTrigger", "minPartitions", "pageEntries", "failOnDataLoss", "pushFilters",
    "columnsFrom", "mode", "columnNameOfCorruptRecord", "archive",
)  # fmt: skip
SINK_KINDS: Final = ("stream", "table", "archive")
SET_BY_SPARK: Final = frozenset({"path", "checkpointlocation", "queryname", "sourceidentifier"})


@dataclass(frozen=True, slots=True)
class Bounds:
    """Where to begin or to end: one position for every stream, and others for some."""

    everywhere: Position
    by_stream: Mapping[str, Position] = field(default_factory=dict)

    def of(self, stream: str) -> Position:
        return self.by_stream.get(stream, self.everywhere)


@dataclass(frozen=True, slots=True)
class SourceOptions:
    """What a source reads. Either `streams` or `pattern` is set."""

    url: str = field(repr=False)
    streams: tuple[str, ...]
    pattern: str | None
    start: Bounds
    start_group: str | None  # Begin behind what this group was given; `start` then says nothing.
    end: Bounds
    max_entries: int | None
    min_partitions: int | None
    page_entries: int
    fails_on_data_loss: bool
    pushes_filters: bool | None  # None: where Spark can be trusted with it.
    columns_from: str | None
    mode: str | None
    corrupt_column: str | None
    archive: str | None


@dataclass(frozen=True, slots=True)
class SinkOptions:
    """Where rows go: `kind` is stream, table or archive, `target` its name or path.

    The sink reads its own options from `others`, by lower-case names, and refuses the ones it does not know with
    `reject_unknown`.
    """

    url: str | None = field(repr=False)
    kind: str
    target: str
    others: Mapping[str, str]


def parse_source_options(given: Mapping[str, str], default_url: str | None, *, is_stream: bool | None) -> SourceOptions:
    """Raises ConfigError. `default_url` is used where `url` is not given; `is_stream` may not be known yet."""
    options = lower_case(given)
    reject_unknown(options, SOURCE_OPTIONS, "the source")
    streams, pattern = parse_streams(options)
    if is_stream:
        reject_batch_only(options)
    start = parse_start(options, LATEST if is_stream and "archive" not in options else EARLIEST)
    end = parse_bounds(options, "endingOffsets", "endingTimestamp", LATEST, is_end=True)
    if streams:
        for name, bounds in (("startingOffsets", start), ("endingOffsets", end)):
            for stream in bounds.by_stream:
                if stream not in streams:
                    raise ConfigError(
                        f"{name} names {stream!r}, which is not in streams. Take it out, or add it there."
                    )
    return SourceOptions(
        url=parse_broker_url(options, default_url),
        streams=streams,
        pattern=pattern,
        start=start,
        start_group=options.get("startinggroup"),
        end=end,
        max_entries=parse_count(options, "maxEntriesPerTrigger", 2**63 - 1),
        min_partitions=parse_count(options, "minPartitions", MAX_PARTITIONS),
        page_entries=parse_count(options, "pageEntries", MAX_PAGE_ENTRIES) or DEFAULT_PAGE_ENTRIES,
        fails_on_data_loss=parse_flag(options, "failOnDataLoss") is not False,
        pushes_filters=parse_flag(options, "pushFilters"),
        columns_from=options.get("columnsfrom"),
        mode=options.get("mode"),
        corrupt_column=options.get("columnnameofcorruptrecord"),
        archive=options.get("archive"),
    )


def parse_sink_options(given: Mapping[str, str], default_url: str | None) -> SinkOptions:
    """Raises ConfigError. A sink that needs a broker asks for its URL with `get_sink_url`."""
    options = lower_case(given)
    kinds = [kind for kind in SINK_KINDS if kind in options]
    if len(kinds) != 1:
        found = " and ".join(kinds) or "none of them"
        raise ConfigError(
            "a sink needs exactly one of the options stream (entries go to a stream), table (rows go to a table) and "
            f"archive (entries go to an archive); there is {found}."
        )
    [kind] = kinds
    if not options[kind]:
        raise ConfigError(f"{kind} is empty. Give the name or path of where the rows go.")
    others = {name: value for name, value in options.items() if name not in (kind, "url") and name not in SET_BY_SPARK}
    url = options.get("url") or default_url
    if url:
        check_broker_url(url)
    return SinkOptions(url=url, kind=kind, target=options[kind], others=others)


def get_sink_url(options: SinkOptions) -> str:
    if not options.url:
        raise ConfigError(NO_URL)
    return options.url


# The parts


def lower_case(given: Mapping[str, str]) -> dict[str, str]:
    return {name.lower(): value.strip() for name, value in given.items()}


def reject_unknown(options: Mapping[str, str], known: tuple[str, ...], what: str) -> None:
    """Refuse the first option that nobody knows. A slip of the pen must not silently change what is read."""
    names = {name.lower(): name for name in known}
    for option in sorted(options):
        if option in names or option in SET_BY_SPARK:
            continue
        near = get_close_matches(option, names, n=1)
        hint = f" Did you mean {names[near[0]]}?" if near else f" It knows {', '.join(known)}."
        raise ConfigError(f"{what} has no option {option!r}.{hint}")


NO_URL: Final = (
    "no URL: give the option url, like headrace://localhost:7379, or set HEADRACE_URL before the Spark session starts."
)


def parse_broker_url(options: Mapping[str, str], default_url: str | None) -> str:
    url = options.get("url") or default_url
    if not url:
        raise ConfigError(NO_URL)
    check_broker_url(url)
    return url


def check_broker_url(url: str) -> None:
    target = parse_url(url)
    if target.kind == "embedded" and not target.path:
        raise ConfigError(
            "Spark's tasks are other processes and cannot reach an embedded: broker in memory. Name a folder, "
            "embedded:./data, start a broker with `headrace serve` and give its URL, or give any redis:// URL."
        )


def get_broker_url(url: str | None) -> str:
    """The URL given, else HEADRACE_URL, as tasks can use it wherever they run."""
    chosen = choose_url(url)
    check_broker_url(chosen)
    return absolute_url(chosen)


def parse_streams(options: Mapping[str, str]) -> tuple[tuple[str, ...], str | None]:
    listed, pattern = options.get("streams"), options.get("streamspattern")
    if (listed is None) == (pattern is None):
        raise ConfigError(
            "the source needs the option streams (names, joined by commas) or streamsPattern (like orders:*)"
            + (", and not both." if listed else ".")
        )
    if pattern is not None:
        if not pattern:
            raise ConfigError("streamsPattern is empty. Write a pattern like orders:*, or * for every stream.")
        return (), pattern
    names = parse_names(listed) if listed else ()
    if not names:
        raise ConfigError("streams names no stream. Write names joined by commas, or a JSON list of names.")
    return names, None


def parse_names(text: str) -> tuple[str, ...]:
    """Names joined by commas, or a JSON list where a name has a comma in it. Each name once, in order."""
    names: list[object]
    if text.startswith("["):
        try:
            names = json.loads(text)
        except ValueError:
            raise ConfigError(f'streams is {text!r}, which is no JSON list. Write it like ["a,b", "c"].') from None
    else:
        names = [name.strip() for name in text.split(",")]
    for name in names:
        if not isinstance(name, str) or not name:
            raise ConfigError(f"streams is {text!r}; every name in it must be a text that is not empty.")
    return tuple(dict.fromkeys(str(name) for name in names))


def reject_batch_only(options: Mapping[str, str]) -> None:
    for name in ("endingOffsets", "endingTimestamp"):
        if name.lower() in options:
            raise ConfigError(f"{name} is for batch reads (spark.read); a streaming query has no end. Take it out.")


def parse_start(options: Mapping[str, str], default: Position) -> Bounds:
    given = [name for name in ("startingOffsets", "startingTimestamp", "startingGroup") if name.lower() in options]
    if len(given) > 1:
        raise ConfigError(f"{' and '.join(given)} both say where to begin. Give one of them.")
    if "startinggroup" in options and not options["startinggroup"]:
        raise ConfigError("startingGroup is empty. Give the name of a consumer group.")
    return parse_bounds(options, "startingOffsets", "startingTimestamp", default, is_end=False)


def parse_bounds(
    options: Mapping[str, str], offsets: str, timestamp: str, default: Position, *, is_end: bool
) -> Bounds:
    text, time = options.get(offsets.lower()), options.get(timestamp.lower())
    if text is not None and time is not None:
        raise ConfigError(
            f"{offsets} and {timestamp} both say where to {'end' if is_end else 'begin'}. Give one of them."
        )
    if time is not None:
        return Bounds(id_at(parse_time_ms(time, timestamp), is_end=is_end))
    if text is None:
        return Bounds(default)
    if text.startswith("{"):
        return Bounds(default, parse_positions(text, offsets, is_end=is_end))
    return Bounds(parse_position(text, offsets, is_end=is_end))


def parse_positions(text: str, option: str, *, is_end: bool) -> dict[str, Position]:
    try:
        given = json.loads(text)
    except ValueError:
        raise ConfigError(
            f'{option} is {text!r}, which is no JSON. Write it like {{"orders": "1690275391705-0"}}.'
        ) from None
    positions: dict[str, Position] = {}
    for stream, place in given.items():
        if not isinstance(place, str):
            raise ConfigError(f'{option} has {place!r} for {stream!r}; write IDs as text: "1690275391705-0".')
        positions[stream] = parse_position(place.strip(), f"{option} of {stream!r}", is_end=is_end)
    return positions


def parse_position(text: str, what: str, *, is_end: bool) -> Position:
    """`earliest`, `latest`, or an ID. A bare millisecond begins with its first ID and ends with its last one."""
    if text == "earliest":
        return EARLIEST
    if text == "latest":
        return LATEST
    ms, dash, seq = text.partition("-")
    if not (text.isascii() and ENTRY_ID.fullmatch(text)) or max(int(ms), int(seq or 0)) > MAX_PART:
        raise ConfigError(
            f"{what} is {text!r}; write earliest, latest, or an entry ID like 1690275391705-0"
            + ("." if " of " in what else ', or for some streams {"orders": "1690275391705-0"}.')
        )
    return int(ms) << 64 | int(seq) if dash else id_at(int(ms), is_end=is_end)


def id_at(ms: int, *, is_end: bool) -> int:
    return ms << 64 | (MAX_PART if is_end else 0)


def parse_time_ms(text: str, option: str) -> int:
    """Milliseconds since 1970, or a time in ISO 8601, in UTC where it names no zone."""
    if text.isascii() and text.isdecimal() and int(text) <= MAX_PART:
        return int(text)
    try:
        time = datetime.fromisoformat(text)
        ms = round((time if time.tzinfo else time.replace(tzinfo=UTC)).timestamp() * 1000)
    except (ValueError, OverflowError):
        ms = -1
    if ms < 0:
        raise ConfigError(f"{option} is {text!r}; write milliseconds since 1970, or a time like 2026-11-15T12:30:00Z.")
    return ms


def parse_count(options: Mapping[str, str], option: str, most: int) -> int | None:
    text = options.get(option.lower())
    if text is None:
        return None
    if not (text.isascii() and text.isdecimal()) or not 1 <= int(text) <= most:
        raise ConfigError(f"{option} is {text!r}; write a whole number between 1 and {most}.")
    return int(text)


def parse_flag(options: Mapping[str, str], option: str) -> bool | None:
    text = options.get(option.lower())
    if text is None:
        return None
    if text.lower() not in ("true", "false"):
        raise ConfigError(f"{option} is {text!r}; write true or false.")
    return text.lower() == "true"
