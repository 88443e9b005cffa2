"""HELLO, AUTH, PING, SELECT, QUIT, RESET, and everything CLIENT can do."""

from __future__ import annotations

import pytest

from support.memory import ManualClock, MemoryBroker, MemoryClient, Refusal


def lines_of(text: bytes) -> list[dict[str, str]]:
    """CLIENT LIST as one dict per client."""
    return [dict(word.split("=", 1) for word in line.split(" ")) for line in text.decode().splitlines()]


def waiting_client(broker: MemoryBroker) -> MemoryClient:
    client = broker.client()
    client.send("BLPOP queue 0")
    assert client.is_waiting
    return client


# HELLO and AUTH


def test_hello_introduces_the_server_as_redis(broker: MemoryBroker) -> None:
    reply = broker("HELLO")
    greeting = dict(zip(reply[::2], reply[1::2], strict=True))
    assert greeting[b"server"] == b"redis"
    assert greeting[b"version"].startswith(b"8.6.")
    assert greeting[b"proto"] == 2
    assert greeting[b"id"] == broker.first.call.id
    assert greeting[b"modules"] == []


def test_hello_3_switches_to_maps_and_back(broker: MemoryBroker) -> None:
    assert isinstance(broker("HELLO 3"), dict)
    assert isinstance(broker("CONFIG GET maxclients"), dict)
    assert isinstance(broker("HELLO 2"), list)
    assert isinstance(broker("CONFIG GET maxclients"), list)


def test_hello_lets_the_default_user_in_and_names_the_connection(broker: MemoryBroker) -> None:
    broker("HELLO 3 AUTH default anything SETNAME billing")
    assert broker("CLIENT GETNAME") == b"billing"


@pytest.mark.parametrize(
    ("command", "error"),
    [
        ("HELLO x", "ERR Protocol version is not an integer or out of range"),
        ("HELLO 4", "NOPROTO unsupported protocol version"),
        ("HELLO 3 WHAT", "ERR Syntax error in HELLO option 'WHAT'"),
        ("HELLO 3 AUTH ann secret", "WRONGPASS invalid username-password pair or user is disabled."),
        ('HELLO 3 SETNAME "a b"', "ERR Client names cannot contain spaces, newlines or special characters."),
    ],
)
def test_a_refused_hello_changes_nothing(broker: MemoryBroker, command: str, error: str) -> None:
    assert broker(command) == Refusal(error)
    assert broker("CLIENT GETNAME") is None
    assert isinstance(broker("CONFIG GET maxclients"), list)


def test_auth_says_that_no_password_is_set(broker: MemoryBroker) -> None:
    assert "without any password configured" in str(broker("AUTH secret"))
    assert broker("AUTH default secret") == b"OK"
    assert str(broker("AUTH ann secret")).startswith("WRONGPASS")
    assert broker("AUTH a b c") == Refusal("ERR syntax error")


# The connection itself


def test_ping_and_echo_give_back_what_they_got(broker: MemoryBroker) -> None:
    assert broker("PING") == b"PONG"
    assert broker("PING hello") == b"hello"
    assert broker("ECHO", b"any \x00 bytes") == b"any \x00 bytes"
    assert str(broker("PING a b")).startswith("ERR wrong number of arguments")


def test_databases_do_not_see_each_others_keys(broker: MemoryBroker) -> None:
    broker("SET key zero")
    assert broker("SELECT 15") == b"OK"
    assert broker("GET key") is None
    assert broker("SELECT 16") == Refusal("ERR DB index is out of range")
    assert broker("SELECT x") == Refusal("ERR value is not an integer or out of range")
    assert broker("SELECT 0") == b"OK"
    assert broker("GET key") == b"zero"


def test_quit_answers_and_closes(broker: MemoryBroker) -> None:
    assert broker("QUIT") == b"OK"
    assert broker.first.is_closed


def test_reset_forgets_everything_about_the_connection(broker: MemoryBroker) -> None:
    broker("HELLO 3 SETNAME billing")
    broker("SELECT 9")
    broker("WATCH key")
    broker("MULTI")
    assert broker("RESET") == b"RESET"
    assert broker("CLIENT GETNAME") is None
    facts = lines_of(broker("CLIENT INFO"))[0]
    assert (facts["db"], facts["multi"], facts["watch"], facts["resp"]) == ("0", "-1", "0", "2")


# CLIENT about oneself


