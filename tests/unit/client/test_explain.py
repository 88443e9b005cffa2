"""Refusals in words that name what was asked for."""

import pickle

import pytest

from headrace.client import requests
from headrace.client.explain import explain
from headrace.client.requests import Request
from headrace.errors import AccessDenied, CommandError, HeadraceError, NotFound, WrongType

NO_GROUP = NotFound("NOGROUP No such key 'orders' or consumer group 'billing'")


@pytest.mark.parametrize(
    "request_",
    [
        requests.pending_summary("orders", "billing"),
        requests.read_group("orders", "billing", "ann", ">", count=1),
        requests.claim("orders", "billing", "ann", 0, ["1-0"]),
        requests.consumers("orders", "billing"),
        requests.seek_group("orders", "billing", "0-0"),
    ],
    ids=lambda one: str(one.argv[0]),
)
def test_a_missing_group_is_named_whatever_was_asked(request_: Request[object]) -> None:
    explained = explain(NO_GROUP, request_)

    assert isinstance(explained, NotFound)
    assert explained.prefix == "NOGROUP"
    assert str(explained).startswith("stream 'orders' has no group 'billing'.")
    assert (explained.stream, explained.group) == ("orders", "billing")
    assert explained.__cause__ is NO_GROUP


def test_a_missing_stream_and_a_wrong_type_name_the_key() -> None:
    missing = explain(NotFound("ERR no such key"), requests.groups("orders"))
    other = explain(WrongType("WRONGTYPE Operation against a key"), requests.length("orders"))

    assert isinstance(missing, NotFound) and str(missing).startswith("there is no stream 'orders'.")
    assert (missing.prefix, missing.stream, missing.group) == ("ERR", "orders", None)
    assert isinstance(other, WrongType) and str(other).startswith("'orders' is not a stream")
    assert (other.prefix, other.key) == ("WRONGTYPE", "orders")


def test_an_error_survives_a_process_boundary() -> None:
    explained = explain(NO_GROUP, requests.pending_summary("orders", "billing"))

    again = pickle.loads(pickle.dumps(explained))

    assert (str(again), again.prefix, again.group) == (str(explained), "NOGROUP", "billing")


@pytest.mark.parametrize("error", [AccessDenied("no"), CommandError("ERR syntax error"), HeadraceError("x")])
def test_other_errors_stay_as_they_are(error: HeadraceError) -> None:
    assert explain(error, requests.length("orders")) is error


def test_a_request_without_a_key_has_nothing_to_name() -> None:
    assert explain(NO_GROUP, requests.ping()) is NO_GROUP
