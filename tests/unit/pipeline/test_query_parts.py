"""The parts of a query that need no Spark: slices that filters narrow, names in SQL, names of columns."""

from pathlib import Path

import numpy as np
import pytest

from headrace.errors import ConfigError
from headrace.pipeline.filters import Narrowing
from headrace.pipeline.ranges import Slice
from headrace.pipeline.results import find_writer, unique_names
from headrace.pipeline.seam import LivePart, Seen, narrow
from headrace.pipeline.views import parse_sentence, quoted, sentence_of, spellings

PART = LivePart(Slice("orders", "100-5", "200-5"), "lake")


@pytest.mark.parametrize(
    ("narrowing", "after", "through"),
    [
        (Narrowing(), "100-5", "200-5"),
        (Narrowing(low_ms=150), "149-18446744073709551615", "200-5"),
        (Narrowing(high_ms=150), "100-5", "150-18446744073709551615"),
        (Narrowing(streams={"orders", "others"}, low_ms=50, high_ms=500), "100-5", "200-5"),
    ],
)
def test_filters_narrow_a_slice_and_the_archive_beside_it_stays(narrowing: Narrowing, after: str, through: str) -> None:
    assert narrow(PART, narrowing) == LivePart(Slice("orders", after, through), "lake")


@pytest.mark.parametrize("narrowing", [Narrowing(low_ms=201), Narrowing(high_ms=99), Narrowing(streams={"others"})])
def test_a_slice_that_cannot_match_is_not_read(narrowing: Narrowing) -> None:
    assert narrow(PART, narrowing) is None


def test_ids_that_were_seen_are_told_from_those_that_were_not() -> None:
    seen = Seen()
    seen.add(np.array([1, 1, 256], np.uint64), np.array([0, 2**64 - 1, 0], np.uint64))
    seen.add(np.array([2**64 - 1], np.uint64), np.array([256], np.uint64))

    ms = np.array([0, 1, 1, 1, 256, 2**64 - 1, 2**64 - 1], np.uint64)
    seq = np.array([0, 0, 1, 2**64 - 1, 0, 256, 257], np.uint64)

    assert seen.unseen(ms, seq).tolist() == [True, False, True, False, False, False, True]
    assert Seen().unseen(ms, seq).all()


def test_other_spellings_of_a_name_are_found() -> None:
    assert spellings("select * from Orders join orders on ORDERS.id = 1", "orders") == {"Orders", "ORDERS"}
    assert spellings("select * from `a.b`", "a.b") == set()


def test_a_name_is_quoted_for_sql() -> None:
    assert quoted("we`ird") == "`we``ird`"


@pytest.mark.parametrize(
    ("names", "unique"),
    [
        (["id", "id", "id"], ["id", "id_2", "id_3"]),
        (["id", "id_2", "id"], ["id", "id_2", "id_3"]),
        (["a", "b"], ["a", "b"]),
    ],
)
def test_columns_of_one_name_get_numbers(names: list[str], unique: list[str]) -> None:
    assert unique_names(names) == unique


def test_what_spark_says_becomes_one_sentence() -> None:
    text = "[A.B_C] No such column `x`. Did you mean `y`? SQLSTATE: 42703; line 1 pos 7;\n'Project ['x]\n+- Range"

    assert sentence_of(ValueError(text)) == "No such column `x`. Did you mean `y`? (line 1, column 8)."


def test_sql_that_stumbles_over_a_sign_is_told_how_to_write_names_of_streams() -> None:
    at_a_sign = parse_sentence(
        ValueError("[PARSE_SYNTAX_ERROR] Syntax error at or near ':'. SQLSTATE: 42601 (line 1, pos 20)")
    )
    at_a_word = parse_sentence(
        ValueError("[PARSE_SYNTAX_ERROR] Syntax error at or near 'selec'. SQLSTATE: 42601 (line 1, pos 0)")
    )

    hint = " Names of streams with signs in them stand in backticks: `orders:eu`."
    assert at_a_sign == "Syntax error at or near ':' (line 1, column 21)." + hint
    assert at_a_word == "Syntax error at or near 'selec' (line 1, column 1)."


def test_a_file_that_cannot_be_made_is_refused_before_anything_runs(tmp_path: Path) -> None:
    (tmp_path / "rows.csv").mkdir()

    with pytest.raises(ConfigError, match="there is no folder"):
        find_writer(tmp_path / "nowhere" / "rows.csv")
    with pytest.raises(ConfigError, match="it is a folder"):
        find_writer(tmp_path / "rows.csv")