def test_every_client_has_its_own_number(broker: MemoryBroker) -> None:
    other = broker.client()
    assert broker("CLIENT ID") != other("CLIENT ID")


def test_a_name_must_be_visible_ascii(broker: MemoryBroker) -> None:
    assert broker("CLIENT SETNAME billing-1") == b"OK"
    assert str(broker('CLIENT SETNAME "a b"')).startswith("ERR Client names cannot")
    assert broker("CLIENT GETNAME") == b"billing-1"
    assert broker('CLIENT SETNAME ""') == b"OK"
    assert broker("CLIENT GETNAME") is None


def test_the_library_is_shown_in_the_list(broker: MemoryBroker) -> None:
    broker("CLIENT SETINFO lib-name redis-py")
    broker("CLIENT SETINFO LIB-VER 5.2.0")
    facts = lines_of(broker("CLIENT INFO"))[0]
    assert (facts["lib-name"], facts["lib-ver"]) == ("redis-py", "5.2.0")
    assert broker("CLIENT SETINFO what x") == Refusal("ERR Unrecognized option 'what'")
    assert str(broker('CLIENT SETINFO lib-name "a b"')).startswith("ERR lib-name cannot contain spaces")


def test_replies_can_be_turned_off_and_on(broker: MemoryBroker) -> None:
    client = broker.client()
    client.send("CLIENT REPLY OFF")
    client.send("SET key 1")
    client.send("NOSUCHCOMMAND")
    client.send("CLIENT REPLY ON")
    client.send("GET key")
    assert client.replies() == [b"OK", b"1"]


def test_one_reply_can_be_skipped(broker: MemoryBroker) -> None:
    client = broker.client()
    client.send("CLIENT REPLY SKIP")
    client.send("SET key 1")
    client.send("GET key")
    assert client.replies() == [b"1"]
    client.send("CLIENT REPLY SKIP")
    client.send("CLIENT REPLY ON")
    assert client.replies() == [b"OK"]


def test_switches_are_on_or_off(broker: MemoryBroker) -> None:
    assert broker("CLIENT NO-EVICT on") == b"OK"
    assert broker("CLIENT NO-TOUCH ON") == b"OK"
    assert lines_of(broker("CLIENT INFO"))[0]["flags"] == "eT"
    assert broker("CLIENT NO-EVICT maybe") == Refusal("ERR syntax error")


# CLIENT about others


def test_the_list_tells_who_is_there_and_what_they_do(broker: MemoryBroker, clock: ManualClock) -> None:
    waiting = waiting_client(broker)
    clock.advance(s=3)
    facts = {line["id"]: line for line in lines_of(broker("CLIENT LIST"))}
    assert set(facts) == {str(broker.first.call.id), str(waiting.call.id)}
    assert facts[str(waiting.call.id)]["flags"] == "b"
    assert facts[str(waiting.call.id)]["cmd"] == "blpop"
    assert facts[str(waiting.call.id)]["age"] == "3"
    assert facts[str(broker.first.call.id)]["cmd"] == "client|list"


def test_the_list_can_be_narrowed(broker: MemoryBroker) -> None:
    other = broker.client()
    number = other.call.id
    assert [line["id"] for line in lines_of(broker(f"CLIENT LIST ID {number} 999"))] == [str(number)]
    assert len(lines_of(broker("CLIENT LIST TYPE normal"))) == 2
    assert broker("CLIENT LIST TYPE pubsub") == b""
    assert broker("CLIENT LIST TYPE what") == Refusal("ERR Unknown client type 'what'")
    assert broker("CLIENT LIST ID x") == Refusal("ERR Invalid client ID")
    assert broker("CLIENT LIST what") == Refusal("ERR syntax error")


def test_a_waiting_client_can_be_killed_by_number(broker: MemoryBroker) -> None:
    waiting = waiting_client(broker)
    assert broker(f"CLIENT KILL ID {waiting.call.id}") == 1
    assert waiting.is_closed
    assert waiting.replies() == []
    broker("RPUSH queue a")
    assert broker("LLEN queue") == 1


def test_killing_spares_oneself_unless_asked(broker: MemoryBroker) -> None:
    other = broker.client()
    assert broker("CLIENT KILL TYPE normal") == 1
    assert other.is_closed and not broker.first.is_closed
    assert broker("CLIENT KILL TYPE normal SKIPME no") >= 1
    assert broker.first.is_closed


