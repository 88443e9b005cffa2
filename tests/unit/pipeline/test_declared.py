"""Columns a user declares: from fields, from JSON, from CloudEvents; and what happens to values that do not fit."""

import json
import pickle
from datetime import UTC, datetime
from decimal import Decimal

import pyarrow as pa
import pytest

from headrace import BadRecord, ConfigError
from headrace.pipeline.declared import make_decoder
from headrace.pipeline.rows import STANDARD_SCHEMA, make_batch
from support.pages import page_of

TIME = pa.timestamp("us", "UTC")
STRUCTURED = {
    "specversion": "1.0", "id": "17", "source": "shop", "type": "order.paid", "time": "2026-11-15T12:00:00Z",
    "retries": 3, "data": {"total": 9.90, "item": "tea"},
}  # fmt: skip


def rows_of(page, schema, **options):
    schema = pa.schema(schema)
    batch = make_batch(page, "orders", schema, make_decoder(schema, **options))
    batch.validate(full=True)
    assert batch.schema == schema
    return batch.to_pylist()


def data_of(*documents):
    texts = [document if isinstance(document, str) else json.dumps(document) for document in documents]
    return page_of(*({"data": text} for text in texts))


# Fields


def test_declared_columns_are_fields_of_their_name():
    page = page_of({"item": "tea", "amount": "3", "price": "9.90"}, {"amount": "4", "other": "x"})

    rows = rows_of(page, [("item", pa.string()), ("amount", pa.int32()), ("price", pa.decimal128(9, 2))])

    assert rows == [
        {"item": "tea", "amount": 3, "price": Decimal("9.90")},
        {"item": None, "amount": 4, "price": None},
    ]


def test_standard_columns_stand_beside_declared_ones():
    page = page_of({"item": "tea", "key": "ann"})

    assert rows_of(page, [("item", pa.string()), ("id", pa.string()), ("key", pa.string())]) == [
        {"item": "tea", "id": "1-0", "key": "ann"}
    ]


def test_a_standard_name_with_another_type_is_a_field():
    page = page_of({"id": "17", "data": "text"})

    assert rows_of(page, [("id", pa.int64()), ("data", pa.string())]) == [{"id": 17, "data": "text"}]


def test_the_last_of_equal_names_counts():
    assert rows_of(page_of([(b"a", b"1"), (b"a", b"2")]), [("a", pa.int32())]) == [{"a": 2}]


def test_a_value_that_does_not_fit_is_null_and_the_others_stay():
    page = page_of({"amount": "three", "item": "tea"}, {"amount": "4", "item": "salt"})

    assert rows_of(page, [("amount", pa.int32()), ("item", pa.string())]) == [
        {"amount": None, "item": "tea"},
        {"amount": 4, "item": "salt"},
    ]


def test_the_whole_entry_goes_to_the_column_of_bad_records_if_it_is_declared():
    page = page_of({"amount": "three", "item": "tea"}, {"amount": "4"}, [(b"amount", b"\xff")])

    rows = rows_of(page, [("amount", pa.int32()), ("_corrupt_record", pa.string())])

    assert rows == [
        {"amount": None, "_corrupt_record": '{"amount":"three","item":"tea"}'},
        {"amount": 4, "_corrupt_record": None},
        {"amount": None, "_corrupt_record": '{"amount":"�"}'},
    ]


def test_the_column_of_bad_records_has_the_name_that_was_chosen():
    schema = [("amount", pa.int32()), ("bad", pa.string())]

    assert rows_of(page_of({"amount": "x", "bad": "y"}), schema, corrupt_column="bad") == [
        {"amount": None, "bad": '{"amount":"x","bad":"y"}'}
    ]


def test_failing_fast_names_the_entry_the_column_and_the_value():
    page = page_of({"amount": "1"}, {"amount": "x" * 500})

    with pytest.raises(BadRecord) as caught:
        rows_of(page, [("amount", pa.int32())], mode="failfast")

    assert str(caught.value).startswith(
        f"entry 2-0 of stream 'orders' does not fit column 'amount' of type int: '{'x' * 60}…'; set the option mode"
    )


