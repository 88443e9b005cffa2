"""What is done: acknowledged, deleted once nobody needs it, with what is added and what it effects."""

from __future__ import annotations

from headrace.client.worker_keys import group_keys

from ..wire import ErrorReply
from .row import LONG_MS, SYNTAX, WRONG_TYPE, WorkerSteps, beside_keys, given, names_in, pending, row

# Acknowledging


@row
def acknowledged_entries_are_gone(steps: WorkerSteps, key: str) -> None:
    names = given(steps, key, 5)

    assert steps("HR.SETTLE", key, "g", "ann", "ACK", 3, names[0], names[3], names[1]) == [1, 1, 1]
    assert names_in(steps, key) == [names[2], names[4]]
    assert [row[0] for row in pending(steps, key)] == [names[2], names[4]]
    assert beside_keys(steps, key) == []


@row
def what_another_consumer_holds_is_not_settled(steps: WorkerSteps, key: str) -> None:
    mine, theirs = given(steps, key, 1), given(steps, key, 1, "bob")

    assert steps("HR.SETTLE", key, "g", "ann", "ACK", 3, theirs[0], mine[0], "1-1") == [0, 1, 0]
    assert pending(steps, key) == [[theirs[0], b"bob", 1]]
    assert steps("HR.SETTLE", key, "g", "nobody", "ACK", 1, theirs[0]) == [0]
    assert steps("HR.SETTLE", key, "other", "bob", "ACK", 1, theirs[0]) == [0]
    assert steps("HR.SETTLE", f"none{{{key}}}", "g", "bob", "ACK", 1, theirs[0]) == [0]


@row
def a_repeated_settle_changes_nothing(steps: WorkerSteps, key: str) -> None:
    names = given(steps, key, 2)
    target = f"next{{{key}}}"
    words = ("HR.SETTLE", key, "g", "ann", "ACK", 1, names[0], "ADD", target, "FIELDS", 2, "a", "b")

    assert steps(*words, "BURY", names[1], "bad", "trace", 3) == [1, 1]
    assert steps(*words, "BURY", names[1], "bad", "trace", 3) == [0, 0]
    assert steps("XLEN", target) == 1
    assert steps("XLEN", group_keys(key, "g").dead) == 1


@row
def an_id_that_is_named_twice_is_settled_once(steps: WorkerSteps, key: str) -> None:
    [name] = given(steps, key, 1)

    assert steps("HR.SETTLE", key, "g", "ann", "ACK", 2, name, name, "RETRY", name, 0, 1, "x") == [1, 0, 0]
    assert beside_keys(steps, key) == []


@row
def ids_may_be_written_in_any_way(steps: WorkerSteps, key: str) -> None:
    steps("XGROUP", "CREATE", key, "g", "0", "MKSTREAM")
    for name in ("5-0", "7-3", "10-0", "99-0"):
        steps("XADD", key, name, "a", "b")
    steps("XREADGROUP", "GROUP", "g", "ann", "STREAMS", key, ">")

    assert steps("HR.START", key, "g", "ann", "5", "07-03", "10-0") == [[1, b""], [1, b""], [1, b""]]
    assert steps("HR.SETTLE", key, "g", "ann", "ACK", 4, "0099-0", "5", "07-03", "10-00") == [1, 1, 1, 1]
    assert pending(steps, key) == []
    assert beside_keys(steps, key) == []


@row
def entries_stay_until_every_group_is_done_with_them(steps: WorkerSteps, key: str) -> None:
    names = given(steps, key, 4)
    steps("XGROUP", "CREATE", key, "h", "0")
    steps("XGROUP", "CREATE", key, "i", names[3])  # Needs nothing of this.
    steps("XREADGROUP", "GROUP", "h", "eve", "COUNT", 2, "STREAMS", key, ">")

    assert steps("HR.SETTLE", key, "g", "ann", "ACK", 4, *names) == [1] * 4
    assert names_in(steps, key) == names
    assert steps("HR.SETTLE", key, "h", "eve", "ACK", 1, names[1]) == [1]
    assert names_in(steps, key) == [names[0], names[2], names[3]]
    steps("XREADGROUP", "GROUP", "h", "eve", "STREAMS", key, ">")
    assert steps("HR.SETTLE", key, "h", "eve", "ACK", 3, *names[:1], *names[2:]) == [1] * 3
    assert names_in(steps, key) == []