def test_the_old_form_of_kill_names_an_address(broker: MemoryBroker) -> None:
    assert broker("CLIENT KILL 10.0.0.1:99") == Refusal("ERR No such client")
    assert broker("CLIENT KILL 127.0.0.1:1") == b"OK"
    assert broker.first.is_closed


@pytest.mark.parametrize(
    ("filter_", "error"),
    [
        ("ID 0", "ERR client-id should be greater than 0"),
        ("ID x", "ERR client-id should be greater than 0"),
        ("TYPE what", "ERR Unknown client type 'what'"),
        ("USER ann", "ERR No such user 'ann'"),
        ("MAXAGE 0", "ERR maxage should be greater than 0"),
        ("MAXAGE x", "ERR maxage is not an integer or out of range"),
        ("SKIPME maybe", "ERR syntax error"),
        ("ID 1 SKIPME", "ERR syntax error"),
    ],
)
def test_a_wrong_filter_kills_nobody(broker: MemoryBroker, filter_: str, error: str) -> None:
    other = broker.client()
    assert broker(f"CLIENT KILL {filter_}") == Refusal(error)
    assert not other.is_closed


def test_unblocking_ends_a_wait_as_a_timeout_or_an_error(broker: MemoryBroker) -> None:
    first, second = waiting_client(broker), waiting_client(broker)
    assert broker(f"CLIENT UNBLOCK {first.call.id}") == 1
    assert first.replies() == [None]
    assert broker(f"CLIENT UNBLOCK {second.call.id} ERROR") == 1
    assert second.replies() == [Refusal("UNBLOCKED client unblocked via CLIENT UNBLOCK")]
    assert broker(f"CLIENT UNBLOCK {first.call.id}") == 0
    assert broker(f"CLIENT UNBLOCK {first.call.id} WHAT") == Refusal(
        "ERR CLIENT UNBLOCK reason should be TIMEOUT or ERROR"
    )
    assert first("PING") == b"PONG"


# CLIENT PAUSE


def test_a_pause_for_writes_lets_reads_through(broker: MemoryBroker, clock: ManualClock) -> None:
    other = broker.client()
    broker("CLIENT PAUSE 100 WRITE")
    assert other("GET key") is None
    other.send("SET key 1")
    assert other.replies() == []
    assert b"blocked_clients:1\r\n" in broker("INFO clients")
    clock.advance(ms=100)
    assert other.replies() == [b"OK"]


def test_unpause_lets_everybody_go_on_in_order(broker: MemoryBroker) -> None:
    others = [broker.client() for _ in range(3)]
    broker("CLIENT PAUSE 100000 ALL")
    for number, other in enumerate(others):
        other.send(f"RPUSH queue {number}")
        other.send("PING")
    assert broker("CLIENT UNPAUSE") == b"OK"
    assert [other.replies() for other in others] == [[1, b"PONG"], [2, b"PONG"], [3, b"PONG"]]


def test_a_second_pause_cannot_shorten_or_narrow_the_first(broker: MemoryBroker, clock: ManualClock) -> None:
    other = broker.client()
    broker("CLIENT PAUSE 1000 ALL")
    broker("CLIENT PAUSE 10 WRITE")
    other.send("GET key")
    clock.advance(ms=999)
    assert other.replies() == []
    clock.advance(ms=1)
    assert other.replies() == [None]


@pytest.mark.parametrize(
    ("words", "error"),
    [
        ("x", "ERR timeout is not an integer or out of range"),
        ("-1", "ERR timeout is negative"),
        ("1 SOME", "ERR CLIENT PAUSE mode must be WRITE or ALL"),
    ],
)
def test_a_wrong_pause_pauses_nobody(broker: MemoryBroker, words: str, error: str) -> None:
    assert broker(f"CLIENT PAUSE {words}") == Refusal(error)
    assert broker.client()("SET key 1") == b"OK"


def test_help_has_the_usual_first_and_last_lines(broker: MemoryBroker) -> None:
    lines = broker("CLIENT HELP")
    assert lines[0] == b"CLIENT <subcommand> [<arg> [value] [opt] ...]. Subcommands are:"
    assert lines[-2:] == [b"HELP", b"    Print this help."]
    assert broker("CLIENT NOSUCH") == Refusal("ERR unknown subcommand 'NOSUCH'. Try CLIENT HELP.")
