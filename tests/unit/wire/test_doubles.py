"""Doubles are written as Redis writes them: these texts are its own."""

from __future__ import annotations

from math import inf
from random import Random

import pytest

from headrace.wire.doubles import format_double


def test_every_text_reads_back_as_the_same_number() -> None:
    random = Random(1)
    for _ in range(2000):
        number = random.choice([1.0, -1.0]) * random.random() * 10.0 ** random.randint(-300, 300)
        assert float(format_double(number)) == number


@pytest.mark.parametrize(
    ("number", "text"),
    [
        (0.0, b"0"),
        (-0.0, b"-0"),
        (3.0, b"3"),
        (-17.0, b"-17"),
        (inf, b"inf"),
        (-inf, b"-inf"),
        (0.1, b"0.1"),
        (-2.5, b"-2.5"),
        (1e20, b"1e+20"),
    ],
)
def test_texts(number: float, text: bytes) -> None:
    assert format_double(number) == text
