"""COMMAND and what is derived from the declarations: descriptions, syntax lines, docs pages."""

from __future__ import annotations

import pytest

import headrace.commands.table
from headrace.commands.catalogue import every_command, find_by_path, pages, syntax
from support.memory import MemoryBroker, Refusal

assert headrace.commands.table.MODULES


def test_every_command_is_described(broker: MemoryBroker) -> None:
    described = broker("COMMAND")
    assert len(described) == broker("COMMAND COUNT")
    assert all(len(facts) == 10 for facts in described)


def test_info_of_a_command_with_a_fixed_key(broker: MemoryBroker) -> None:
    name, arity, flags, first, last, step, categories, _, places, subcommands = broker("COMMAND INFO xack")[0]
    assert (name, arity, first, last, step) == (b"xack", -4, 1, 1, 1)
    assert sorted(flags) == [b"fast", b"write"]
    assert sorted(categories) == [b"@fast", b"@stream", b"@write"]
    assert len(places) == 1
    assert subcommands == []


@pytest.mark.parametrize(
    ("name", "keys"),
    [
        ("del", [1, -1, 1]),
        ("blpop", [1, -2, 1]),
        ("mset", [1, -1, 2]),
        ("rename", [1, 2, 1]),
        ("xread", [0, 0, 0]),
        ("lmpop", [0, 0, 0]),
        ("sort", [1, 1, 1]),
        ("object|encoding", [2, 2, 1]),
        ("ping", [0, 0, 0]),
    ],
)
def test_key_places_follow_from_the_arguments(broker: MemoryBroker, name: str, keys: list[int]) -> None:
    assert broker(f"COMMAND INFO {name}")[0][3:6] == keys


def test_subcommands_are_listed_under_their_command(broker: MemoryBroker) -> None:
    names = [facts[0] for facts in broker("COMMAND INFO xgroup")[0][9]]
    assert b"xgroup|create" in names and b"xgroup|help" in names
    assert broker("COMMAND INFO nosuch xgroup|nosuch") == [None, None]


def test_docs_hold_arguments_with_their_options(broker: MemoryBroker) -> None:
    _, flat = broker("COMMAND DOCS xtrim")
    docs = dict(zip(flat[::2], flat[1::2], strict=True))
    assert docs[b"group"] == b"stream"
    arguments = [dict(zip(item[::2], item[1::2], strict=True)) for item in docs[b"arguments"]]
    assert [argument[b"name"] for argument in arguments] == [b"key", b"trim"]
    assert arguments[0][b"key_spec_index"] == 0


def test_names_can_be_filtered(broker: MemoryBroker) -> None:
    assert broker("COMMAND LIST FILTERBY PATTERN xadd*") == [b"xadd"]
    assert b"client|list" in broker("COMMAND LIST")
    assert b"xadd" in broker("COMMAND LIST FILTERBY ACLCAT stream")
    assert broker("COMMAND LIST FILTERBY MODULE any") == []
    assert broker("COMMAND LIST FILTERBY WHAT x") == Refusal("ERR syntax error")


@pytest.mark.parametrize(
    ("words", "keys"),
    [
        ("SET a b", [b"a"]),
        ("DEL a b c", [b"a", b"b", b"c"]),
        ("BLPOP a b 0", [b"a", b"b"]),
        ("LMPOP 2 a b LEFT", [b"a", b"b"]),
        ("BLMPOP 0 1 a LEFT COUNT 2", [b"a"]),
        ("SORT a ALPHA", [b"a"]),
        ("SORT a STORE b ALPHA", [b"a", b"b"]),
        ("MSET a 1 b 2", [b"a", b"b"]),
        ("XREAD COUNT 1 STREAMS a b 0 0", [b"a", b"b"]),
        ("XREADGROUP GROUP streams c STREAMS a >", [b"a"]),
        ("XGROUP CREATE a g 0", [b"a"]),
    ],
)
def test_keys_are_found_among_the_words(broker: MemoryBroker, words: str, keys: list[bytes]) -> None:
    assert broker(f"COMMAND GETKEYS {words}") == keys


def test_keys_come_with_what_is_done_to_them(broker: MemoryBroker) -> None:
    assert broker("COMMAND GETKEYSANDFLAGS RENAME a b") == [
        [b"a", [b"RW", b"access", b"delete"]],
        [b"b", [b"OW", b"update"]],
    ]


@pytest.mark.parametrize(
    ("words", "error"),
    [
        ("GETKEYS nosuch", "ERR Invalid command specified"),
        ("GETKEYS PING", "ERR The command has no key arguments"),
        ("GETKEYS GET", "ERR Invalid number of arguments specified for command"),
        ("GETKEYS LMPOP 4 a b LEFT", "ERR Invalid arguments specified for command"),
        ("GETKEYS LMPOP 0 a LEFT", "ERR Invalid arguments specified for command"),
        ("GETKEYS", "ERR wrong number of arguments for 'command|getkeys' command"),
        ("NOSUCH", "ERR unknown subcommand 'NOSUCH'. Try COMMAND HELP."),
    ],
)
def test_what_has_no_keys_is_refused(broker: MemoryBroker, words: str, error: str) -> None:
    assert broker(f"COMMAND {words}") == Refusal(error)


def test_the_syntax_line_reads_as_one_would_type_it() -> None:
    lines = {
        "xack": "XACK key group id [id ...]",
        "xtrim": "XTRIM key <MAXLEN | MINID> [= | ~] threshold [LIMIT count] [KEEPREF | DELREF | ACKED]",
        "mset": "MSET key value [key value ...]",
        "client|list": "CLIENT LIST [TYPE <NORMAL | MASTER | REPLICA | PUBSUB>] [ID client-id [client-id ...]]",
        "hello": "HELLO [protover [AUTH username password] [SETNAME clientname]]",
    }
    for name, line in lines.items():
        made = find_by_path(name.encode())
        assert made is not None
        assert syntax(made) == line


def test_every_command_has_words_of_its_own() -> None:
    for made in every_command():
        assert made.summary.endswith((".", "?")), made.full_name
        assert made.complexity, made.full_name
        assert made.since, made.full_name


def test_pages_name_every_command_once() -> None:
    text = "\n".join(pages().values())
    for made in every_command():
        title = made.full_name.replace("|", " ").upper()
        heading = "###" if "|" in made.full_name else "##"
        assert text.count(f"\n{heading} {title}\n") == 1
