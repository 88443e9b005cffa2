"""Patterns for names."""

from __future__ import annotations

import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from headrace.engine.glob import MAX_STARS, Glob


@pytest.mark.parametrize(
    ("pattern", "text", "expected"),
    [
        (b"*", b"", True),
        (b"", b"", True),
        (b"", b"a", False),
        (b"orders:*", b"orders:1", True),
        (b"orders:*", b"order:1", False),
        (b"h?llo", b"hello", True),
        (b"h?llo", b"hllo", False),
        (b"h[ae]llo", b"hallo", True),
        (b"h[^e]llo", b"hello", False),
        (b"h[a-c]llo", b"hbllo", True),
        (b"h[c-a]llo", b"hbllo", True),
        (b"h[a-]llo", b"h-llo", False),  # Quirk of Redis: the range is "a" to "]", and the class goes on.
        (b"[a\\]]", b"]", True),
        (b"[abc", b"c", True),
        (b"\\*", b"*", True),
        (b"\\*", b"a", False),
        (b"a\\", b"a\\", True),
        (b"*a*b*c", b"xxaxxbxxc", True),
        (b"*a*b*c", b"xxaxxbxx", False),
        (b"a**b", b"ab", True),
        (b"HELLO", b"hello", False),
    ],
)
def test_patterns_match_as_in_redis(pattern: bytes, text: bytes, expected: bool) -> None:
    assert Glob(pattern).matches(text) is expected


def test_case_can_be_ignored() -> None:
    assert Glob(b"MAX*", ignores_case=True).matches(b"maxclients")
    assert Glob(b"max[C]lients", ignores_case=True).matches(b"MAXCLIENTS")


def test_a_hostile_pattern_ends_soon() -> None:
    assert not Glob(b"*a" * 500 + b"b").matches(b"a" * 2000)
    assert not Glob(b"*?" * (MAX_STARS + 1)).matches(b"a" * 5000)


@given(st.text(alphabet="ab*?", max_size=8), st.text(alphabet="ab", max_size=10))
def test_stars_and_question_marks_agree_with_regular_expressions(pattern: str, text: str) -> None:
    wanted = re.fullmatch(pattern.replace("*", ".*").replace("?", "."), text) is not None
    assert Glob(pattern.encode()).matches(text.encode()) is wanted
