"""Spans are cut into slices that together are the span, each entry in one of them."""

import random
from itertools import pairwise

import pytest

from headrace.pipeline.entry_ids import MAX_PART, id_of, text_of
from headrace.pipeline.ranges import (
    Extent,
    Slice,
    Span,
    cut_spans,
    estimate_entries,
    place_end,
    place_end_by_sequence,
    share_slices,
)

NOW_MS = 1_690_275_391_705


def ids(*texts: str) -> list[int]:
    return [id_of(text) for text in texts]


def span(first: str, last: str, length: int, after: str = "0-0", through: str | None = None) -> Span:
    extent = Extent(id_of(first), id_of(last), length)
    return Span("orders", id_of(after), id_of(through or last), extent, max(id_of(first), id_of(after) + 1))


def bounds(slices: list[Slice]) -> list[tuple[str, str]]:
    return [(piece.after, piece.through) for piece in slices]


def test_a_small_span_is_one_slice() -> None:
    slices = cut_spans([span("1000-0", "9000-0", 100)], cores=8)

    assert bounds(slices) == [("0-0", "9000-0")]


def test_a_large_span_is_cut_evenly_by_time() -> None:
    slices = cut_spans([span("1000-0", "4999-7", 200_000)], cores=8)

    assert bounds(slices) == [
        ("0-0", f"1999-{MAX_PART}"),
        (f"1999-{MAX_PART}", f"2999-{MAX_PART}"),
        (f"2999-{MAX_PART}", f"3999-{MAX_PART}"),
        (f"3999-{MAX_PART}", "4999-7"),
    ]


def test_ids_that_are_no_times_are_cut_by_their_second_half() -> None:
    slices = cut_spans([span("0-1", "0-1000000", 1_000_000)], cores=1)

    assert bounds(slices) == [
        ("0-0", "0-250000"), ("0-250000", "0-500000"), ("0-500000", "0-750000"), ("0-750000", "0-1000000"),
    ]  # fmt: skip


def test_entries_of_one_millisecond_are_cut_by_their_second_half() -> None:
    slices = cut_spans([span(f"{NOW_MS}-0", f"{NOW_MS}-199999", 200_000)], cores=1)

    assert [piece.through for piece in slices] == [f"{NOW_MS}-{end}" for end in (49999, 99999, 149999, 199999)]


def test_only_what_lies_behind_the_position_counts() -> None:
    slices = cut_spans([span("1000-0", "4999-7", 400_000, after="3999-0")], cores=8)

    assert len(slices) == 3
    assert slices[0].after == "3999-0" and slices[-1].through == "4999-7"


def test_there_are_no_more_slices_than_the_cores_can_use() -> None:
    assert len(cut_spans([span("1000-0", "900000-0", 50_000_000)], cores=2)) == 8


def test_min_partitions_makes_more_slices_of_a_small_span() -> None:
    assert len(cut_spans([span("1000-0", "9000-0", 100)], cores=2, min_partitions=16)) == 16
    assert len(cut_spans([span("1000-0", "1002-0", 3)], cores=2, min_partitions=16)) == 3


def test_a_span_without_entries_is_still_one_slice() -> None:
    empty = Span("orders", id_of("5-0"), id_of("9-0"), Extent(id_of("9-0"), id_of("9-0"), 0))

    assert bounds(cut_spans([empty], cores=2)) == [("5-0", "9-0")]


def test_several_streams_share_the_cores_by_size_and_each_has_a_slice() -> None:
    assert share_slices([10, 1_000_000, 3_000_000], cores=4) == [1, 3, 11]
    assert share_slices([1] * 100, cores=2) == [1] * 100
    assert share_slices([100, 300], cores=2, min_partitions=8) == [2, 6]


def test_each_slice_knows_what_the_stream_must_still_begin_with() -> None:
    whole = Span(
        "orders", id_of("5-0"), id_of("8-0"), Extent(id_of("1-0"), id_of("9-0"), 9), id_of("6-0"), id_of("2-0")
    )
    slices = cut_spans([whole], cores=1, min_partitions=3)

    assert [piece.first for piece in slices] == ["6-0", f"6-{MAX_PART}", f"7-{MAX_PART}"]
    assert {piece.deleted for piece in slices} == {"2-0"}