def test_failing_fast_reads_what_fits():
    assert rows_of(page_of({"amount": "1"}), [("amount", pa.int32())], mode="FAILFAST") == [{"amount": 1}]


# JSON


def test_declared_columns_are_members_of_json():
    page = data_of({"item": "tea", "tags": ["a"], "price": {"net": 9.9}}, {"item": None})
    schema = [
        ("item", pa.string()),
        ("tags", pa.list_(pa.field("element", pa.string()))),
        ("price", pa.struct([("net", pa.float64())])),
    ]

    assert rows_of(page, schema, columns_from="json") == [
        {"item": "tea", "tags": ["a"], "price": {"net": 9.9}},
        {"item": None, "tags": None, "price": None},
    ]


def test_json_keeps_all_digits_of_a_decimal():
    page = data_of('{"price": 12345678901234567890.123456789012345678}')

    assert rows_of(page, [("price", pa.decimal128(38, 18))], columns_from="json") == [
        {"price": Decimal("12345678901234567890.123456789012345678")}
    ]


@pytest.mark.parametrize("text", ["", "{", "[1]", "17", "nul", '{"amount":"x"}', "[" * 100_000, '{"amount":"\\ud800"}'])
def test_what_is_no_such_json_goes_to_the_column_of_bad_records(text):
    schema = [("amount", pa.int32()), ("_corrupt_record", pa.string())]

    assert rows_of(data_of(text, {"amount": 1}), schema, columns_from="json") == [
        {"amount": None, "_corrupt_record": text},
        {"amount": 1, "_corrupt_record": None},
    ]


def test_an_entry_without_data_has_null_columns_and_is_no_bad_record():
    schema = [("amount", pa.int32()), ("_corrupt_record", pa.string())]

    for kind in ("json", "cloudevents"):
        assert rows_of(page_of({"other": "x"}), schema, columns_from=kind) == [
            {"amount": None, "_corrupt_record": None}
        ]


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("{", "has no JSON object in its field 'data': '{'"),
        ('{"amount":[]}', "does not fit column 'amount' of type int: '{\"amount\""),
    ],
)
def test_failing_fast_shows_the_json_that_does_not_fit(text, words):
    with pytest.raises(BadRecord) as caught:
        rows_of(data_of({}, text), [("amount", pa.int32())], columns_from="json", mode="FAILFAST")

    assert "entry 2-0 of stream 'orders' " + words in str(caught.value)


# CloudEvents

EVENT_SCHEMA = [
    ("ce_id", pa.string()), ("ce_type", pa.string()), ("ce_time", TIME), ("ce_retries", pa.int32()),
    ("ce_subject", pa.string()), ("total", pa.decimal128(9, 2)), ("item", pa.string()),
]  # fmt: skip
EVENT_ROW = {
    "ce_id": "17", "ce_type": "order.paid", "ce_time": datetime(2026, 11, 15, 12, tzinfo=UTC), "ce_retries": 3,
    "ce_subject": None, "total": Decimal("9.90"), "item": "tea",
}  # fmt: skip


def binary_form(prefix):
    fields = {prefix + name: str(value) for name, value in STRUCTURED.items() if name != "data"}
    return {**fields, "data": json.dumps(STRUCTURED["data"])}


def test_both_forms_of_a_cloudevent_give_the_same_row():
    entries = [{"data": json.dumps(STRUCTURED)}, *(binary_form(prefix) for prefix in ("ce_", "h:ce_", "h:ce-"))]

    assert rows_of(page_of(*entries), EVENT_SCHEMA, columns_from="cloudevents") == [EVENT_ROW] * 4


