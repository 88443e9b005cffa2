"""Names in SQL become tables; what SQL cannot be run is told in one sentence."""

from __future__ import annotations

from typing import Any

import pytest

from headrace.errors import ConfigError, NotFound
from headrace.pipeline.views import run_sql


class Names:
    """Two rows for each name that is known, and what was asked for."""

    def __init__(self, spark: Any, *known: str) -> None:
        self.spark, self.known = spark, known
        self.asked: list[str] = []

    def __call__(self, name: str) -> Any:
        self.asked.append(name)
        if name not in self.known:
            raise NotFound(f"there is no stream {name!r}.")
        return self.spark.range(2)


@pytest.mark.parametrize(
    ("sql", "asked", "count"),
    [
        ("select * from orders", ["orders"], 2),
        ("with orders as (select 1) select * from orders", [], 1),
        ("with o as (select * from orders) select * from o where id in (select id from `b-c`)", ["b-c", "orders"], 2),
        ("select * from `{o}:x.y` join `we``ird` using (id)", ["we`ird", "{o}:x.y"], 2),
        ("select 1", [], 1),
    ],
)
def test_every_name_that_spark_misses_is_asked_for_once(spark: Any, sql: str, asked: list[str], count: int) -> None:
    names = Names(spark, "orders", "b-c", "{o}:x.y", "we`ird")

    assert run_sql(spark, sql, names).count() == count
    assert sorted(names.asked) == asked


def test_a_view_of_the_session_goes_before_a_stream_and_stays(spark: Any) -> None:
    spark.range(7).createOrReplaceTempView("theirs")

    assert run_sql(spark, "select * from theirs", Names(spark, "theirs")).count() == 7
    assert spark.table("theirs").count() == 7
    spark.catalog.dropTempView("theirs")


def test_no_view_is_left_behind(spark: Any) -> None:
    frame = run_sql(spark, "select * from orders", Names(spark, "orders"))

    assert not spark.catalog.tableExists("orders")
    assert frame.count() == 2


@pytest.mark.parametrize(
    ("sql", "said"),
    [
        ("selec 1", "the SQL cannot be read: Syntax error at or near 'selec' (line 1, column 1)."),
        ("", "the SQL cannot be read: Syntax error, unexpected empty statement (line 1, column 1)."),
        ("select * from a-b", "must be back quoted as: `a-b` (line 1, column 16)."),
        ("select * from a.b", "there is no table `a`.`b`. If it is the stream 'a.b', write it in backticks: `a.b`."),
        (
            "select\n total from orders",
            "the SQL cannot be run: A column, variable, or function parameter with name `total`",
        ),
        ("select nix(id) from orders", "the SQL cannot be run: Cannot resolve routine `nix`"),
        ("select 1; select 2", "the SQL cannot be read: Syntax error at or near 'select'"),
    ],
)
def test_sql_that_is_wrong_is_told_in_one_sentence(
    spark: Any, capfd: pytest.CaptureFixture[str], sql: str, said: str
) -> None:
    with pytest.raises(ConfigError) as error:
        run_sql(spark, sql, Names(spark, "orders"))

    assert said in str(error.value)
    assert "\n" not in str(error.value) and "SQLSTATE" not in str(error.value)
    assert capfd.readouterr().err == ""


def test_an_unknown_name_is_what_the_caller_says(spark: Any) -> None:
    with pytest.raises(NotFound, match="there is no stream 'ordrs'"):
        run_sql(spark, "select * from ordrs", Names(spark, "orders"))
