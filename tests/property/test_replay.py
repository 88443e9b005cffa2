"""Memory can be made again from the records alone.

Random commands run with a journal; the records, read back as the journal would, are applied to an empty state. Both
must then hold the same, byte by byte. Only when a consumer was last seen, and how often a repeated message was
answered, are not worth a record.
"""

from __future__ import annotations

from collections.abc import Callable

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from support.random_commands import Command
from support.random_lane_steps import LaneSession, lane_command_of
from support.random_sessions import RandomSession, command_of, set_command_of
from support.random_worker_steps import worker_command_of
from support.replay import contents_of, state_of


def check(
    parts: list[tuple[int, list[int]]],
    maker: Callable[[int], Command] = command_of,
    kind: type[RandomSession] = RandomSession,
) -> None:
    session = kind()
    for wait_ms, numbers in parts:
        session.wait(wait_ms)
        for number in numbers:
            session.send(maker(number))
    session.finish()
    state = session.broker.state
    state.note_expired()  # Also what a refused command met.
    assert contents_of(state_of(state.records)) == contents_of(state), session.sent


PARTS = st.lists(
    st.tuples(st.sampled_from([0, 0, 1, 2500, -2500]), st.lists(st.integers(0, 2**32 - 1), max_size=12)), max_size=12
)


@settings(max_examples=400)
@given(PARTS)
def test_the_records_alone_make_the_same_memory(parts: list[tuple[int, list[int]]]) -> None:
    check(parts)


@settings(max_examples=200)
@given(PARTS)
def test_the_records_of_sets_and_sorted_sets_make_the_same_memory(parts: list[tuple[int, list[int]]]) -> None:
    check(parts, set_command_of)


@settings(max_examples=200)
@given(PARTS)
def test_the_records_of_worker_steps_make_the_same_memory(parts: list[tuple[int, list[int]]]) -> None:
    check(parts, worker_command_of)


@settings(max_examples=300)
@given(PARTS)
def test_the_records_of_order_per_key_make_the_same_memory(parts: list[tuple[int, list[int]]]) -> None:
    check(parts, lane_command_of, LaneSession)


@pytest.mark.long
@settings(max_examples=20_000)
@given(PARTS)
def test_the_records_of_order_per_key_make_the_same_memory_in_many_sessions(
    parts: list[tuple[int, list[int]]],
) -> None:
    check(parts, lane_command_of, LaneSession)


@pytest.mark.long
@settings(max_examples=20_000)
@given(PARTS)
def test_the_records_of_worker_steps_make_the_same_memory_in_many_sessions(
    parts: list[tuple[int, list[int]]],
) -> None:
    check(parts, worker_command_of)


@pytest.mark.long
@settings(max_examples=20_000)
@given(PARTS)
def test_the_records_of_sets_and_sorted_sets_make_the_same_memory_in_many_sessions(
    parts: list[tuple[int, list[int]]],
) -> None:
    check(parts, set_command_of)


@pytest.mark.long
@settings(max_examples=20_000)
@given(PARTS)
def test_the_records_alone_make_the_same_memory_in_many_sessions(parts: list[tuple[int, list[int]]]) -> None:
    check(parts)