def test_the_data_of_a_cloudevent_may_be_base64():
    event = {**STRUCTURED, "data_base64": "eyJ0b3RhbCI6OS45LCJpdGVtIjoidGVhIn0="}
    del event["data"]

    assert rows_of(data_of(event), EVENT_SCHEMA, columns_from="cloudevents") == [EVENT_ROW]


def test_data_of_any_kind_will_do_where_only_attributes_are_asked_for():
    schema = [("ce_id", pa.string()), ("_corrupt_record", pa.string())]
    page = page_of({**binary_form("ce_"), "data": "plain text"}, {"data": json.dumps({**STRUCTURED, "data": "text"})})

    assert rows_of(page, schema, columns_from="cloudevents") == [{"ce_id": "17", "_corrupt_record": None}] * 2


def test_what_is_no_cloudevent_goes_to_the_column_of_bad_records():
    schema = [("ce_id", pa.string()), ("item", pa.string()), ("_corrupt_record", pa.string())]
    binary = {"ce_id": "1", "data": "plain text"}

    rows = rows_of(page_of({"data": '{"id":"1"}'}, {"data": "text"}, binary), schema, columns_from="cloudevents")

    assert rows == [
        {"ce_id": None, "item": None, "_corrupt_record": '{"id":"1"}'},
        {"ce_id": None, "item": None, "_corrupt_record": "text"},
        {"ce_id": "1", "item": None, "_corrupt_record": '{"ce_id":"1","data":"plain text"}'},
    ]


def test_an_attribute_that_does_not_fit_is_a_bad_record():
    schema = [("ce_time", TIME), ("_corrupt_record", pa.string())]
    event = json.dumps({**STRUCTURED, "time": "soon"})

    assert rows_of(data_of(event), schema, columns_from="cloudevents") == [{"ce_time": None, "_corrupt_record": event}]


# Options


def test_a_schema_of_standard_columns_needs_no_decoder():
    assert make_decoder(pa.schema([("id", pa.string())])) is None


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ({"columns_from": "xml"}, "columnsFrom is 'xml'; write fields, json or cloudevents"),
        ({"mode": "DROPMALFORMED"}, "mode is 'DROPMALFORMED'; write PERMISSIVE or FAILFAST"),
        ({"corrupt_column": "amount"}, "column 'amount' takes the text of bad records. Declare it as string"),
    ],
)
def test_a_wrong_option_is_told_in_one_sentence(options, words):
    with pytest.raises(ConfigError, match=words):
        make_decoder(pa.schema([("amount", pa.int32())]), **options)


def test_a_column_that_must_not_be_null_is_refused():
    with pytest.raises(ConfigError, match="column 'amount' is declared as not null"):
        make_decoder(pa.schema([pa.field("amount", pa.int32(), nullable=False)]))


@pytest.mark.parametrize(
    "field",
    [
        pa.field("key", pa.string(), nullable=False),
        pa.field("fields", pa.map_(pa.string(), pa.field("value", pa.string(), nullable=False))),
        pa.field(
            "pairs", pa.list_(pa.field("element", STANDARD_SCHEMA.field("pairs").type.value_type, nullable=False))
        ),
    ],
)
def test_a_standard_column_that_must_not_be_null_where_it_may_be_is_refused(field):
    with pytest.raises(ConfigError, match=f"column '{field.name}' is declared .*not null"):
        make_decoder(pa.schema([field]))


def test_a_standard_column_that_is_always_there_may_be_declared_as_not_null():
    schema = pa.schema([pa.field("id", pa.string(), nullable=False)])

    assert make_batch(page_of({"a": "1"}), "orders", schema, make_decoder(schema)).to_pylist() == [{"id": "1-0"}]


def test_a_decoder_travels_to_other_processes():
    schema = pa.schema([("amount", pa.int32())])

    decoder = pickle.loads(pickle.dumps(make_decoder(schema)))

    assert make_batch(page_of({"amount": "5"}), "orders", schema, decoder).to_pylist() == [{"amount": 5}]
