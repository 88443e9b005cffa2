"""Lists through the client, on every deployment."""

from concurrent.futures import ThreadPoolExecutor

import pytest

from headrace import ConfigError, WrongType
from support.flavours import Spy
from support.servers import wait_until


@pytest.fixture
def inbox(client, name):
    return client.list(name)


def test_elements_come_out_as_they_went_in(inbox):
    assert inbox.push("a", b"b", 3) == 3
    assert inbox.push("first", left=True) == 4

    assert inbox.range() == [b"first", b"a", b"b", b"3"]
    assert inbox.range(1, 2) == inbox.range(-3, -2) == [b"a", b"b"]
    assert inbox.pop() == [b"first"]
    assert inbox.pop(count=2) == [b"a", b"b"]
    assert inbox.length() == 1


def test_the_other_end(inbox):
    inbox.push("a", "b", "c")

    assert inbox.pop(right=True) == [b"c"]
    assert inbox.pop(count=5, right=True) == [b"b", b"a"]


def test_an_empty_list_gives_nothing(inbox):
    assert inbox.pop() == inbox.pop(wait="20ms") == inbox.range() == []
    assert inbox.push() == inbox.length() == 0
    assert inbox.move(inbox.name) is None
    assert inbox.move(inbox.name, wait="20ms") is None


def test_any_bytes_survive(inbox):
    sent = [b"", b"\x00\xff\r\n", bytes(range(256)), b"x" * 300_000]
    inbox.push(*sent)

    assert inbox.pop(count=10) == sent


def wait_for(connect, call, source):
    """What a call gives that waits while an element is pushed."""
    other = connect()
    spy = Spy(other)
    with ThreadPoolExecutor(1) as thread:
        waiting = thread.submit(call, other)
        wait_until(lambda: {"BLMPOP", "BLMOVE"} & set(spy.names), "the other one to wait")
        connect().list(source).push("x")
        return waiting.result(30)


def test_a_waiting_pop_gets_what_is_pushed(connect, name):
    assert wait_for(connect, lambda client: client.list(name).pop(wait="30s", count=2), name) == [b"x"]


def test_an_element_moves_to_another_list_in_one_step(client, name):
    new, doing = client.list(f"{{{name}}}:new"), client.list(f"{{{name}}}:doing")
    new.push("a", "b")

    assert new.move(doing.name) == b"a"
    assert new.move(doing.name, wait="30s") == b"b"
    assert (new.range(), doing.range()) == ([], [b"a", b"b"])


def test_a_list_to_move_to_is_given_by_its_name(client, name):
    with pytest.raises(ConfigError, match="given by its name"):
        client.list(name).move(client.list(f"{name}-other"))


def test_a_waiting_move_gets_what_is_pushed(connect, name):
    source, target = f"{{{name}}}:new", f"{{{name}}}:doing"

    assert wait_for(connect, lambda client: client.list(source).move(target, wait="30s"), source) == b"x"
    assert connect().list(target).range() == [b"x"]


def test_a_key_of_another_kind_is_told(client, name, inbox):
    client.stream(name).add({"a": "b"})

    for call in (lambda: inbox.push("x"), inbox.pop, lambda: inbox.pop(wait="1s"), inbox.length, inbox.range):
        with pytest.raises(WrongType, match=f"'{name}' is not a list but a stream"):
            call()


@pytest.mark.parametrize(
    ("call", "words"),
    [
        (lambda inbox: inbox.push(["a"]), "cannot be a list"),
        (lambda inbox: inbox.pop(count=0), "count is 0"),
        (lambda inbox: inbox.pop(wait="soon"), "wait is 'soon'"),
        (lambda inbox: inbox.move("other", wait="soon"), "wait is 'soon'"),
    ],
)
def test_wrong_arguments_are_explained(inbox, call, words):
    with pytest.raises(ConfigError, match=words):
        call(inbox)
