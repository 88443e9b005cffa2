"""The entry layout as bytes."""

import pytest

from headrace.client.layout import BYTES, JSON, TEXT, decode_payload, encode_entry, encode_payload
from headrace.errors import ConfigError, HeadraceError


def test_the_documented_example():
    assert encode_entry({"id": 17, "total": 9.9}, key="customer-42", id="order-17", headers={"a": "b"}) == [
        (b"data", b'{"id":17,"total":9.9}'),
        (b"key", b"customer-42"),
        (b"id", b"order-17"),
        (b"h:a", b"b"),
    ]


@pytest.mark.parametrize(
    ("payload", "data", "content_type"),
    [
        ({"a": 1}, b'{"a":1}', JSON),
        (None, b"null", JSON),
        ("é", "é".encode(), TEXT),
        ("\udcff", b"\xff", TEXT),
        (b"\x00", b"\x00", BYTES),
        (memoryview(b"ab"), b"ab", BYTES),
    ],
)
def test_payloads_and_their_types(payload, data, content_type):
    assert encode_payload(payload) == (data, content_type)


def test_the_type_is_written_only_where_it_is_not_json():
    assert (b"type", TEXT) in encode_entry("text")
    assert all(name != b"type" for name, _ in encode_entry({"a": 1}))


@pytest.mark.parametrize("payload", [object(), {1, 2, object()}, lambda: None])
def test_what_cannot_be_published_is_named(payload):
    with pytest.raises(ConfigError, match=type(payload).__name__):
        encode_payload(payload)


def test_reading_back():
    assert decode_payload(b'{"a":1}', None, "1-0") == {"a": 1}
    assert decode_payload(b"a", b"text/html", "1-0") == "a"
    assert decode_payload(b"a", b"image/png", "1-0") == b"a"
    with pytest.raises(HeadraceError, match="1-0"):
        decode_payload(b"{", None, "1-0")
