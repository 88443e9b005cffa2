"""Options of format("headrace"): what they mean, and one sentence for each that is wrong."""

import pytest

from headrace.errors import ConfigError
from headrace.pipeline.entry_ids import MAX_PART, id_of
from headrace.pipeline.options import (
    Bounds,
    SourceOptions,
    get_sink_url,
    parse_sink_options,
    parse_source_options,
    reject_unknown,
)

URL = "redis://ann:s3cret@localhost:6379"


def read(is_stream: bool = False, **given: str) -> SourceOptions:
    return parse_source_options({"url": URL, "streams": "orders"} | given, None, is_stream=is_stream)


def refused(is_stream: bool = False, **given: str) -> str:
    with pytest.raises(ConfigError) as raised:
        read(is_stream, **given)
    sentence = str(raised.value)
    assert "s3cret" not in sentence and "\n" not in sentence
    return sentence


def test_a_batch_reads_from_the_earliest_to_the_latest_entry_and_a_stream_from_now_on() -> None:
    assert read().start == Bounds("earliest") and read().end == Bounds("latest")
    assert read(is_stream=True).start == Bounds("latest")


def test_names_of_options_have_no_case_and_what_spark_adds_is_passed_over() -> None:
    options = read(MAXENTRIESPERTRIGGER="5", path="x", CheckpointLocation="y", failondataloss="FALSE")

    assert options.max_entries == 5 and options.fails_on_data_loss is False


def test_the_password_is_in_no_repr() -> None:
    assert "s3cret" not in repr(read())
    assert "s3cret" not in repr(parse_sink_options({"url": URL, "stream": "orders"}, None))


@pytest.mark.parametrize(
    ("text", "names"),
    [
        ("orders", ("orders",)),
        (" orders , parcels,orders", ("orders", "parcels")),
        ('["a,b", " c "]', ("a,b", " c ")),
    ],
)
def test_streams_are_names_joined_by_commas_or_a_json_list(text: str, names: tuple[str, ...]) -> None:
    assert read(streams=text).streams == names


def test_a_pattern_stands_in_place_of_names() -> None:
    options = parse_source_options({"url": URL, "streamsPattern": "orders:*"}, None, is_stream=True)

    assert options.pattern == "orders:*" and options.streams == ()


@pytest.mark.parametrize(
    ("text", "start"),
    [
        ("earliest", "earliest"),
        ("latest", "latest"),
        ("1690275391705-3", id_of("1690275391705-3")),
        ("1690275391705", id_of("1690275391705-0")),
        ("0-1", 1),
    ],
)
def test_a_start_is_earliest_latest_or_the_first_id_to_be_read(text: str, start: object) -> None:
    assert read(startingOffsets=text).start.of("orders") == start


def test_an_end_that_is_a_bare_millisecond_takes_in_all_of_it() -> None:
    assert read(endingOffsets="7").end.of("orders") == 7 << 64 | MAX_PART
    assert read(endingOffsets="7-1").end.of("orders") == 7 << 64 | 1
    assert read(endingTimestamp="7").end.of("orders") == 7 << 64 | MAX_PART


def test_streams_may_begin_at_different_places_and_the_others_at_the_default() -> None:
    options = read(streams="a,b,c", startingOffsets='{"a": "5-0", "b": "latest"}')

    assert [options.start.of(name) for name in "abc"] == [5 << 64, "latest", "earliest"]


@pytest.mark.parametrize(
    ("text", "ms"),
    [
        ("1690275391705", 1690275391705),
        ("2023-07-25T08:56:31.705Z", 1690275391705),
        ("2023-07-25T08:56:31.705", 1690275391705),
        ("2023-07-25 10:56:31.705+02:00", 1690275391705),
        ("2023-07-25", 1690243200000),
    ],
)
def test_a_time_is_milliseconds_or_iso_8601_and_in_utc_unless_it_says_otherwise(text: str, ms: int) -> None:
    assert read(startingTimestamp=text).start.of("orders") == ms << 64


def test_the_url_of_the_environment_is_taken_where_none_is_given() -> None:
    options = parse_source_options({"streams": "orders"}, "redis://localhost", is_stream=False)

    assert options.url == "redis://localhost"


