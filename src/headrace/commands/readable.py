"""Journal records as commands: what `headrace check --dump` prints. A line is a command as redis-cli reads it.

A record is an effect, so its command has every ID and time filled in, and given to an empty broker in this order the
commands bring back the same data, as far as commands can. A few effects have no command of their own; they stand as a
comment, after a `#`.
"""

from collections import deque
from typing import Any, Final

from headrace.engine.dump import load_value
from headrace.engine.shelf import NodeLimits
from headrace.engine.sorted_set import SortedSet
from headrace.journal import record as kinds

Record = list[Any]
Words = list[bytes]

# $2 is the third part of the record, $3* that and all behind it. The second of a pair is a comment before the command.
TEMPLATES: Final[dict[bytes, tuple[str, str]]] = {
    kinds.TRIM: ("XTRIM $2 MINID $3", ""),
    kinds.DELETE: ("XDEL $2 $3*", ""),
    kinds.CUT: ("XDEL $2 $4*", "trimmed one by one"),
    kinds.FORGET: ("", "no group has them pending any more: $2 $3*"),
    kinds.SET_ID: ("XSETID $2 $3 ENTRIESADDED $4 MAXDELETEDID $5", ""),
    kinds.CREATE_STREAM: ("", "a new stream: $2"),
    kinds.CREATE_GROUP: ("XGROUP CREATE $2 $3 $4 MKSTREAM ENTRIESREAD $5", ""),
    kinds.SET_GROUP: ("XGROUP SETID $2 $3 $4 ENTRIESREAD $5", ""),
    kinds.DESTROY_GROUP: ("XGROUP DESTROY $2 $3", ""),
    kinds.CREATE_CONSUMER: ("XGROUP CREATECONSUMER $2 $3 $4", ""),
    kinds.DELETE_CONSUMER: ("XGROUP DELCONSUMER $2 $3 $4", ""),
    kinds.DELIVER: ("XREADGROUP GROUP $3 $4 COUNT $6 STREAMS $2 >", "delivered at $5"),
    kinds.RELEASE: ("XNACK $2 $3 FAIL IDS $n $5* RETRYCOUNT $4 FORCE", ""),
    kinds.ACK: ("XACK $2 $3 $4*", ""),
    kinds.SEEN_BEFORE: ("XIDMPRECORD $2 $3 $4 $5", ""),
    kinds.IDEMPOTENCE: ("XCFGSET $2 IDMP-DURATION $3 IDMP-MAXSIZE $4", ""),
    kinds.PUBLISH_ID: ("", "publish id $3 of $2 became entry $4 at $5"),
    kinds.PUBLISHED: ("", "the delayed message $3 of $2 became entry $4"),
    kinds.REMOVE: ("DEL $2", ""),
    kinds.LIST_SET: ("LSET $2 $3 $4", ""),
    kinds.LIST_INSERT: ("", "inserted into list $2 at place $3: $4"),
    kinds.LIST_REMOVE: ("LREM $2 $3 $4", ""),
    kinds.LIST_TURN: ("LMOVE $2 $2 $3 $4", ""),
    kinds.SET_ADD: ("SADD $2 $3*", ""),
    kinds.SET_REMOVE: ("SREM $2 $3*", ""),
    kinds.SCORE_REMOVE: ("ZREM $2 $3*", ""),
    kinds.HASH_SET: ("HSET $2 $3*", ""),
    kinds.HASH_REMOVE: ("HDEL $2 $3*", ""),
    kinds.QUEUE_PUSH: ("RQ.PUSH $2 $4*", "from ID $3 on"),
    kinds.QUEUE_PUSH_WITH: ("", "from ID $3 on, ready at $4, expires at $5"),
    kinds.QUEUE_DELIVER: ("RQ.POP COUNT $4 $2", "delivered at $3; buried: $5*"),
    kinds.QUEUE_REDELIVER: ("RQ.RECOVER $2 $4 0", "at $3"),
    kinds.QUEUE_BURY: ("RQ.ACK $2 $3*", "buried"),
    kinds.QUEUE_ACK: ("RQ.ACK $2 $3*", ""),
    kinds.QUEUE_GIVE_BACK: ("RQ.NACK $2 $4*", "ready at $3"),
    kinds.QUEUE_RESTART: ("RQ.EXTEND $2 $4*", "at $3"),
    kinds.QUEUE_ADVANCE: ("", "what was due in queue $2 at $3 came due"),
    kinds.RENAME: ("RENAME $2 $3", ""),
    kinds.CLEAR: ("FLUSHDB", ""),
    kinds.SWAP: ("SWAPDB $1 $2", ""),
    kinds.MOVE: ("MOVE $2 $3", ""),
}


