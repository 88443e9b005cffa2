"""A walk misses nothing that stays, however names come and go and however many walk at once."""

from __future__ import annotations

from random import Random

import pytest

from headrace.engine.scan import COPY_MASK, MAX_ORDERS, Orders, is_younger
from headrace.engine.set_order import STEP


class Walk:
    """One walker, and what was there all the time since it began."""

    def __init__(self, names: dict[bytes, int] | set[bytes]) -> None:
        self.staying = set(names)
        self.met: set[bytes] = set()
        self.cursor = 0
        self.is_over = False

    def step(self, orders: Orders, names: dict[bytes, int] | set[bytes], count: int) -> None:
        self.cursor, page = orders.page(None, names, self.cursor, count)
        self.met.update(page)
        self.is_over = self.cursor == 0


@pytest.mark.parametrize("kind", ["dict", "set"])
@pytest.mark.parametrize("step", [1, 40, STEP])
@pytest.mark.parametrize("seed", range(20))
def test_what_stays_is_met_by_every_walk(kind: str, step: int, seed: int) -> None:
    random = Random(seed)
    names: dict[bytes, int] | set[bytes] = {} if kind == "dict" else set()
    orders = Orders()
    orders.step = step
    walks: list[Walk] = []
    for number in range(400):
        name = b"%d" % random.randrange(120)
        if random.randrange(5) < 3:
            if isinstance(names, dict):
                names[name] = number
            else:
                names.add(name)
        elif name in names:
            if isinstance(names, dict):
                del names[name]
            else:
                names.discard(name)
            for walk in walks:
                walk.staying.discard(name)
        if random.randrange(8) == 0:
            walks.append(Walk(names))
        if walks and random.randrange(2):
            walk = random.choice(walks)
            walk.step(orders, names, random.choice([1, 3, 10]))
            if walk.is_over:
                assert walk.staying <= walk.met
                walks.remove(walk)
        if random.randrange(30) == 0:
            orders.clear()
    for walk in walks:
        while not walk.is_over:
            walk.step(orders, names, 7)
        assert walk.staying <= walk.met


def test_no_name_of_a_quiet_dict_comes_twice_and_the_newest_comes_first() -> None:
    names = {b"%d" % number: number for number in range(100)}
    orders = Orders()
    cursor, found = orders.page(None, names, 0, 9)
    assert set(found) == {b"%d" % number for number in range(91, 100)}
    while cursor:
        cursor, page = orders.page(None, names, cursor, 9)
        found += page
    assert len(found) == 100 == len(set(found))
    assert not orders.by_key


def test_a_walk_copies_the_names_once_and_not_for_its_first_page() -> None:
    names = {b"%d" % number: number for number in range(1000)}
    orders = Orders()
    for _ in range(5):
        cursor, _page = orders.page(None, names, 0, 10)
    assert orders.copies == 0
    while cursor:
        cursor, _page = orders.page(None, names, cursor, 10)
    assert orders.copies == 1


def test_copies_are_few() -> None:
    orders = Orders()
    for number in range(100):
        names = {b"%d" % name: number for name in range(50)}
        key = b"%d" % number
        cursor, _page = orders.page(key, names, 0, 10)
        orders.page(key, names, cursor, 10)
        assert len(orders.by_key) <= MAX_ORDERS


@pytest.mark.parametrize(
    ("number", "began", "younger"),
    [(1, 0, True), (0, 0, False), (3, 5, False), (0, COPY_MASK, True), (COPY_MASK, 0, False), (COPY_MASK, 1, False)],
)
def test_the_numbers_of_copies_go_round(number: int, began: int, younger: bool) -> None:
    assert is_younger(number, began) == younger


def test_a_large_set_is_put_in_order_in_steps_before_the_first_members_come() -> None:
    names = {b"%d" % number for number in range(1000)}
    orders = Orders()
    orders.step = 100
    cursors: list[int] = []
    pages: list[list[bytes]] = []
    cursor, page = orders.page(b"key", names, 0, 50)
    while cursor:
        cursors.append(cursor)
        pages.append(page)
        cursor, page = orders.page(b"key", names, cursor, 50)

    assert [len(page) for page in pages[:9]] == [0] * 9
    assert [len(page) for page in pages[9:]] == [50] * 19
    assert sorted(name for found in [*pages, page] for name in found) == sorted(names)
    assert not orders.preparing


def test_many_who_walk_over_one_large_set_all_come_to_an_end() -> None:
    names = {b"%d" % number for number in range(300)}
    orders = Orders()
    orders.step = 10
    walks = [Walk(names) for _ in range(50)]
    calls = 0
    while walks:
        for walk in list(walks):
            calls += 1
            walk.step(orders, names, 20)
            if walk.is_over:
                assert walk.met == names
                walks.remove(walk)

    assert calls < 50 * 200


def test_many_who_walk_over_large_sets_of_their_own_all_come_to_an_end() -> None:
    orders = Orders()
    orders.step = 10
    sets = {b"%d" % key: {b"%d" % number for number in range(300)} for key in range(3 * MAX_ORDERS)}
    cursors = dict.fromkeys(sets, 0)
    met: dict[bytes, set[bytes]] = {key: set() for key in sets}
    for _ in range(500):
        for key in list(cursors):
            cursors[key], page = orders.page(key, sets[key], cursors[key], 20)
            met[key].update(page)
            if cursors[key] == 0:
                del cursors[key]
        assert len(orders.preparing) <= MAX_ORDERS and len(orders.ready) <= MAX_ORDERS

    assert not cursors
    assert met == sets


def test_members_that_share_a_checksum_all_come() -> None:
    alike = {b"plumless", b"buckeroo", b""}  # Two of one CRC-32, and the one whose CRC-32 is 0.
    names = {b"%d" % number for number in range(500)} | alike
    orders = Orders()
    met: set[bytes] = set()
    cursor, page = orders.page(b"key", names, 0, 1)
    met.update(page)
    while cursor:
        cursor, page = orders.page(b"key", names, cursor, 1)
        met.update(page)

    assert met == names
