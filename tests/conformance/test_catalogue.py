"""COMMAND INFO, COMMAND DOCS and COMMAND GETKEYS (row 296)."""

import json
from pathlib import Path

import pytest

from support.catalogue import DESCRIBED, STREAM_COMMANDS, describe_recorded
from support.notation import render
from support.servers import Server
from support.session import Session
from support.wire import NULL, NULL_BULK, Map, Wire

FOLDER = Path(__file__).parent / "recorded"
RECORDED = {file: json.loads((FOLDER / f"{file}.json").read_text())["commands"] for file in DESCRIBED}
NAMES = [(file, name) for file, commands in RECORDED.items() for name in commands]


@pytest.mark.since("8.6")
@pytest.mark.parametrize("file", DESCRIBED)
def test_every_command_is_described(server: Server, file: str) -> None:
    """Row 296."""
    assert sorted(describe_recorded(server, file)) == sorted(RECORDED[file])


@pytest.mark.since("8.6")
@pytest.mark.parametrize(("file", "name"), NAMES, ids=[name for _, name in NAMES])
def test_a_command_is_described_as_in_redis(server: Server, file: str, name: str) -> None:
    """Row 296: arity, flags, categories, keys, key specifications and arguments."""
    described = describe_recorded(server, file)[name]
    different = {
        fact: {"expected": expected, "got": described[fact]}
        for fact, expected in RECORDED[file][name].items()
        if described[fact] != expected
    }
    assert not different


def test_reading_with_a_group_is_a_write(client: Wire) -> None:
    """Row 99: so a replica refuses it."""
    (reply,) = client("COMMAND INFO xreadgroup")
    assert "write" in reply[2]
    (reply,) = client("COMMAND INFO xread")
    assert "write" not in reply[2]
    assert "readonly" in reply[2]


@pytest.mark.since("8.6")
def test_documentation_has_the_usual_parts(server: Server, talk3: Session) -> None:
    """Row 296."""
    docs = talk3.wire()("COMMAND", "DOCS", *STREAM_COMMANDS)
    assert isinstance(docs, Map)
    assert sorted(docs) == sorted(name.encode() for name in STREAM_COMMANDS)
    for name, doc in docs.items():
        assert doc[b"group"] == b"stream", name
        assert doc[b"summary"], name
        assert doc[b"since"], name


def test_documentation_is_flat_pairs_in_resp2(client: Wire) -> None:
    """Row 296."""
    name, doc = client("COMMAND DOCS xlen")
    assert name == b"xlen"
    assert dict(zip(doc[::2], doc[1::2], strict=True))[b"group"] == b"stream"


def test_names_are_found_in_any_case_and_unknown_ones_are_null(server: Server, client: Wire, talk3: Session) -> None:
    """Row 296."""
    known, unknown, sub = client("COMMAND INFO XaDd nosuchcommand XGROUP|CREATE")
    assert known[0] == b"xadd"
    assert unknown == NULL_BULK
    assert sub[0] == b"xgroup|create"
    assert client("COMMAND DOCS nosuchcommand") == []
    assert talk3.wire()("COMMAND INFO nosuchcommand") == [NULL]
    assert talk3.wire()("COMMAND DOCS nosuchcommand") == Map()


def test_the_commands_can_be_listed_and_counted(server: Server, client: Wire) -> None:
    """Row 296."""
    everything = client("COMMAND")
    names = {command[0].decode() for command in everything}
    expected = {name for name in STREAM_COMMANDS if server.kind.knows((8, 6))} or {"xadd", "xread", "xgroup", "xinfo"}
    assert expected <= names
    assert client("COMMAND COUNT") == len(everything)
    assert {name.decode() for name in client("COMMAND LIST") if b"|" not in name} == names


@pytest.mark.parametrize(
    ("command", "keys"),
    [
        ("XADD k * f v", '["k"]'),
        ("XADD k MAXLEN 5 * f v", '["k"]'),
        ("XLEN k", '["k"]'),
        ("XRANGE k - +", '["k"]'),
        ("XREVRANGE k + -", '["k"]'),
        ("XREAD STREAMS a 0", '["a"]'),
        ("XREAD COUNT 5 BLOCK 1 STREAMS a b c 0 0 0", '["a", "b", "c"]'),
        ("XREADGROUP GROUP g c STREAMS a b > >", '["a", "b"]'),
        ("XREADGROUP GROUP g STREAMS COUNT 1 STREAMS a >", '["a"]'),
        ("XDEL k 1-0", '["k"]'),
        ("XTRIM k MAXLEN 5", '["k"]'),
        ("XSETID k 1-0", '["k"]'),
        ("XACK k g 1-0", '["k"]'),
        ("XCLAIM k g c 0 1-0", '["k"]'),
        ("XAUTOCLAIM k g c 0 0", '["k"]'),
        ("XPENDING k g", '["k"]'),
        ("XGROUP CREATE k g 0", '["k"]'),
        ("XGROUP DESTROY k g", '["k"]'),
        ("XINFO STREAM k", '["k"]'),
        ("XINFO CONSUMERS k g", '["k"]'),
        ("LMOVE a b LEFT LEFT", '["a", "b"]'),
        ("BLPOP a b 0", '["a", "b"]'),
        ("LMPOP 2 a b LEFT", '["a", "b"]'),
        ("LMPOP 4 a b LEFT", "-ERR Invalid arguments specified for command"),
        ("BLMPOP 0 2 a b LEFT COUNT 5", '["a", "b"]'),
        ("SORT a ALPHA STORE b LIMIT 0 1", '["a", "b"]'),
        ("SORT_RO a", '["a"]'),
        ("PING hello", "-ERR The command has no key arguments"),
        ("XINFO HELP", "-ERR The command has no key arguments"),
        ("XLEN k more", "-ERR Invalid number of arguments specified for command"),
        ("XADD k *", "-ERR Invalid number of arguments specified for command"),
        ("NOSUCHCOMMAND k", "-ERR Invalid command specified"),
    ],
)
def test_the_keys_of_a_command_can_be_asked_for(client: Wire, command: str, keys: str) -> None:
    """Row 296."""
    assert render(client(f"COMMAND GETKEYS {command}")) == keys


@pytest.mark.since("8.6")
@pytest.mark.parametrize(
    ("command", "keys"),
    [
        ("XDELEX k IDS 1 1-0", '["k"]'),
        ("XACKDEL k g IDS 1 1-0", '["k"]'),
        ("XCFGSET k IDMP-DURATION 5", '["k"]'),
        ("XIDMPRECORD k p i 1-0", '["k"]'),
        ("XREADGROUP GROUP g c CLAIM 5 STREAMS a b > >", '["a", "b"]'),
    ],
)
def test_the_keys_of_a_newer_command_can_be_asked_for(client: Wire, command: str, keys: str) -> None:
    """Row 296."""
    assert render(client(f"COMMAND GETKEYS {command}")) == keys


def test_keys_can_be_asked_for_with_what_is_done_to_them(talk: Session) -> None:
    """Row 296."""
    talk.play("""
        > COMMAND GETKEYSANDFLAGS XLEN k
        [["k", [+"RO"]]]
        > COMMAND GETKEYSANDFLAGS XADD k * f v
        [["k", [+"RW", +"update"]]]
    """)
