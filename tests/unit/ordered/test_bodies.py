"""What consumers send is checked before anything reaches the broker."""

import json

import pytest

from headrace.ordered.bodies import MOST_CAPACITY, Acknowledge, Fail, Register, Sign, is_http_url, key_of, read_body
from headrace.ordered.refusal import Refusal

MESSAGE = {"consumer": "c1", "ticket_id": "7", "message_id": "1-0"}


def refused(body, kind):
    with pytest.raises(Refusal) as caught:
        read_body(body if isinstance(body, bytes) else json.dumps(body).encode(), kind)
    assert caught.value.status == 400 and caught.value.what_to_do
    return caught.value.error


@pytest.mark.parametrize(
    "body", [b"", b"{", b"[]", b'"c1"', b"\xff", b'{"consumer": 7}', b'{"consumer": "\xff"}', b'{"a":' * 9999]
)
def test_what_is_no_json_of_the_right_form_is_refused(body):
    assert "cannot be read" in refused(body, Sign)


@pytest.mark.parametrize("name", ["", "x" * 513])
def test_a_name_has_a_byte_at_least_and_512_at_most(name):
    assert "consumer" in refused({"consumer": name}, Sign)


@pytest.mark.parametrize("capacity", [0, -1, MOST_CAPACITY + 1])
def test_a_capacity_out_of_bounds_is_refused(capacity):
    assert "capacity" in refused({"consumer": "c1", "capacity": capacity}, Register)


@pytest.mark.parametrize(
    "url", ["", "localhost:9001", "ftp://host/x", "http://", "http://a b/", "http://h:99999/", "http://h/" + "x" * 2048]
)
def test_a_health_url_must_lead_somewhere_over_http(url):
    assert not is_http_url(url)
    assert "healthURL" in refused({"consumer": "c1", "healthURL": url}, Register)


def test_a_health_url_may_be_left_out():
    assert read_body(b'{"consumer": "c1"}', Register).healthURL is None
    assert is_http_url("http://localhost:9001/api/health") and is_http_url("https://[::1]/x?y=1")


@pytest.mark.parametrize("message_id", ["", "x", "1-", "-1", "1-0-0", f"{2**64}-0", "1-0\n"])
def test_a_message_is_named_by_an_entry_id(message_id):
    assert "message_id" in refused({**MESSAGE, "message_id": message_id}, Acknowledge)


@pytest.mark.parametrize("more", [{"fence": -1}, {"fence": 2**53}, {"delay_ms": -1}, {"delay_ms": 10**12}])
def test_numbers_out_of_bounds_are_refused(more):
    assert next(iter(more)) in refused({**MESSAGE, **more}, Fail)


def test_a_key_may_be_sent_as_a_number_and_left_out_where_there_is_none():
    assert key_of(read_body(json.dumps({**MESSAGE, "ticket_id": 7}).encode(), Acknowledge)) == "7"
    assert key_of(read_body(b'{"consumer": "c1", "message_id": "1-0"}', Acknowledge)) == "id:1-0"


def test_fields_of_others_are_passed_over():
    assert read_body(json.dumps({**MESSAGE, "pod": "a"}).encode(), Acknowledge).message_id == "1-0"
