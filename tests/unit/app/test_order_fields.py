"""The key of a message as a field beside its payload."""

from dataclasses import dataclass

import pytest

from headrace.app.order_fields import is_field, order_fields


@dataclass
class Ticket:
    ticket_id: int


@pytest.mark.parametrize(
    ("payload", "text"),
    [
        ({"ticket_id": "seven"}, b"seven"),
        ({"ticket_id": 7}, b"7"),
        ({"ticket_id": -(2**53) + 1}, b"-9007199254740991"),
        ({"ticket_id": False}, b"false"),
        (Ticket(7), b"7"),
        ({"ticket_id": "\udcff"}, b"\xff"),
    ],
)
def test_text_whole_numbers_and_truth_become_a_field(payload, text):
    assert order_fields(payload, ["ticket_id"]) == [(b"ticket_id", text)]


@pytest.mark.parametrize(
    "payload",
    [
        {}, {"ticket_id": ""}, {"ticket_id": None}, {"ticket_id": 1.0}, {"ticket_id": 2**53}, {"ticket_id": [1]},
        "ticket_id", b"ticket_id", 7, [{"ticket_id": 7}],
    ],
)  # fmt: skip
def test_whatever_else_is_left_to_the_server(payload):
    assert order_fields(payload, ["ticket_id"]) == []


@pytest.mark.parametrize("name", ["data", "key", "id", "type", "traceparent", "tracestate", "h:x", "hr:id"])
def test_names_of_the_layout_itself_are_no_fields_of_a_key(name):
    assert not is_field(name)