@row
def a_slow_group_with_much_pending_keeps_its_entries(steps: WorkerSteps, key: str) -> None:
    """More of it lies between the settled ones than is looked at in one go."""
    names = given(steps, key, 60)
    steps("XGROUP", "CREATE", key, "h", "0")
    steps("XREADGROUP", "GROUP", "h", "eve", "STREAMS", key, ">")
    steps("XACK", key, "h", names[59])

    assert steps("HR.SETTLE", key, "g", "ann", "ACK", 2, names[0], names[59]) == [1, 1]
    assert names_in(steps, key) == names[:59]


@row
def a_group_that_was_set_back_needs_the_entry_again(steps: WorkerSteps, key: str) -> None:
    names = given(steps, key, 2)
    steps("XGROUP", "SETID", key, "g", "0")

    assert steps("HR.SETTLE", key, "g", "ann", "ACK", 1, names[0]) == [1]
    assert names_in(steps, key) == names


@row
def kept_entries_are_acknowledged_only(steps: WorkerSteps, key: str) -> None:
    names = given(steps, key, 2)

    assert steps("HR.SETTLE", key, "g", "ann", "KEEP", "ACK", 1, names[0], "BURY", names[1], "e", "t", 1) == [1, 1]
    assert names_in(steps, key) == names
    assert pending(steps, key) == []


@row
def a_deleted_entry_is_acknowledged_all_the_same(steps: WorkerSteps, key: str) -> None:
    names = given(steps, key, 2)
    steps("XDEL", key, *names)

    assert steps("HR.SETTLE", key, "g", "ann", "ACK", 1, names[0]) == [1]
    assert steps("HR.SETTLE", key, "g", "ann", "BURY", names[1], "lost", "trace", 2) == [1]
    assert pending(steps, key) == []
    [[_, words]] = steps("XRANGE", group_keys(key, "g").dead, "-", "+")
    assert words[:6] == [b"hr:stream", key.encode(), b"hr:id", names[1], b"hr:group", b"g"]


@row
def many_ids_are_settled_at_once(steps: WorkerSteps, key: str) -> None:
    names = given(steps, key, 1001)

    refused = ErrorReply("ERR at most 1000 IDs are possible in one call")
    assert steps("HR.SETTLE", key, "g", "ann", "ACK", 1001, *names) == refused
    assert steps("HR.EXTEND", key, "g", "ann", *names) == refused
    assert steps("HR.SETTLE", key, "g", "ann", "ACK", 1000, *reversed(names[1:])) == [1] * 1000
    assert names_in(steps, key) == names[:1]


@row
def the_oldest_of_many_go_and_the_others_stay(steps: WorkerSteps, key: str) -> None:
    names = given(steps, key, 50)
    more = steps("XADD", key, "*", "f", "v")

    assert steps("HR.SETTLE", key, "g", "ann", "ACK", 20, *reversed(names[:20])) == [1] * 20
    assert names_in(steps, key) == [*names[20:], more]
    assert steps("HR.SETTLE", key, "g", "ann", "ACK", 15, *names[25:40]) == [1] * 15
    assert names_in(steps, key) == [*names[20:25], *names[40:], more]
    assert steps("HR.SETTLE", key, "g", "ann", "ACK", 15, *names[20:25], *names[40:]) == [1] * 15
    assert names_in(steps, key) == [more]


