"""Wrong inputs, on the command line and in Python: each is answered by one clear sentence.

On the command line that is one line on stderr and the right exit code; in Python one of our exceptions. There is never
a traceback, and a password is never repeated.
"""

from __future__ import annotations

import socket
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

import pytest

from headrace import (
    AccessDenied,
    Client,
    CommandError,
    ConfigError,
    HeadraceError,
    NotFound,
    ProtocolError,
    Refused,
    Unreachable,
    WrongType,
)
from support.command_line import headrace
from support.servers import Server, our_kind, valkey_kind

PASSWORD = "s3cret"

FAILURE, USAGE, NOT_FOUND, CANNOT_CONNECT = 1, 2, 3, 4


@contextmanager
def stranger(answer: bytes) -> Iterator[int]:
    """A port where somebody answers who does not speak the protocol, and hangs up."""
    with socket.create_server(("127.0.0.1", 0)) as listener:

        def serve() -> None:
            while True:
                try:
                    connection, _ = listener.accept()
                except OSError:
                    return
                with connection:
                    if answer:
                        connection.recv(65536)
                        connection.sendall(answer)

        thread = threading.Thread(target=serve)
        thread.start()
        yield listener.getsockname()[1]
        listener.shutdown(socket.SHUT_RDWR)
        thread.join()


@pytest.fixture(scope="module")
def places() -> Iterator[dict[str, Any]]:
    """Where the words in braces of the tables lead."""
    with (
        our_kind().start() as ours,
        valkey_kind().start() as locked,
        stranger(b"HTTP/1.1 400 Bad Request\r\n\r\n") as web,
        stranger(b"") as silent,
    ):
        fill(ours)
        locked.control("CONFIG", "SET", "requirepass", PASSWORD)
        yield {"ours": f"redis://127.0.0.1:{ours.port}", "port": ours.port, "locked": locked.port, "web": web,
               "silent": silent}  # fmt: skip


def fill(server: Server) -> None:
    server.control("XADD", "orders", "5-0", "item", "tea")
    server.control("XGROUP", "CREATE", "orders", "billing", "0")
    server.control("XREADGROUP", "GROUP", "billing", "ann", "STREAMS", "orders", ">")
    server.control("SET", "words", "no stream")


def is_one_sentence(text: str) -> bool:
    return bool(text.strip()) and "\n" not in text.strip() and "Traceback" not in text and PASSWORD not in text


# The command line


URLS = [
    # what --url says                              code             a part of the sentence
    ("",                                           USAGE,           "set HEADRACE_URL"),
    ("embedded:",                                  USAGE,           "inside one process"),
    ("localhost",                                  USAGE,           "'localhost' is no URL"),
    ("s3cret@localhost",                           USAGE,           "'localhost' is no URL"),
    ("http://localhost:6379",                      USAGE,           "no URLs that begin with http:"),
    ("redis:localhost",                            USAGE,           "begins with redis://"),
    ("redis:/:s3cret@localhost",                   USAGE,           "begins with redis://"),
    ("redis://",                                   USAGE,           "names no host"),
    ("redis://:s3cret@",                           USAGE,           "names no host"),
    ("redis://localhost:port",                     USAGE,           "the port of this URL is not a number"),
    ("redis://localhost:99999",                    USAGE,           "not between 1 and 65535"),
    ("redis://localhost/first",                    USAGE,           "database 'first'"),
    ("redis://[::1",                               USAGE,           "cannot be read"),
    ("redis://localhost?colour=red",               USAGE,           "options nobody knows: colour"),
    ("redis://localhost?protocol=4",               USAGE,           "neither 2 nor 3"),
    ("redis://one,two",                            USAGE,           "names several hosts"),
    ("redis://ann:s3cret/x@localhost",             USAGE,           "/ as %2F"),
    ("redis://ann:s3cret#x@localhost",             USAGE,           "# as %23"),
    ("unix://",                                    USAGE,           "names no socket file"),
    ("unix://:s3cret@run/socket",                  USAGE,           "three slashes"),
    ("redis+sentinel://localhost",                 USAGE,           "names no service"),
    ("redis+cluster://localhost/3",                USAGE,           "only database 0"),
    ("redis://127.0.0.1:1",                        CANNOT_CONNECT,  "Cannot reach redis://127.0.0.1:1 (connection ref"),
    ("redis://ann:s3cret@127.0.0.1:1",             CANNOT_CONNECT,  "Cannot reach redis://127.0.0.1:1 (connection ref"),
    ("redis://nowhere.invalid",                    CANNOT_CONNECT,  "unknown host"),
    ("unix:///nowhere/socket",                     CANNOT_CONNECT,  "no such socket file"),
    ("redis+cluster://:s3cret@127.0.0.1:1",        CANNOT_CONNECT,  "Cannot reach redis+cluster://127.0.0.1:1"),
    ("redis+sentinel://:s3cret@127.0.0.1:1/main",  CANNOT_CONNECT,  "Cannot reach redis+sentinel://127.0.0.1:1/main"),
    ("rediss://127.0.0.1:{port}",                  CANNOT_CONNECT,  "does not speak TLS"),
    ("redis://127.0.0.1:{web}",                    CANNOT_CONNECT,  "does not speak the Redis protocol"),
    ("redis://127.0.0.1:{silent}",                 CANNOT_CONNECT,  "broke"),
    ("redis://127.0.0.1:{locked}",                 FAILURE,         "password"),
    ("redis://:s3cretX@127.0.0.1:{locked}",        FAILURE,         "password"),
    ("redis://nobody:s3cret@127.0.0.1:{locked}",   FAILURE,         "password"),
]  # fmt: skip


