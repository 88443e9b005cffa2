"""What ends gathers while a call is under way; a whole call of it does not wait."""

import asyncio
from types import SimpleNamespace

import pytest

from headrace.worker.counters import Counters
from headrace.worker.settling import MOST, Settler


class HeldUpSettler(Settler):
    """Its calls are answered when the test says so."""

    def __init__(self):
        self.acked_ids = []
        source = SimpleNamespace(stream="orders", group="billing")
        super().__init__(source, None, Counters(), self.take_acked, None, None, keep=False)
        self.calls = []

    def take_acked(self, source, deliveries):
        self.acked_ids += [delivery.id for delivery in deliveries]

    async def call(self, clauses):
        answer = asyncio.get_running_loop().create_future()
        self.calls.append(([entry_id for clause in clauses for entry_id in clause.ids], answer))
        return await answer

    def answer(self, place):
        ids, answer = self.calls[place]
        answer.set_result([True] * len(ids))

    @property
    def sizes(self):
        return [len(ids) for ids, _ in self.calls]


@pytest.fixture
def settler():
    return HeldUpSettler()


def deliveries(count, first=0):
    return [SimpleNamespace(id=f"{number}-0", stream="orders") for number in range(first, first + count)]


async def turns():
    for _ in range(5):
        await asyncio.sleep(0)


def test_what_ends_while_a_call_is_under_way_goes_with_the_next(settler):
    async def program():
        for delivery in deliveries(3):
            settler.ack(delivery)
        await turns()
        settler.ack_all(deliveries(2, first=3))
        await turns()
        assert settler.sizes == [3]
        settler.answer(0)
        await turns()
        settler.answer(1)
        await settler.flush()

    asyncio.run(program())
    assert settler.sizes == [3, 2]
    assert settler.acked_ids == ["0-0", "1-0", "2-0", "3-0", "4-0"]


def test_a_whole_batch_goes_while_another_call_is_under_way_and_a_third_waits(settler):
    async def program():
        for first in (0, MOST, 2 * MOST):
            settler.ack_all(deliveries(MOST, first))
            await turns()
        settler.ack_all(deliveries(1, first=3 * MOST))
        await turns()
        assert settler.sizes == [MOST, MOST]
        settler.answer(1)
        await turns()
        assert settler.sizes == [MOST, MOST, MOST]
        settler.answer(2)
        await turns()
        assert settler.sizes == [MOST, MOST, MOST]  # The one that is left gathers until the first is answered.
        settler.answer(0)
        await turns()
        settler.answer(3)
        await settler.flush()

    asyncio.run(program())
    assert settler.sizes == [MOST, MOST, MOST, 1]
    assert len(set(settler.acked_ids)) == 3 * MOST + 1


def test_nothing_is_sent_when_all_of_a_batch_was_settled_before(settler):
    async def program():
        settler.ack_all([])
        await turns()
        assert not settler.tasks

    asyncio.run(program())
    assert settler.sizes == []