@row
def what_was_kept_stays_when_many_go(steps: WorkerSteps, key: str) -> None:
    names = given(steps, key, 40)

    assert steps("HR.SETTLE", key, "g", "ann", "KEEP", "ACK", 2, names[0], names[5]) == [1, 1]
    others = [*names[1:5], *names[6:]]
    assert steps("HR.SETTLE", key, "g", "ann", "ACK", 38, *others) == [1] * 38
    assert names_in(steps, key) == [names[0], names[5]]


@row
def what_another_group_needs_stays_when_many_go_and_some_were_deleted(steps: WorkerSteps, key: str) -> None:
    names = given(steps, key, 40)
    steps("XGROUP", "CREATE", key, "h", "0")
    steps("XREADGROUP", "GROUP", "h", "eve", "STREAMS", key, ">")
    steps("XACK", key, "h", *names[1:38])
    steps("HR.SETTLE", key, "g", "ann", "ACK", 3, names[0], *names[38:])
    steps("XDEL", key, *names[1:4])

    assert steps("HR.SETTLE", key, "g", "ann", "ACK", 37, *names[1:38]) == [1] * 37
    assert names_in(steps, key) == [names[0], *names[38:]]


@row
def what_was_kept_stays_when_many_go_and_as_many_were_deleted(steps: WorkerSteps, key: str) -> None:
    names = given(steps, key, 40)
    steps("HR.SETTLE", key, "g", "ann", "KEEP", "ACK", 2, names[0], names[5])
    steps("XDEL", key, names[10], names[39])  # One that is settled below, and one that stays pending.

    others = [*names[1:5], *names[6:39]]
    assert steps("HR.SETTLE", key, "g", "ann", "ACK", len(others), *others) == [1] * len(others)
    assert names_in(steps, key) == [names[0], names[5]]


# Adding with an acknowledgement


@row
def what_an_acknowledgement_adds_comes_with_it(steps: WorkerSteps, key: str) -> None:
    names = given(steps, key, 3)
    one, other = f"one{{{key}}}", f"other{{{key}}}"

    words = ("ADD", one, "FIELDS", 4, "a", b"\x00\r\n", "a", "", "ADD", other, "FIELDS", 2, "c", "d")
    assert steps("HR.SETTLE", key, "g", "ann", "ACK", 2, *names[:2], *words) == [1, 1]
    [[_, fields]] = steps("XRANGE", one, "-", "+")
    assert fields == [b"a", b"\x00\r\n", b"a", b""]
    assert steps("XLEN", other) == 1
    assert steps("HR.SETTLE", key, "g", "ann", "ACK", 1, names[2], "ADD", key, "FIELDS", 2, "n", "next") == [1]
    [[_, fields]] = steps("XRANGE", key, "-", "+")
    assert fields == [b"n", b"next"]


@row
def nothing_is_added_when_one_of_the_ids_is_not_ours(steps: WorkerSteps, key: str) -> None:
    mine, theirs = given(steps, key, 2), given(steps, key, 1, "bob")
    target = f"next{{{key}}}"
    words = ("ACK", 3, *mine, *theirs, "ADD", target, "FIELDS", 2, "a", "b")

    assert steps("HR.SETTLE", key, "g", "ann", *words) == [0, 0, 0]
    assert steps("EXISTS", target) == 0
    assert len(pending(steps, key)) == 3
    assert steps("HR.SETTLE", key, "g", "ann", *words, "ACK", 1, mine[0]) == [0, 0, 0, 1]
    assert steps("EXISTS", target) == 0


@row
def clauses_are_independent_of_each_other(steps: WorkerSteps, key: str) -> None:
    mine, theirs = given(steps, key, 2), given(steps, key, 1, "bob")
    target = f"next{{{key}}}"
    add = ("ADD", target, "FIELDS", 2, "a")

    reply = steps("HR.SETTLE", key, "g", "ann", "ACK", 1, *theirs, *add, "no", "ACK", 1, mine[0], *add, "yes")
    assert reply == [0, 1]
    assert [entry[1] for entry in steps("XRANGE", target, "-", "+")] == [[b"a", b"yes"]]


# Effects