@pytest.mark.parametrize(("url", "code", "words"), URLS, ids=[url for url, *_ in URLS])
def test_a_wrong_url_is_explained(places: dict[str, Any], url: str, code: int, words: str) -> None:
    ended = headrace("groups", "ls", "orders", "--url", url.format(**places))

    assert (ended.code, ended.out) == (code, "")
    assert words in ended.err
    assert ended.err.startswith("headrace: ") and is_one_sentence(ended.err)


COMMANDS = [
    # arguments, words of a shell                               code        a part of the sentence
    ("streams info nothing",                                    NOT_FOUND,  "'nothing'. See: headrace streams ls\n"),
    ("streams trim nothing --keep 1",                           NOT_FOUND,  "there is no stream 'nothing'"),
    ("tail nothing -e",                                         NOT_FOUND,  "there is no stream 'nothing'"),
    ("groups ls nothing",                                       NOT_FOUND,  "there is no stream 'nothing'"),
    ("groups info orders nobody",                               NOT_FOUND,  "See: headrace groups ls orders\n"),
    ("groups seek orders nobody now",                           NOT_FOUND,  "no group 'nobody'"),
    ("groups rm orders nobody --yes",                           NOT_FOUND,  "no group 'nobody'"),
    ("tail orders --group nobody",                              NOT_FOUND,  "no group 'nobody'"),
    ("tail orders --group nobody --ack",                        NOT_FOUND,  "no group 'nobody'"),
    ("pending orders nobody",                                   NOT_FOUND,  "no group 'nobody'"),
    ("claim orders nobody --min-idle 0s",                       NOT_FOUND,  "no group 'nobody'"),
    ("ack orders nobody 5-0",                                   NOT_FOUND,  "no group 'nobody'"),
    ("streams info words",                                      FAILURE,    "'words' is not a stream but a string"),
    ("publish words a=b",                                       FAILURE,    "'words' is not a stream but a string"),
    ("publish words a=b --id 1",                                FAILURE,    "'words' is not a stream but a string"),
    ("tail words",                                              FAILURE,    "'words' is not a stream but a string"),
    ("groups ls words",                                         FAILURE,    "'words' is not a stream but a string"),
    ("groups create words billing",                             FAILURE,    "'words' is not a stream but a string"),
    ("groups rm orders billing --yes",                          FAILURE,    "has 1 pending entry, and"),
    ("groups rm orders billing --force",                        USAGE,      "add --yes"),
    ("ack orders billing abc",                                  USAGE,      "'abc' is no entry ID"),
    ("ack orders billing 99999999999999999999-0",               USAGE,      "is no entry ID"),
    ("ack orders billing 1-2-3",                                USAGE,      "'1-2-3' is no entry ID"),
    ("ack orders billing",                                      USAGE,      "say what to acknowledge"),
    ("ack orders billing 5-0 --min-idle 5m",                    USAGE,      "say what to acknowledge"),
    ("claim orders billing",                                    USAGE,      "say what to claim"),
    ("claim orders billing --min-idle 5",                       USAGE,      "--min-idle is '5'; write it like 250ms"),
    ("pending orders billing --min-idle -5m",                   USAGE,      "write it like 250ms, 5s"),
    ("pending orders billing --min-idle 999999999999999999d",   USAGE,      "between 0 and about 285,000 years"),
    ("pending orders billing --limit -1",                       USAGE,      "--limit"),
    ("tail orders --from yesterday",                            USAGE,      "--from is 'yesterday'; write an entry ID"),
    ("--url redis://localhost serve --memory",                  USAGE,      "serve takes no --url"),
    ("tail orders --from 5-0 --last 3",                         USAGE,      "only one of"),
    ("tail orders -n 0",                                        USAGE,      "-n"),
    ("tail orders -n many",                                     USAGE,      "valid integer"),
    ("tail orders --consumer ann",                              USAGE,      "need --group"),
    ("streams trim orders",                                     USAGE,      "either --keep N or --before PLACE"),
    ("streams trim orders --keep -1",                           USAGE,      "--keep"),
    ("streams trim orders --keep 99999999999999999999",         USAGE,      "--keep"),
    ("streams trim orders --before now",                        USAGE,      "--keep 0"),
    ("groups seek orders billing 5-",                           USAGE,      "PLACE is '5-'; write an entry ID"),
    ("streams trim orders --before 5-",                         USAGE,      "--before is '5-'; write an entry ID"),
    ("groups create orders new --start 5-",                     USAGE,      "--start is '5-'; write an entry ID"),
    ("groups create orders new --start 1-99999999999999999999", USAGE,      "is no entry ID"),
    ("publish orders",                                          USAGE,      "nothing to publish"),
    ("publish orders tea",                                      USAGE,      "'tea' is neither NAME=TEXT nor"),
    ("publish orders =tea",                                     USAGE,      "neither NAME=TEXT nor NAME:=JSON"),
    ("publish orders :=1",                                      USAGE,      "neither NAME=TEXT nor NAME:=JSON"),
    ("publish orders a=1 a=2",                                  USAGE,      "'a' is given twice"),
    ("publish orders a:=tru",                                   USAGE,      "the value of 'a' is not JSON"),
    ("publish orders a:=",                                      USAGE,      "the value of 'a' is not JSON"),
    ("publish orders --json {{oops",                            USAGE,      "--json is not JSON"),
    ("publish orders --json 1 a=b",                             USAGE,      "not both"),
    ("publish orders a=\udcff",                                 USAGE,      "is not UTF-8"),
    ("publish orders a=b --header x",                           USAGE,      "header 'x' is not NAME=TEXT"),
    ("publish orders - --id 1",                                 USAGE,      "do not go with it"),
    ("publish orders a=b --colour red",                         USAGE,      "--colour"),
    ("publish",                                                 USAGE,      "STREAM"),
    ("groups create orders",                                    USAGE,      "GROUP"),
    ("streams ls one two",                                      USAGE,      "two"),
    ("streams eat orders",                                      USAGE,      "eat"),
    ("sing",                                                    USAGE,      "sing"),
]  # fmt: skip