@pytest.mark.parametrize(
    ("given", "words"),
    [
        ({"stream": "orders"}, ["'stream'", "Did you mean streams?"]),
        ({"maxEntriesPerTriger": "5"}, ["maxEntriesPerTrigger"]),
        ({"zzz": "5"}, ["'zzz'", "streamsPattern"]),
        ({"streams": ""}, ["streams names no stream"]),
        ({"streams": "a,,b"}, ["every name"]),
        ({"streams": '["a", 5]'}, ["every name"]),
        ({"streams": '["a'}, ["JSON list"]),
        ({"streamsPattern": "*"}, ["streams", "streamsPattern", "not both"]),
        ({"url": "embedded:"}, ["embedded:", "headrace serve"]),
        ({"url": "http://localhost"}, ["http:"]),
        ({"startingOffsets": "yesterday"}, ["startingOffsets", "'yesterday'", "earliest"]),
        ({"startingOffsets": "5-"}, ["startingOffsets", "'5-'"]),
        ({"startingOffsets": f"{2**64}-0"}, ["startingOffsets"]),
        ({"startingOffsets": "٣-0"}, ["startingOffsets"]),
        ({"startingOffsets": '{"orders": 5}'}, ["'orders'", "as text"]),
        ({"startingOffsets": '{"orders": "x"}'}, ["'orders'", "'x'"]),
        ({"startingOffsets": '{"parcels": "5-0"}'}, ["'parcels'", "not in streams"]),
        ({"startingOffsets": '{"orders'}, ["JSON"]),
        ({"startingOffsets": "earliest", "startingTimestamp": "5"}, ["startingOffsets and startingTimestamp"]),
        ({"startingOffsets": "earliest", "startingGroup": "g"}, ["startingOffsets and startingGroup"]),
        ({"startingGroup": ""}, ["startingGroup is empty"]),
        ({"startingTimestamp": "noon"}, ["startingTimestamp", "'noon'", "2026-11-15T12:30:00Z"]),
        ({"startingTimestamp": "1960-01-01"}, ["startingTimestamp"]),
        ({"endingOffsets": "5-0", "endingTimestamp": "5"}, ["endingOffsets and endingTimestamp"]),
        ({"maxEntriesPerTrigger": "0"}, ["maxEntriesPerTrigger", "'0'", "between 1 and"]),
        ({"maxEntriesPerTrigger": "-5"}, ["maxEntriesPerTrigger", "'-5'"]),
        ({"maxEntriesPerTrigger": "many"}, ["maxEntriesPerTrigger", "'many'"]),
        ({"minPartitions": "1000000"}, ["minPartitions"]),
        ({"pageEntries": "0"}, ["pageEntries"]),
        ({"failOnDataLoss": "maybe"}, ["failOnDataLoss", "'maybe'", "true or false"]),
    ],
)
def test_a_wrong_option_is_one_sentence_that_names_it(given: dict[str, str], words: list[str]) -> None:
    sentence = refused(**given)

    assert all(word in sentence for word in words), sentence


def test_neither_streams_nor_a_pattern_is_refused() -> None:
    with pytest.raises(ConfigError, match=r"streams .* or streamsPattern"):
        parse_source_options({"url": URL}, None, is_stream=False)


def test_without_any_url_the_sentence_says_where_to_put_one() -> None:
    with pytest.raises(ConfigError, match="HEADRACE_URL"):
        parse_source_options({"streams": "orders"}, None, is_stream=False)


@pytest.mark.parametrize("option", ["endingOffsets", "endingTimestamp"])
def test_a_streaming_query_has_no_end(option: str) -> None:
    assert option in refused(is_stream=True, **{option: "5"})


@pytest.mark.parametrize("given", [{}, {"stream": "a", "table": "b"}, {"stream": "a", "table": "b", "archive": "c"}])
def test_a_sink_has_exactly_one_target(given: dict[str, str]) -> None:
    with pytest.raises(ConfigError, match="exactly one of the options stream"):
        parse_sink_options({"url": URL} | given, None)


def test_a_sink_keeps_its_own_options_and_needs_a_url_only_when_it_asks() -> None:
    options = parse_sink_options({"table": "/tmp/t", "Format": "delta", "path": "x", "checkpointLocation": "y"}, None)

    assert (options.kind, options.target, options.others) == ("table", "/tmp/t", {"format": "delta"})
    with pytest.raises(ConfigError, match="no URL"):
        get_sink_url(options)
    with pytest.raises(ConfigError, match=r"the table sink has no option 'format'. Did you mean formats\?"):
        reject_unknown(options.others, ("formats",), "the table sink")