@row
def effects_happen_with_the_acknowledgement(steps: WorkerSteps, key: str) -> None:
    [name] = given(steps, key, 1)
    text, totals, seen, ranks, log = (f"{word}{{{key}}}" for word in ("text", "totals", "seen", "ranks", "log"))
    steps("SET", text, 41)
    effects = (
        ("INCR", text), ("set", f"other{{{key}}}", b"\x00\xff"), ("HSET", totals, "a", 1, "b", 2),
        ("HINCRBY", totals, "a", 10), ("HDEL", totals, "b"), ("HSETNX", totals, "c", "x"), ("SADD", seen, "m", "n"),
        ("SREM", seen, "n"), ("ZADD", ranks, 1.5, "ann", -2, "bob"), ("ZINCRBY", ranks, 3, "bob"),
        ("ZREM", ranks, "ann"), ("RPUSH", log, "x", "y"), ("LPUSH", log, "w"), ("PEXPIRE", log, LONG_MS),
    )  # fmt: skip
    words = [word for effect in effects for word in ("EFFECT", len(effect), *effect)]

    assert steps("HR.SETTLE", key, "g", "ann", "ACK", 1, name, *words) == [1]
    assert steps("GET", text) == b"42"
    assert steps("GET", f"other{{{key}}}") == b"\x00\xff"
    assert sorted(steps("HGETALL", totals)) == sorted([b"a", b"11", b"c", b"x"])
    assert steps("SMEMBERS", seen) == [b"m"]
    assert steps("ZRANGE", ranks, 0, -1, "WITHSCORES") == [b"bob", b"1"]
    assert steps("LRANGE", log, 0, -1) == [b"w", b"x", b"y"]
    assert LONG_MS - 60_000 < steps("PTTL", log) <= LONG_MS
    assert steps("HR.SETTLE", key, "g", "ann", "ACK", 1, name, "EFFECT", 2, "INCR", text) == [0]
    assert steps("GET", text) == b"42"


@row
def no_effect_happens_when_one_of_the_ids_is_not_ours(steps: WorkerSteps, key: str) -> None:
    mine, theirs = given(steps, key, 2), given(steps, key, 1, "bob")
    text = f"text{{{key}}}"
    steps("SET", text, "no number")
    words = ("ACK", 2, mine[0], *theirs, "EFFECT", 3, "SET", text, "5")

    assert steps("HR.SETTLE", key, "g", "ann", *words) == [0, 0]
    assert steps("GET", text) == b"no number"
    # What does not happen does not count for what follows either.
    refused = ErrorReply("ERR value is not an integer or out of range")
    assert steps("HR.SETTLE", key, "g", "ann", *words, "ACK", 1, mine[1], "EFFECT", 2, "INCR", text) == refused
    assert len(pending(steps, key)) == 3


@row
def numbers_are_followed_through_the_effects(steps: WorkerSteps, key: str) -> None:
    names = given(steps, key, 3)
    text, totals = f"text{{{key}}}", f"totals{{{key}}}"
    steps("SET", text, "abc")

    words = ("EFFECT", 3, "SET", text, "7", "EFFECT", 3, "DECRBY", text, "10", "EFFECT", 3, "SETNX", text, "x")
    assert steps("HR.SETTLE", key, "g", "ann", "ACK", 1, names[0], *words, "EFFECT", 2, "DECR", text) == [1]
    assert steps("GET", text) == b"-4"
    steps("HSET", totals, "a", "abc", "b", "1")
    words = ("EFFECT", 4, "HDEL", totals, "a", "b", "EFFECT", 4, "HINCRBY", totals, "a", "-3")
    assert steps("HR.SETTLE", key, "g", "ann", "ACK", 1, names[1], *words) == [1]
    assert steps("HGETALL", totals) == [b"a", b"-3"]
    words = ("EFFECT", 4, "HSETNX", totals, "b", "x", "EFFECT", 4, "HINCRBY", totals, "b", "1")
    refused = ErrorReply("ERR hash value is not an integer")
    assert steps("HR.SETTLE", key, "g", "ann", "ACK", 1, names[2], *words) == refused
    assert steps("HGETALL", totals) == [b"a", b"-3"]


