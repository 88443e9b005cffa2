"""How far a streaming query has read, as Spark keeps it in its checkpoint. Pure.

    {"": {"orders": {"added": 1200}}, "orders": "1690275391705-0", "parcels": "1690275391000-3"}

Under the name of each stream stands the last ID that was read, or passed over. Under the empty name, which no stream
has, stands what tells later whether entries went before they were read; it may be missing, then less is noticed:

    added    how many entries the stream ever had, if all of them were read
    next     otherwise, the lowest entry that was still to be read
    deleted  the highest single deletion behind the position, if there was one
    ahead    true, if the query began with an ID that the stream had not reached

Valid is an object whose values are IDs as servers write them, and under "" objects with these names.

Trimming leaves no trace but the lowest entry that is left, so it is seen by `next`, or by counting: entries ever added
against those still there. A single XDEL leaves only the highest deleted ID: one below it cannot be seen.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Final

from headrace.errors import ConfigError
from headrace.pipeline.entry_ids import id_of, text_of

WITNESSES: Final = ""


@dataclass(frozen=True, slots=True)
class StreamFacts:
    """What a server says of a stream, all at one moment. IDs are numbers."""

    name: str
    length: int
    first_id: int | None  # The lowest entry; None: there is none.
    last_id: int  # The highest ever given, also if the entry is gone.
    added: int | None  # None: the server is too old to tell.
    deleted_id: int


@dataclass(frozen=True, slots=True)
class Mark:
    """A position in a stream: the last ID read, and what was behind it at that moment."""

    id: int
    next_id: int | None = None
    added: int | None = None
    deleted_id: int = 0
    is_ahead: bool = False


def make_mark(facts: StreamFacts, position: int, next_id: int | None) -> Mark:
    """The mark at a position; `next_id` is the lowest entry behind it, if there is one."""
    if position > facts.last_id:
        return Mark(position, is_ahead=True)
    if position == facts.last_id:
        return Mark(position, added=facts.added)
    return Mark(position, next_id=next_id, deleted_id=facts.deleted_id if facts.deleted_id > position else 0)


def encode_offsets(marks: Mapping[str, Mark]) -> dict[str, Any]:
    """As Spark keeps them: sorted, so that equal offsets are equal texts."""
    witnesses = {name: witness for name in sorted(marks) if (witness := encode_witness(marks[name]))}
    offsets: dict[str, Any] = {WITNESSES: witnesses} if witnesses else {}
    for name in sorted(marks):
        offsets[name] = text_of(marks[name].id)
    return offsets


def encode_witness(mark: Mark) -> dict[str, Any]:
    witness: dict[str, Any] = {}
    if mark.added is not None:
        witness["added"] = mark.added
    if mark.next_id is not None:
        witness["next"] = text_of(mark.next_id)
    if mark.deleted_id:
        witness["deleted"] = text_of(mark.deleted_id)
    if mark.is_ahead:
        witness["ahead"] = True
    return witness


def parse_offsets(given: object) -> dict[str, Mark]:
    """Raises ConfigError for a checkpoint that is damaged."""
    if not isinstance(given, dict):
        raise damaged(f"holds {given!r} where an object with a position per stream belongs")
    witnesses = given.get(WITNESSES, {})
    if not isinstance(witnesses, dict):
        raise damaged(f"holds {witnesses!r} where an object belongs")
    return {name: parse_mark(name, text, witnesses.get(name, {})) for name, text in given.items() if name != WITNESSES}


def positions_of(marks: Mapping[str, Mark]) -> dict[str, int]:
    return {name: mark.id for name, mark in marks.items()}


def parse_mark(name: str, text: object, witness: object) -> Mark:
    position = parse_id(name, text)
    if not isinstance(witness, dict):
        raise damaged(f"holds {witness!r} for stream {name!r} where an object belongs")
    added = witness.get("added")
    if added is not None and (not isinstance(added, int) or isinstance(added, bool) or added < 0):
        raise damaged(f"holds {added!r} for stream {name!r}, which is no number of entries")
    following, deleted = witness.get("next"), witness.get("deleted")
    return Mark(
        position,
        next_id=None if following is None else parse_id(name, following),
        added=added,
        deleted_id=0 if deleted is None else parse_id(name, deleted),
        is_ahead=witness.get("ahead") is True,
    )


def parse_id(name: str, text: object) -> int:
    try:
        return id_of(str(text))
    except ValueError:
        raise damaged(f"holds {text!r} for stream {name!r}, which is no entry ID") from None


def damaged(what: str) -> ConfigError:
    return ConfigError(
        f"the checkpoint is damaged: its offset {what}. Put the file back from a copy, or begin with a new checkpoint "
        "and the option startingOffsets."
    )


# Lost entries


@dataclass(frozen=True, slots=True)
class Loss:
    """Entries that went before they were read."""

    stream: str
    sentence: str
    is_anew: bool  # The stream is gone, or another one of its name: there is no going on, only a new beginning.


def find_loss(name: str, mark: Mark, facts: StreamFacts | None) -> Loss | None:
    """What was lost of a stream behind a mark; `facts` are None where there is no such stream any more."""
    remade = find_remake(name, mark, facts)
    if remade is not None or facts is None:
        return remade
    gone = find_trim(mark, facts) or find_deletion(mark, facts)
    return Loss(name, f"stream {name!r}: {gone} before they were read", is_anew=False) if gone else None


def find_remake(name: str, mark: Mark, facts: StreamFacts | None) -> Loss | None:
    """Whether the stream that had this mark is gone, or another one has its name now."""
    where, read = f"stream {name!r}", text_of(mark.id)
    if facts is None:
        return Loss(name, f"{where}, read up to {read}, is gone: it was deleted", is_anew=True)
    if facts.last_id < mark.id and not mark.is_ahead:
        last = text_of(facts.last_id)
        return Loss(name, f"{where} was deleted and made anew: its last ID is {last}, below {read}", is_anew=True)
    if mark.added is not None and facts.added is not None and facts.added < mark.added:
        counts = f"it has had {facts.added} entries, and {mark.added} were read"
        return Loss(name, f"{where} was deleted and made anew: {counts}", is_anew=True)
    return None


def find_trim(mark: Mark, facts: StreamFacts) -> str | None:
    begins = "the stream is empty now" if facts.first_id is None else f"it begins with {text_of(facts.first_id)} now"
    if mark.next_id is not None and (facts.first_id is None or facts.first_id > mark.next_id):
        return f"entries from {text_of(mark.next_id)} on were trimmed ({begins})"
    is_passed = facts.first_id is None or facts.first_id > mark.id
    if is_passed and mark.added is not None and facts.added is not None:
        count = facts.added - mark.added - facts.length
        if count > 0:
            return f"{count} entries behind {text_of(mark.id)} were trimmed or deleted ({begins})"
    return None


def find_deletion(mark: Mark, facts: StreamFacts) -> str | None:
    if facts.deleted_id <= max(mark.id, mark.deleted_id):
        return None
    return f"entries behind {text_of(mark.id)} were deleted, {text_of(facts.deleted_id)} among them,"
