"""Offsets as Spark keeps them, and what tells that entries went before they were read."""

import json

import pytest

from headrace.errors import ConfigError
from headrace.pipeline.entry_ids import id_of
from headrace.pipeline.offsets import Loss, Mark, StreamFacts, encode_offsets, find_loss, make_mark, parse_offsets


def facts(first: str | None, last: str, length: int, added: int | None, deleted: str = "0-0") -> StreamFacts:
    first_id = None if first is None else id_of(first)
    return StreamFacts("orders", length, first_id, id_of(last), added, id_of(deleted))


def lost(mark: Mark, now: StreamFacts | None) -> Loss | None:
    return find_loss("orders", mark, now)


def mark(position: str, then: StreamFacts, following: str | None = None) -> Mark:
    return make_mark(then, id_of(position), None if following is None else id_of(following))


# The form in the checkpoint


def test_offsets_are_the_last_ids_by_stream_in_the_order_of_names() -> None:
    text = json.dumps(encode_offsets({"b": Mark(id_of("2-1")), "a": Mark(id_of("1-0"))}))

    assert text == '{"a": "1-0", "b": "2-1"}'


def test_offsets_come_back_as_they_were_written() -> None:
    marks = {
        "a": Mark(id_of("9-1"), added=12),
        "b": Mark(id_of("2-1"), next_id=id_of("3-0"), deleted_id=id_of("7-0")),
        "c": Mark(0),
        "d": Mark(id_of("18446744073709551615-18446744073709551615"), is_ahead=True),
        "ä,\n ": Mark(1, added=0),
    }

    assert parse_offsets(json.loads(json.dumps(encode_offsets(marks)))) == marks


def test_the_form_of_the_first_release_stays_readable() -> None:
    text = (
        '{"": {"orders": {"added": 1200}, "parcels": {"next": "1690275391001-0", "deleted": "1690275391500-0"}}, '
        '"orders": "1690275391705-0", "parcels": "1690275391000-3"}'
    )

    assert parse_offsets(json.loads(text)) == {
        "orders": Mark(id_of("1690275391705-0"), added=1200),
        "parcels": Mark(
            id_of("1690275391000-3"), next_id=id_of("1690275391001-0"), deleted_id=id_of("1690275391500-0")
        ),
    }


def test_offsets_written_by_hand_need_only_the_ids() -> None:
    assert parse_offsets({"orders": "5-0"}) == {"orders": Mark(id_of("5-0"))}


@pytest.mark.parametrize(
    "given",
    [
        [],
        "5-0",
        None,
        {"orders": "5"},
        {"orders": "five"},
        {"orders": None},
        {"orders": {"id": "5-0"}},
        {"orders": f"{2**64}-0"},
        {"orders": "5-0", "": []},
        {"orders": "5-0", "": {"orders": 5}},
        {"orders": "5-0", "": {"orders": {"added": "many"}}},
        {"orders": "5-0", "": {"orders": {"added": -1}}},
        {"orders": "5-0", "": {"orders": {"next": "soon"}}},
    ],
)
def test_a_damaged_checkpoint_is_one_sentence(given: object) -> None:
    with pytest.raises(ConfigError) as raised:
        parse_offsets(given)

    assert "the checkpoint is damaged" in str(raised.value) and "new checkpoint" in str(raised.value)


# Lost entries


def test_nothing_is_lost_while_nothing_happens() -> None:
    now = facts("1-0", "9-0", 9, 9)

    assert lost(mark("9-0", now), now) is None
    assert lost(mark("4-0", now, "5-0"), now) is None


def test_entries_that_were_read_may_be_trimmed() -> None:
    at_the_end = mark("9-0", facts("1-0", "9-0", 9, 9))
    in_the_middle = mark("4-0", facts("1-0", "9-0", 9, 9), "5-0")

    assert lost(at_the_end, facts(None, "9-0", 0, 9)) is None
    assert lost(at_the_end, facts("10-0", "12-0", 3, 12)) is None
    assert lost(in_the_middle, facts("5-0", "9-0", 5, 9)) is None


def test_a_trim_beyond_the_position_is_a_loss() -> None:
    at_the_end = mark("9-0", facts("1-0", "9-0", 9, 9))
    in_the_middle = mark("4-0", facts("1-0", "9-0", 9, 9), "5-0")

    found = lost(at_the_end, facts("11-0", "12-0", 2, 12))
    assert found is not None and "1 entries behind 9-0 were trimmed" in found.sentence and not found.is_anew
    found = lost(in_the_middle, facts("6-0", "9-0", 4, 9))
    assert found is not None and "from 5-0 on were trimmed (it begins with 6-0 now)" in found.sentence
    found = lost(in_the_middle, facts(None, "9-0", 0, 9))
    assert found is not None and "empty now" in found.sentence


def test_a_single_deletion_behind_the_position_is_a_loss_and_told_once() -> None:
    then = facts("1-0", "9-0", 9, 9)
    found = lost(mark("4-0", then, "5-0"), facts("1-0", "9-0", 8, 9, deleted="7-0"))

    assert found is not None and "7-0" in found.sentence
    since = facts("1-0", "9-0", 8, 9, deleted="7-0")
    assert lost(mark("5-0", since, "6-0"), since) is None


def test_deletions_before_the_position_or_before_the_query_began_are_none() -> None:
    then = facts("1-0", "9-0", 7, 9, deleted="7-0")

    assert lost(mark("0-0", then, "1-0"), then) is None
    assert lost(mark("9-0", then), facts("1-0", "9-0", 6, 9, deleted="8-0")) is None


def test_a_stream_that_is_gone_or_made_anew_is_a_loss_and_begins_again() -> None:
    then = mark("9-0", facts("1-0", "9-0", 9, 9))

    gone = lost(then, None)
    assert gone is not None and gone.is_anew and "'orders', read up to 9-0, is gone" in gone.sentence
    lower = lost(then, facts("1-0", "3-0", 3, 3))
    assert lower is not None and lower.is_anew and "its last ID is 3-0, below 9-0" in lower.sentence
    fewer = lost(then, facts("10-0", "12-0", 3, 3))
    assert fewer is not None and fewer.is_anew and "made anew" in fewer.sentence


def test_a_query_may_begin_with_an_id_that_the_stream_has_not_reached() -> None:
    ahead = mark("99-0", facts("1-0", "9-0", 9, 9))

    assert lost(ahead, facts("5-0", "12-0", 8, 12)) is None
    assert lost(ahead, None) is not None


def test_a_server_that_counts_nothing_still_tells_of_trims_in_the_middle() -> None:
    then = facts("1-0", "9-0", 9, None)

    assert lost(mark("9-0", then), facts("11-0", "12-0", 2, None)) is None
    assert lost(mark("4-0", then, "5-0"), facts("6-0", "9-0", 4, None)) is not None