@row
def an_effect_that_could_fail_refuses_the_whole_step(steps: WorkerSteps, key: str) -> None:
    [name] = given(steps, key, 1)
    text, totals, big, target = (f"{word}{{{key}}}" for word in ("text", "totals", "big", "next"))
    steps("SET", text, "abc")
    steps("SET", big, 2**53 - 1)
    steps("HSET", totals, "a", "abc")
    good = ("ACK", 1, name, "EFFECT", 3, "SADD", f"seen{{{key}}}", "m", "ADD", target, "FIELDS", 2, "a", "b")
    number, overflow = "ERR value is not an integer or out of range", "ERR increment or decrement would overflow"
    one_type = "ERR the effects on one key must be of one type, and DEL stands alone"
    own = "ERR an effect must not name a key that the step itself uses"
    bad_count = "ERR EFFECT must be followed by the number of its words, 2 to 1000, and by as many words"

    for effects, error in (
        ([("INCR", text)], number),
        ([("INCR", totals)], WRONG_TYPE.text),
        ([("SET", totals, "x")], WRONG_TYPE.text),
        ([("INCRBY", f"new{{{key}}}", "x")], number),
        ([("INCR", big)], overflow),
        ([("DECRBY", f"new{{{key}}}", 2**53 + 2)], overflow),
        ([("HINCRBY", totals, "a", 1)], "ERR hash value is not an integer"),
        ([("HSET", totals, "a")], "ERR wrong number of words for EFFECT HSET"),
        ([("HSET", totals, "a", "b", "c")], "ERR wrong number of words for EFFECT HSET"),
        ([("SET", text, "x", "NX")], "ERR wrong number of words for EFFECT SET"),
        ([("ZADD", f"new{{{key}}}", "high", "m")], "ERR value is not a valid float"),
        ([("ZADD", f"new{{{key}}}", "1e-999", "m")], "ERR value is not a valid float"),
        ([("ZADD", f"new{{{key}}}", "1e300", "m")], "ERR a score is too large for an effect"),
        ([("ZADD", f"new{{{key}}}", "inf", "m")], "ERR value is not a valid float"),
        ([("PEXPIRE", text, 0)], overflow),
        ([("PEXPIRE", text, "soon")], number),
        ([("DEL", text), ("SET", text, "x")], one_type),
        ([("PERSIST", text), ("DEL", text)], one_type),
        ([("SADD", f"new{{{key}}}", "x"), ("RPUSH", f"new{{{key}}}", "x")], one_type),
        ([("DEL", key)], own),
        ([("DEL", target)], own),
        ([("DEL", group_keys(key, "g").due)], own),
    ):
        words = [word for effect in effects for word in ("EFFECT", len(effect), *effect)]
        assert steps("HR.SETTLE", key, "g", "ann", *good, *words) == ErrorReply(error), effects
    assert steps("HR.SETTLE", key, "g", "ann", *good, "EFFECT", 3, "INCR", text) == ErrorReply(bad_count)
    assert steps("HR.SETTLE", key, "g", "ann", *good, "EFFECT", 1, "INCR", text) == ErrorReply(bad_count)
    assert steps("HR.SETTLE", key, "g", "ann", "RETRY", name, 0, 1, "e", "EFFECT", 2, "INCR", text) == SYNTAX
    refused = steps("HR.SETTLE", key, "g", "ann", *good, "EFFECT", 2, "FLUSHALL", text)
    assert refused.text.startswith("ERR EFFECT cannot be FLUSHALL; possible are DECR, DECRBY, DEL, HDEL,")
    assert steps("EXISTS", target, f"seen{{{key}}}", f"new{{{key}}}") == 0
    assert (steps("GET", text), len(pending(steps, key))) == (b"abc", 1)