@pytest.mark.parametrize(("line", "code", "words"), COMMANDS, ids=[line for line, *_ in COMMANDS])
def test_a_wrong_command_is_explained(places: dict[str, Any], line: str, code: int, words: str) -> None:
    arguments = [word.encode("utf-8", "surrogateescape") for word in line.replace("{{", "{").split(" ")]

    ended = headrace(*arguments, url=places["ours"])

    assert (ended.code, ended.out) == (code, "")
    assert words in ended.err
    assert ended.err.startswith("headrace: ") and is_one_sentence(ended.err)


@pytest.mark.parametrize(
    "arguments",
    [
        ["publish", "", "a=b"],
        ["groups", "create", "orders", ""],
        ["tail", "orders", "--group", "billing", "--ack", "--consumer", ""],
        ["claim", "orders", "billing", "5-0", "--consumer", ""],
    ],
)
def test_an_empty_name_is_refused(places: dict[str, Any], arguments: list[str]) -> None:
    ended = headrace(*arguments, url=places["ours"])

    assert ended.code == USAGE
    assert "is empty" in ended.err and is_one_sentence(ended.err)


@pytest.mark.parametrize("stdin", [b"tea\n", b"\xff\xfe\n", b"{}{}\n", b"[" * 100_000, b"\x00"])
def test_input_that_is_not_json_is_refused_by_its_line(places: dict[str, Any], stdin: bytes) -> None:
    ended = headrace("publish", "from-stdin", "-", url=places["ours"], stdin=stdin)

    assert ended.code == FAILURE
    assert "line 1 is not JSON" in ended.err and is_one_sentence(ended.err)


