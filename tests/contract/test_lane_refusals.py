"""LANE.* on every deployment: what is refused, and with which words. Commands and functions say the same."""

from __future__ import annotations

from typing import Any

import pytest

from headrace.client.lane_steps import call
from headrace.errors import CommandError
from support.ordered import Lanes

pytestmark = pytest.mark.any_socket

SYNTAX = "syntax error"
BAD_LEASE = "LEASE is not a positive number of milliseconds"
BAD_NAMES = "KEYFIELDS must be followed by a number, 1 to 64, and by as many names"
BAD_KEYS = "the number of keys must be from 0 to 1000, with a key and its fence for each"
BAD_DONE = "DONE must be followed by a key, its fence, the number of IDs, 1 or more, and as many IDs"
NOT_FOR_CONSUMERS = "this name is not for consumers: choose another"

# ANN stands for a consumer that is registered, and its session.
ROWS = [
    ("CONFIG", "KEYFIELDS 0 k", BAD_NAMES),
    ("CONFIG", "KEYFIELDS 3 k", BAD_NAMES),
    ("CONFIG", "KEYFIELDS x k", BAD_NAMES),
    ("CONFIG", "POISON SKIP LEASE 5", SYNTAX),
    ("CONFIG", "KEYFIELDS 1 k POISON", SYNTAX),
    ("CONFIG", "KEYFIELDS 1 k POISON FISH", SYNTAX),
    ("CONFIG", "KEYFIELDS 1 k LEASE 5 LEASE 5", SYNTAX),
    ("CONFIG", "KEYFIELDS 1 k LEASE 0", BAD_LEASE),
    ("CONFIG", "KEYFIELDS 1 k MAXATTEMPTS -1", "MAXATTEMPTS is not a number of attempts, or 0 for no limit"),
    ("CONFIG", "KEYFIELDS 1 k READER lanes", "READER must be a consumer's name other than 'lanes'"),
    ("REGISTER", "master", NOT_FOR_CONSUMERS),
    ("REGISTER", "lanes", NOT_FOR_CONSUMERS),
    ("REGISTER", "eve CAPACITY 0", "CAPACITY must be from 1 to 1000000"),
    ("REGISTER", "eve CAPACITY 1 CAPACITY 1", SYNTAX),
    ("REGISTER", "eve HEALTH", SYNTAX),
    ("TAKE", "ANN LEASE 0 KEYS 1 RUN 1", BAD_LEASE),
    ("TAKE", "ANN LEASE 9 KEYS 1001 RUN 1", "KEYS must be from 1 to 1000"),
    ("TAKE", "ANN LEASE 9 KEYS 1 RUN x", "RUN must be from 1 to 1000"),
    ("TAKE", "ANN LEASE 9 KEYS 1 RUN 1 LIMIT 0", "LIMIT must be from 1 to 1000"),
    ("TAKE", "ANN LEASE 9 KEYS 1 RUN 1 LIMIT", SYNTAX),
    ("TAKE", "ANN LEASE 9 KEYS 1 RUN 1 MOST 1", SYNTAX),
    ("TAKE", "ANN LEASE 9 RUN 1 KEYS 1", SYNTAX),
    ("EXTEND", "ANN LEASE x 0", BAD_LEASE),
    ("EXTEND", "ANN LEASE 9 ONLY", SYNTAX),
    ("EXTEND", "ANN LEASE 9 1001", BAD_KEYS),
    ("EXTEND", "ANN LEASE 9 2 a 1 b", BAD_KEYS),
    ("SETTLE", "DONE a 1 0 1-0", BAD_DONE),
    ("SETTLE", "DONE a 1 2 1-0", BAD_DONE),
    ("SETTLE", "DONE a 1 1 never", "Invalid stream ID specified as stream command argument"),
    ("SETTLE", "FAIL a 1 1-0 -5 x", "the delay of FAIL is not a number of milliseconds"),
    ("SETTLE", "BACK a 1 BACK a 2", "one clause per key is possible in one call"),
    ("SETTLE", "LOSE a 1 x", SYNTAX),
    ("PARK", "a ERROR", SYNTAX),
    ("RESUME", "a JUMP", SYNTAX),
    ("INFO", "KEY", SYNTAX),
]


@pytest.mark.parametrize(("step", "words", "error"), ROWS, ids=lambda value: str(value)[:40])
def test_commands_and_functions_refuse_with_the_same_words(lanes: Lanes, step: str, words: str, error: str) -> None:
    lanes.add("a")
    lanes.session("ann")

    with pytest.raises(CommandError) as refused:
        ask(lanes, step, words)

    assert str(refused.value).removeprefix("ERR ") == error
    assert lanes.pending() == []


@pytest.mark.parametrize(("step", "words"), [("SETTLE", "BACK a x"), ("EXTEND", "ANN LEASE 9 1 a x")])
def test_what_is_no_fence_holds_nothing(lanes: Lanes, step: str, words: str) -> None:
    lanes.add("a")
    lanes.grants("ann")

    assert ask(lanes, step, words) == [0]


def ask(lanes: Lanes, step: str, words: str) -> Any:
    ann = f"ann {lanes.session('ann')}"
    facts = getattr(lanes.client, "target", lanes.client)._facts
    return lanes.client.run(
        call(facts, step, lanes.order, tuple(words.replace("ANN", ann).split()), lambda reply: reply)
    )