def readable_lines(record: Record) -> list[str]:
    """The lines of one record. A record of any kind has some, also of one that is not known here."""
    try:
        template, comment = TEMPLATES.get(record[0], ("", ""))
        made = special_commands(record) or ([filled(template, record)] if template else [])
        lines = ["# " + line_of(filled(comment, record), quotes=False)] if comment else []
        lines += [line_of(words) for words in made]
        return lines or ["# " + line_of(flattened(record))]
    except Exception:  # Whatever lies in a damaged folder is to be shown, not to fail on.
        return ["# " + line_of(flattened(record))]


def filled(template: str, record: Record) -> Words:
    words: Words = []
    for word in template.split(" "):
        stem = word.rstrip(";:,")
        if stem == "$n":
            words.append(b"%d" % (len(record) - 5))
        elif stem.startswith("$") and stem.endswith("*"):
            words += record[int(stem[1:-1]) :]
        elif stem.startswith("$"):
            words.append(record[int(stem[1:])] + word[len(stem) :].encode())
        else:
            words.append(word.encode())
    return words


def special_commands(record: Record) -> list[Words]:
    """Commands that depend on more than the kind; none for the others."""
    kind, key = record[0], record[2] if len(record) > 2 else b""
    if kind == kinds.APPEND:
        return [[b"XADD", key, record[3][0], *record[3][1]]]
    if kind == kinds.ASSIGN:
        _, _, _, group, consumer, time_ms, count, *names = record
        return [[b"XCLAIM", key, group, consumer, b"0", *names, b"TIME", time_ms, b"RETRYCOUNT", count, b"FORCE"]]
    if kind == kinds.PUSH:
        return [[b"LPUSH" if record[3] == b"left" else b"RPUSH", key, *record[4:]]]
    if kind == kinds.POP:
        return [[b"LPOP" if record[3] == b"left" else b"RPOP", key, record[4]]]
    if kind == kinds.SCORE_SET:
        pairs = [word for at in range(3, len(record), 2) for word in (record[at + 1], record[at])]
        return [[b"ZADD", key, *pairs]]
    if kind == kinds.EXPIRE:
        return [[b"PERSIST", key] if record[3] == b"0" else [b"PEXPIREAT", key, record[3]]]
    if kind == kinds.QUEUE_PAUSE:
        directions = {(b"0", b"1"): b"IN", (b"1", b"0"): b"OUT", (b"0", b"0"): b"ALL", (b"1", b"1"): b"NONE"}
        return [[b"RQ.PAUSE", key, directions[record[3], record[4]]]]
    if kind == kinds.QUEUE_PUSH_WITH:
        return [push_command(record)]
    return put_commands(key, record[3], record[4]) if kind == kinds.PUT else []


def push_command(record: Record) -> Words:
    _, _, key, _, _, _, retry_ms, deliveries, dead_letter, *bodies = record
    words = [b"RQ.PUSHX", key]
    if retry_ms != b"0":
        words += [b"RETRY", retry_ms]
    if deliveries != b"0":
        words += [b"MAXDELIVERIES", deliveries]
        words += [b"DEADLETTER", dead_letter] if dead_letter else []
    return [*words, b"ELEMENTS", b"%d" % len(bodies), *bodies]


def put_commands(key: bytes, payload: bytes, expires_ms: bytes) -> list[Words]:
    """A value as a whole, in the words of its type; what has no such words as the payload of a DUMP."""
    value = load_value(payload, NodeLimits())
    if isinstance(value, bytes):
        return [[b"SET", key, value] if expires_ms == b"0" else [b"SET", key, value, b"PXAT", expires_ms]]
    if isinstance(value, deque):
        made = [b"RPUSH", key, *value]
    elif isinstance(value, dict):
        made = [b"HSET", key, *[word for pair in value.items() for word in pair]]
    elif isinstance(value, set):
        made = [b"SADD", key, *sorted(value)]
    elif isinstance(value, SortedSet):
        pairs = value.pairs(0, len(value))
        made = [b"ZADD", key, *[word for score, member in pairs for word in (repr(score).encode(), member)]]
    else:
        return [[b"RESTORE", key, expires_ms, payload, b"REPLACE", b"ABSTTL"]]
    expiry = [] if expires_ms == b"0" else [[b"PEXPIREAT", key, expires_ms]]
    return [[b"DEL", key], made, *expiry]


def flattened(record: Record) -> Words:
    words: Words = []
    for word in record:
        words += flattened(word) if isinstance(word, list) else [word]
    return words


def line_of(words: Words, *, quotes: bool = True) -> str:
    return " ".join([quoted(word) if quotes else escaped(word) for word in words])


def quoted(word: bytes) -> str:
    """As redis-cli reads it: bare where that is possible."""
    text = escaped(word)
    is_plain = text == word.decode("latin-1") and text and not set(text) & set(" \"'#")
    if is_plain:
        return text
    return '"' + text.replace('"', '\\"') + '"'


def escaped(word: bytes) -> str:
    shown = []
    for byte in word:
        if byte == 92:
            shown.append("\\\\")
        elif 32 <= byte < 127:
            shown.append(chr(byte))
        else:
            shown.append(f"\\x{byte:02x}")
    return "".join(shown)
