"""Archives as the broker knows them: where each one lies, and its hold on each stream.

The registry is the hash `hr:archives`, from name to JSON. The hold is a consumer group named `hr:archive:NAME` that
nobody reads from: it stands at the last archived entry, so whatever removes only what every group has (delete after
acknowledgement, trim) keeps the rest, on every server.
"""

import json
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace
from typing import Any, Final
from urllib.parse import quote

from headrace.client import requests
from headrace.client.client import Client
from headrace.errors import CommandError, ConfigError, NotFound, Refused
from headrace.pipeline.entry_ids import id_of, text_of

REGISTRY: Final = "hr:archives"


@dataclass(frozen=True, slots=True)
class Archive:
    """One entry of the registry. Either streams or a pattern says what it keeps."""

    name: str
    path: str
    format: str
    streams: tuple[str, ...] = ()
    pattern: str | None = None
    starts: Mapping[str, int] = field(default_factory=dict)  # Where the hold on a stream was first put, as ID numbers.


def group_of(name: str) -> str:
    return f"hr:archive:{name}"


def file_name(name: str) -> str:
    """The archive's name as a part of a path."""
    return quote(name, safe="")


# The registry


def find_archive(client: Client, name: str) -> Archive | None:
    reply = ask(client, "HGET", REGISTRY, name)
    return None if reply is None else read_archive_entry(name, reply)


def list_archives(client: Client) -> list[Archive]:
    reply = ask(client, "HGETALL", REGISTRY)
    pairs = reply.items() if isinstance(reply, Mapping) else zip(reply[::2], reply[1::2], strict=True)
    return sorted((read_archive_entry(name.decode(), text) for name, text in pairs), key=lambda one: one.name)


def get_archive(client: Client, name: str) -> Archive:
    found = find_archive(client, name)
    if found is None:
        known = ", ".join(one.name for one in list_archives(client)) or "none"
        raise ConfigError(f"the broker knows no archive {name!r}; it knows {known}.")
    return found


def read_archive_entry(name: str, text: bytes) -> Archive:
    try:
        facts = json.loads(text)
        starts = {stream: id_of(place) for stream, place in facts["starts"].items()}
        return Archive(name, facts["path"], facts["format"], tuple(facts["streams"]), facts["pattern"], starts)
    except (ValueError, KeyError, TypeError, AttributeError):
        raise ConfigError(f"{REGISTRY} has no usable entry for the archive {name!r}. Remove it with HDEL.") from None


def reject_other_place(client: Client, archive: Archive) -> None:
    """A name belongs to one table for good: its holds say what that table has."""
    known = find_archive(client, archive.name)
    if known is not None and (known.path, known.format) != (archive.path, archive.format):
        raise Refused(
            f"the archive {archive.name!r} of {client.url} lies at {known.path} ({known.format}), not at "
            f"{archive.path} ({archive.format}). Give that path, or another name."
        )


def register(client: Client, archive: Archive) -> Archive:
    """Put it down in the broker, together with the streams of earlier runs."""
    reject_other_place(client, archive)
    known = find_archive(client, archive.name)
    if known is not None:
        archive = Archive(
            archive.name, archive.path, archive.format,
            streams=tuple(dict.fromkeys((*known.streams, *archive.streams))),
            pattern=archive.pattern or known.pattern,
            starts={**archive.starts, **known.starts},
        )  # fmt: skip
    if archive != known:
        facts = {
            "path": archive.path, "format": archive.format, "streams": archive.streams, "pattern": archive.pattern,
            "starts": {stream: text_of(start) for stream, start in archive.starts.items()},
        }  # fmt: skip
        ask(client, "HSET", REGISTRY, archive.name, json.dumps(facts))
    return archive


def forget(client: Client, name: str) -> Archive:
    """Take it out of the registry and let go of its streams. The table stays as it is."""
    archive = get_archive(client, name)
    for stream in archive.streams:
        try:
            client.stream(stream).group(group_of(name)).destroy()
        except NotFound:
            continue
    ask(client, "HDEL", REGISTRY, name)
    return archive


def ask(client: Client, command: str, key: str, *words: str) -> Any:
    return client.run(requests.raw(command, key, *words, key=key).run())


# The hold


def find_hold(client: Client, name: str, stream: str) -> int | None:
    """Where the hold stands, as an ID number; None where there is none."""
    for group in client.stream(stream).groups():
        if group.name == group_of(name):
            return id_of(group.last_delivered_id)
    return None


def make_hold(client: Client, name: str, stream: str, place: str) -> int:
    """Make sure there is a hold, at an ID or `$`, without moving one that is there. Where it stands."""
    try:
        client.run(requests.create_group(stream, group_of(name), place, makes_stream=False).run())
    except CommandError as error:
        if error.prefix != "BUSYGROUP":
            raise
    found = find_hold(client, name, stream)
    if found is None:
        raise Refused(f"the group {group_of(name)!r} of {stream!r} was removed while it was being made. Start again.")
    return found


def move_hold(client: Client, name: str, stream: str, through: int) -> bool:
    """To the last entry that the table has. False: the stream is there, and the hold is not."""
    try:
        client.run(requests.seek_group(stream, group_of(name), text_of(through)).run())
    except NotFound:
        return client.run(requests.key_type(stream).run()) != "stream"
    return True


def hold_new(client: Client, name: str, streams: Iterable[str]) -> None:
    """Streams that join by a pattern, before they are first read: all of each will be archived."""
    starts = {stream: make_hold(client, name, stream, "0-0") for stream in streams}
    archive = get_archive(client, name)
    register(client, replace(archive, streams=tuple(starts), starts=starts))