def test_a_name_that_is_not_utf8_is_a_name_like_any_other(places: dict[str, Any]) -> None:
    assert headrace("publish", b"caf\xe9", "a=b", url=places["ours"]).code == 0
    assert headrace("streams", "info", b"caf\xe9", url=places["ours"]).row["stream"] == "caf\\xe9"


# Python


def opened(url: str, **options: Any) -> Callable[[dict[str, Any]], object]:
    def call(places: dict[str, Any]) -> object:
        with Client(url.format(**places), timeout="200ms", **options) as client:
            return client.ping()

    return call


def with_orders(call: Callable[[Any], object]) -> Callable[[dict[str, Any]], object]:
    """The call on the stream "orders"."""

    def run(places: dict[str, Any]) -> object:
        with Client(places["ours"]) as client:
            return call(client.stream("orders"))

    return run


def with_billing(call: Callable[[Any], object]) -> Callable[[dict[str, Any]], object]:
    return with_orders(lambda orders: call(orders.group("billing")))


def elsewhere(name: str, call: Callable[[Any], object]) -> Callable[[dict[str, Any]], object]:
    return with_orders(lambda orders: call(orders.client.stream(name)))


CALLS = [
    # what is tried, where, and what is raised with which words
    ("no URL", lambda places: Client(""), ConfigError, "HEADRACE_URL"),
    ("another scheme", opened("amqp://localhost"), ConfigError, "begin with amqp:"),
    ("a password with a slash", opened("redis://:s3cret/@localhost"), ConfigError, "%2F"),
    ("a timeout in words", lambda places: Client("redis://x", timeout="soon"), ConfigError, "timeout is 'soon'"),
    ("a protocol of the future", opened("redis://127.0.0.1", protocol=4), ConfigError, "neither 2 nor 3"),
    ("nobody there", opened("redis://:s3cret@127.0.0.1:1"), Unreachable, "Cannot reach redis://127.0.0.1:1"),
    ("no cluster there", opened("redis+cluster://:s3cret@127.0.0.1:1"), Unreachable, "Cannot reach redis+cluster://"),
    ("somebody else there", opened("redis://127.0.0.1:{web}"), ProtocolError, "does not speak the Redis protocol"),
    ("a wrong password", opened("redis://:s3cretX@127.0.0.1:{locked}"), AccessDenied, "password"),
    ("no password", opened("redis://127.0.0.1:{locked}"), AccessDenied, "password"),
    ("a missing stream", elsewhere("nothing", lambda it: it.info()), NotFound, "no stream 'nothing'"),
    ("groups of a missing stream", elsewhere("nothing", lambda it: it.groups()), NotFound, "no stream 'nothing'"),
    ("reading a missing group", with_orders(lambda it: it.group("no").read("ann")), NotFound, "no group 'no'"),
    ("pending of a missing group", with_orders(lambda it: it.group("no").pending()), NotFound, "no group 'no'"),
    ("claiming in a missing group", with_orders(lambda it: it.group("no").claim("a")), NotFound, "no group 'no'"),
    ("adding to a string", elsewhere("words", lambda it: it.add({"a": "b"})), WrongType, "but a string"),
    ("adding many to a string", elsewhere("words", lambda it: it.add_many([{"a": "b"}])), WrongType, "'words'"),
    ("following a string", elsewhere("words", lambda it: next(it.follow("beginning"))), WrongType, "'words'"),
    ("an ID in words", with_orders(lambda it: it.get("abc")), CommandError, "ID"),
    ("an ID that has passed", with_orders(lambda it: it.add({"a": "b"}, id="1-0")), CommandError, "ID"),
    ("a place in words", with_orders(lambda it: it.range(since="yesterday")), ConfigError, "since is 'yesterday'"),
    ("a duration in words", with_billing(lambda it: it.pending(min_idle="soon")), ConfigError, "min_idle is 'soon'"),
    ("a negative duration", with_billing(lambda it: it.claim("ann", min_idle=-1)), ConfigError, "min_idle is -1"),
    ("a negative limit", with_billing(lambda it: it.pending(limit=-1)), ConfigError, "limit is -1"),
    ("a huge count", with_orders(lambda it: it.range(count=10**30)), CommandError, "integer"),
    ("a negative length", with_orders(lambda it: it.add({"a": "b"}, max_length=-1)), ConfigError, "max_length is -1"),
    ("trimming what?", with_orders(lambda it: it.trim()), ConfigError, "keep=NUMBER or before=PLACE"),
    ("keeping less than nothing", with_orders(lambda it: it.trim(keep=-1)), ConfigError, "keep is -1"),
    ("trimming before now", with_orders(lambda it: it.trim(before="now")), ConfigError, "keep=0"),
    ("trimming what is needed", with_orders(lambda it: it.trim(keep=0)), Refused, "group 'billing'"),
    ("an entry of nothing", with_orders(lambda it: it.add({})), ConfigError, "at least one field"),
    ("a field of a list", with_orders(lambda it: it.add({"a": [1]})), ConfigError, "cannot hold a list"),
    ("a payload of anything", with_orders(lambda it: it.publish(object())), ConfigError, "cannot publish an object"),
    ("an entry of text", with_orders(lambda it: it.add("abc")), ConfigError, "the fields of an entry are a str; give"),
    ("an entry of a number", with_orders(lambda it: it.add(5)), ConfigError, "the fields of an entry are an int;"),
    ("an entry of words", with_orders(lambda it: it.add(["ab", "cd"])), ConfigError, "pairs of name and value"),
    (
        "an entry for many",
        with_orders(lambda it: it.add_many({"a": "b"})),
        ConfigError,
        "the entries to add are a dict",
    ),
    ("nothing for many", with_orders(lambda it: it.publish_many(None)), ConfigError, "to publish are a NoneType"),
    (
        "a consumer with pending entries",
        with_billing(lambda it: it.delete_consumer("ann")),
        Refused,
        "1 pending entry,",
    ),
]


@pytest.mark.parametrize(("call", "kind", "words"), [row[1:] for row in CALLS], ids=[row[0] for row in CALLS])
def test_a_wrong_call_is_explained(
    places: dict[str, Any],
    monkeypatch: pytest.MonkeyPatch,
    call: Callable[[dict[str, Any]], object],
    kind: type[HeadraceError],
    words: str,
) -> None:
    monkeypatch.delenv("HEADRACE_URL", raising=False)

    with pytest.raises(kind) as raised:
        call(places)

    assert words in str(raised.value)
    assert is_one_sentence(str(raised.value))


def test_a_client_never_shows_its_password() -> None:
    with Client("redis://ann:s3cret@localhost:7379/2") as client:
        assert PASSWORD not in f"{client!r} {client.url} {client.stream('orders')!r} {vars(client)}"
        assert client.url == "redis://localhost:7379/2"
