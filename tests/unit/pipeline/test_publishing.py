"""The fence of the stream sink, and how rows are cut into chunks."""

import pytest

from headrace.errors import HeadraceError
from headrace.pipeline.publishing import Fence, decode_fence
from headrace.pipeline.staging import CHUNK_BYTES, CHUNK_ENTRIES, Part, pack_chunks, unpack_chunk


def test_a_fence_goes_chunk_by_chunk_through_its_parts_and_ends_with_the_batch_alone() -> None:
    fence = Fence(8, (Part("a", 2), Part("b", 1)))
    steps = []
    while not fence.is_done:
        steps.append((fence.part, fence.chunk))
        fence = fence.after_chunk()

    assert steps == [(0, 0), (0, 1), (1, 0)]
    assert fence == Fence(8)
    assert fence.encode() == b'{"batch":8}'


@pytest.mark.parametrize("fence", [Fence(0), Fence(8, (Part("a", 2), Part("b", 1)), 1, 0)])
def test_a_fence_reads_back_as_it_was_written(fence: Fence) -> None:
    assert decode_fence(fence.encode(), "key") == fence


@pytest.mark.parametrize("stored", [b"", b"17", b'{"batch":"x"}'])
def test_a_fence_that_somebody_changed_is_not_guessed_at(stored: bytes) -> None:
    with pytest.raises(HeadraceError, match="does not hold what the stream sink left"):
        decode_fence(stored, "key")


def test_chunks_are_cut_by_count_and_by_bytes_and_keep_the_order() -> None:
    many = [[b"n", str(number).encode()] for number in range(2 * CHUNK_ENTRIES + 1)]
    large = [[b"n", bytes(CHUNK_BYTES // 2)] for _ in range(3)] + [[b"n", bytes(3 * CHUNK_BYTES)]]

    assert [chunk.entries for chunk in pack_chunks(many)] == [CHUNK_ENTRIES, CHUNK_ENTRIES, 1]
    assert [words for chunk in pack_chunks(many) for words in unpack_chunk(chunk.packed)] == many
    assert [chunk.entries for chunk in pack_chunks(large)] == [1, 1, 1, 1]
    assert list(pack_chunks([])) == []
