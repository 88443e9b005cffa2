"""How an entry ends: acknowledged and deleted where nobody needs it, or copied to the dead letters before."""

from typing import Final

from headrace.commands.hr_steps import Step
from headrace.commands.notifications import STREAM
from headrace.engine.group import Group
from headrace.engine.ids import id_of, name_of
from headrace.engine.node import words_in
from headrace.engine.stream import Stream
from headrace.journal.record import ACK, DELETE, encode_record

ORIGIN: Final = (b"hr:stream", b"hr:id")  # Of the first entry, through any number of replays.
STORY: Final = frozenset((*ORIGIN, b"hr:group", b"hr:attempts", b"hr:error", b"hr:traceback", b"hr:at"))


class Story:
    """Why an entry is buried."""

    __slots__ = ("attempt", "error", "traceback")

    def __init__(self, attempt: int, error: bytes, traceback: bytes) -> None:
        self.attempt = attempt
        self.error = error
        self.traceback = traceback


def dead_letter(
    now_ms: int, stream_name: bytes, group_name: bytes, stream: Stream, name: bytes, story: Story
) -> list[bytes]:
    """Fields and values: the entry's own, then its story. Of an entry that is gone only the story is left."""
    entry = stream.find(id_of(name))
    words: list[bytes] = []
    origin = {b"hr:stream": stream_name, b"hr:id": name}
    found = words_in(entry) if entry is not None else []
    for index in range(0, len(found), 2):
        if found[index] in ORIGIN:
            origin[found[index]] = found[index + 1]
        elif found[index] not in STORY:
            words += found[index : index + 2]
    words += [b"hr:stream", origin[b"hr:stream"], b"hr:id", origin[b"hr:id"], b"hr:group", group_name]
    words += [b"hr:attempts", b"%d" % story.attempt, b"hr:error", story.error, b"hr:traceback", story.traceback]
    words += [b"hr:at", b"%d" % now_ms]
    return words


def acknowledge(
    step: Step, stream_name: bytes, group_name: bytes, stream: Stream, group: Group, names: list[bytes], *, keeps: bool
) -> None:
    """Entries are done: no longer pending, and deleted where nobody needs them."""
    ctx = step.ctx
    group.ack(names)
    step.is_changed = True
    if ctx.journaling:
        step.records.append(encode_record(ACK, ctx.db.number, stream_name, group_name, *names))
    if not keeps:
        deleted = stream.delete(sorted(stream.unneeded(names)))  # Neighbours go together.
        if deleted:
            ctx.touch(stream_name)
            ctx.notify(STREAM, b"xdel", stream_name)
            if ctx.journaling:
                step.records.append(
                    encode_record(DELETE, ctx.db.number, stream_name, *[name_of(one) for one in deleted])
                )