@pytest.mark.parametrize("seed", range(200))
def test_any_cut_covers_the_span_once(seed: int) -> None:
    chance = random.Random(seed)
    top_ms = chance.choice([0, 3, 10_000, NOW_MS, MAX_PART])
    top_seq = chance.choice([0, 5, 100_000, MAX_PART])
    first, last = sorted(chance.randint(0, top_ms) << 64 | chance.randint(0, top_seq) for _ in range(2))
    after, through = sorted(chance.randint(max(0, first - 5), last + 1) for _ in range(2))
    through = max(through, after + 1)
    known = chance.choice([None, chance.randint(after + 1, through)])
    extent = Extent(first, last, chance.choice([0, 1, 1000, 10_000_000]))
    slices = cut_spans([Span("orders", after, through, extent, known)], chance.randint(1, 64), chance.choice([None, 7]))

    edges = [id_of(slices[0].after), *(id_of(piece.through) for piece in slices)]
    assert edges[0] == after and edges[-1] == through
    assert all(low < high for low, high in pairwise(edges))
    assert all(one.through == following.after for one, following in pairwise(slices))


# Estimates


def test_an_estimate_spreads_the_length_over_the_milliseconds() -> None:
    extent = Extent(*ids("1000-0", "1999-0"), length=5000)

    assert estimate_entries(extent, *ids("1000-0", "1999-0")) == 5000
    assert estimate_entries(extent, *ids("1500-0", "1999-0")) == 2500
    assert estimate_entries(extent, *ids("1500-0", "99999-0")) == 2500
    assert estimate_entries(extent, *ids("1999-0", "1999-0")) == 1
    assert estimate_entries(extent, *ids("2000-0", "3000-0")) == 0


def test_an_estimate_within_one_millisecond_goes_by_the_second_half() -> None:
    assert estimate_entries(Extent(*ids("0-1", "0-1000"), length=1000), *ids("0-401", "0-1000")) == 600


def test_an_estimate_of_an_empty_stream_is_none() -> None:
    assert estimate_entries(Extent(*ids("9-0", "9-0"), length=0), *ids("1-0", "9-0")) == 0


# Limits


def test_an_end_is_placed_by_density() -> None:
    extent = Extent(*ids("1000-0", "1001000-0"), length=1_000_000)

    end = place_end(extent, id_of("1000-0"), id_of("1999-0"), 1000, 50_000)

    assert text_of(end) == f"51000-{MAX_PART}"


def test_an_end_in_a_burst_goes_by_the_burst() -> None:
    extent = Extent(*ids("1000-0", "1001000-0"), length=1_000_000)

    end = place_end(extent, id_of("1000-0"), id_of("1009-0"), 1000, 50_000)

    assert text_of(end) == f"1500-{MAX_PART}"


def test_an_end_is_never_beyond_the_last_entry_nor_before_what_was_counted() -> None:
    extent = Extent(*ids("1000-0", "2000-0"), length=20_000)

    assert place_end(extent, id_of("1000-0"), id_of("1050-0"), 1000, 30_000) == id_of("2000-0")
    sparse = Extent(*ids("1000-0", "2000-0"), length=1_000_000)
    assert place_end(sparse, id_of("1000-0"), id_of("1900-0"), 1000, 20_000) == id_of("1900-0")


def test_an_end_among_counters_goes_by_the_counter() -> None:
    extent = Extent(*ids("0-1", "0-1000000"), length=1_000_000)

    assert text_of(place_end(extent, id_of("0-1"), id_of("0-1000"), 1000, 50_000)) == "0-49951"
    assert place_end_by_sequence(id_of("7-0"), id_of("7-999"), 1000, 50_000) == id_of("7-49950")
    assert place_end_by_sequence(0, MAX_PART, 1000, 50_000) == MAX_PART
