"""XINFO (requirements, section 12)."""

import pytest

from support.servers import Server
from support.session import Session
from support.wire import Map, Wire

SIX = "\n".join(f"> XADD s {i}-0 n {i}" for i in range(1, 7)) + "\n> XGROUP CREATE s g 0\n"

STREAM_PAIRS = [
    "length", "radix-tree-keys", "radix-tree-nodes", "last-generated-id", "max-deleted-entry-id", "entries-added",
    "recorded-first-entry-id", "groups", "first-entry", "last-entry",
]  # fmt: skip
IDMP_PAIRS = [
    "idmp-duration", "idmp-maxsize", "pids-tracked", "iids-tracked", "iids-added", "iids-duplicates",
]  # fmt: skip


def expected_stream_pairs(server: Server, *, full: bool = False) -> list[str]:
    idmp = IDMP_PAIRS if server.dialect >= (8, 6) else []
    head = STREAM_PAIRS[:7] + idmp
    return head + (["entries", "groups"] if full else STREAM_PAIRS[7:])


def names(flat: list[bytes]) -> list[str]:
    return [name.decode() for name in flat[::2]]


def test_a_stream_is_described_by_pairs_in_a_fixed_order(server: Server, talk: Session) -> None:
    """Row 151."""
    talk.play(
        SIX
        + """
        > XINFO STREAM s
        ["length", :6, "radix-tree-keys", :1, "radix-tree-nodes", :2, "last-generated-id", "6-0",
         "max-deleted-entry-id", "0-0", "entries-added", :6, "recorded-first-entry-id", "1-0", ..., "groups", :1,
         "first-entry", ["1-0", ["n", "1"]], "last-entry", ["6-0", ["n", "6"]]]
        """
    )
    assert names(talk.wire()("XINFO STREAM s")) == expected_stream_pairs(server)


@pytest.mark.since("8.6")
def test_a_stream_description_has_32_elements(client: Wire) -> None:
    """Row 151."""
    client("XADD s 1-0 f v")
    reply = client("XINFO STREAM s")
    assert len(reply) == 32
    assert reply[14:26] == [
        b"idmp-duration", 100, b"idmp-maxsize", 100, b"pids-tracked", 0, b"iids-tracked", 0, b"iids-added", 0,
        b"iids-duplicates", 0,
    ]  # fmt: skip


def test_an_empty_stream_has_no_first_and_last_entry(talk: Session) -> None:
    """Rows 32, 151."""
    talk.play(
        SIX
        + """
        > XTRIM s MAXLEN 0
        > XINFO STREAM s
        ["length", :0, ..., "last-generated-id", "6-0", "max-deleted-entry-id", "0-0", "entries-added", :6,
         "recorded-first-entry-id", "0-0", ..., "groups", :1, "first-entry", (nil), "last-entry", (nil)]
        """
    )


def test_the_description_is_a_map_in_resp3(server: Server, talk3: Session) -> None:
    """Row 151."""
    talk3.play(SIX)
    reply = talk3.wire()("XINFO STREAM s")
    assert isinstance(reply, Map)
    assert [name.decode() for name in reply] == expected_stream_pairs(server)
    talk3.play("""
        > XINFO GROUPS s
        [{"name": "g", "consumers": :0, "pending": :0, "last-delivered-id": "0-0", "entries-read": _, "lag": :6}]
        > XTRIM s MAXLEN 0
        > XINFO STREAM s
        {..., "first-entry": _, "last-entry": _}
    """)


def test_the_full_description_holds_entries_groups_and_consumers(server: Server, talk: Session) -> None:
    """Row 152."""
    talk.play(
        SIX
        + """
        > XREADGROUP GROUP g c COUNT 2 STREAMS s >
        > XREADGROUP GROUP g d COUNT 1 STREAMS s >
        > XGROUP CREATE s h $
        > XINFO STREAM s FULL
        ["length", :6, ..., "entries-added", :6, ..., "entries", [["1-0", ["n", "1"]], ..., ["6-0", ["n", "6"]]],
         "groups", [
          ["name", "g", "last-delivered-id", "3-0", "entries-read", :3, "lag", :3, "pel-count", :3, ...,
           "pending", [["1-0", "c", :<t1>, :1], ["2-0", "c", :<t1>, :1], ["3-0", "d", :<t3>, :1]],
           "consumers", [
            ["name", "c", "seen-time", :<any>, ..., "pel-count", :2,
             "pending", [["1-0", :<t1>, :1], ["2-0", :<t1>, :1]]],
            ["name", "d", "seen-time", :<any>, ..., "pel-count", :1, "pending", [["3-0", :<t3>, :1]]]]],
          ["name", "h", "last-delivered-id", "6-0", "entries-read", (nil), "lag", :0, "pel-count", :0, ...,
           "pending", [], "consumers", []]]]
        """
    )
    assert names(talk.wire()("XINFO STREAM s FULL")) == expected_stream_pairs(server, full=True)
    assert abs(server.now_ms() - int(talk.bound["t1"])) < 60_000


@pytest.mark.since("7.2")
def test_the_full_description_tells_when_a_consumer_last_succeeded(talk: Session) -> None:
    """Row 152."""
    talk.play(
        SIX
        + """
        > XREADGROUP GROUP g c COUNT 2 STREAMS s >
        > XGROUP CREATECONSUMER s g idle
        > XINFO STREAM s FULL
        [..., "groups", [[..., "consumers", [
            ["name", "c", "seen-time", :1600000000000+, "active-time", :1600000000000+, "pel-count", :2, ...],
            ["name", "idle", "seen-time", :1600000000000+, "active-time", :-1, "pel-count", :0, ...]]]]]
        """
    )


def test_the_full_description_can_be_limited(client: Wire) -> None:
    """Row 152."""
    client.pipeline([("XADD", "s", f"{i}-0", "n", i) for i in range(1, 21)])
    client("XGROUP CREATE s g 0")
    client("XREADGROUP GROUP g c STREAMS s >")

    def lengths(command: str) -> tuple[int, int, int]:
        reply = dict(zip(*[iter(client(command))] * 2, strict=True))  # type: ignore[list-item]
        group = dict(zip(*[iter(reply[b"groups"][0])] * 2, strict=True))
        consumer = dict(zip(*[iter(group[b"consumers"][0])] * 2, strict=True))
        assert (group[b"pel-count"], consumer[b"pel-count"]) == (20, 20)
        return len(reply[b"entries"]), len(group[b"pending"]), len(consumer[b"pending"])

    assert lengths("XINFO STREAM s FULL") == (10, 10, 10)
    assert lengths("XINFO STREAM s FULL COUNT 3") == (3, 3, 3)
    assert lengths("XINFO STREAM s FULL COUNT 0") == (20, 20, 20)


def test_groups_are_described_by_twelve_elements_each(talk: Session) -> None:
    """Rows 153, 154."""
    talk.play(
        SIX
        + """
        > XGROUP CREATE s b $
        > XREADGROUP GROUP g c COUNT 4 STREAMS s >
        > XACK s g 1-0
        > XINFO GROUPS s
        [["name", "b", "consumers", :0, "pending", :0, "last-delivered-id", "6-0", "entries-read", <any>, "lag", :0],
         ["name", "g", "consumers", :1, "pending", :3, "last-delivered-id", "4-0", "entries-read", :4, "lag", :2]]
        > XREADGROUP GROUP g c STREAMS s >
        > XINFO GROUPS s
        [<any>, [..., "entries-read", :6, "lag", :0]]
        """
    )


def test_the_lag_counts_what_was_not_delivered(talk: Session) -> None:
    """Row 154."""
    talk.play(
        SIX
        + """
        > XINFO GROUPS s
        [[..., "entries-read", (nil), "lag", :6]]
        > XREADGROUP GROUP g c COUNT 1 STREAMS s >
        > XINFO GROUPS s
        [[..., "entries-read", :1, "lag", :5]]
        > XDEL s 3-0
        > XINFO GROUPS s
        [[..., "entries-read", :1, "lag", (nil)]]
        > XREADGROUP GROUP g c STREAMS s >
        > XINFO GROUPS s
        [[..., "entries-read", :6, "lag", :0]]
        > XGROUP SETID s g 2-0
        > XINFO GROUPS s
        [[..., "entries-read", (nil), "lag", (nil)]]
        """
    )


def test_consumers_are_described(server: Server, talk: Session) -> None:
    """Row 155."""
    talk.play(
        SIX
        + """
        > XREADGROUP GROUP g busy COUNT 2 STREAMS s >
        > XGROUP CREATECONSUMER s g idle
        > XINFO CONSUMERS s g
        [["name", "busy", "pending", :2, "idle", :0+, ...], ["name", "idle", "pending", :0, "idle", :0+, ...]]
        > XGROUP CREATE s empty 0
        > XINFO CONSUMERS s empty
        []
        """
    )
    sizes = {len(consumer) for consumer in talk.wire()("XINFO CONSUMERS s g")}
    assert sizes == {8 if server.dialect >= (7, 2) else 6}


@pytest.mark.since("7.2")
def test_a_consumer_that_never_got_anything_is_inactive(talk: Session) -> None:
    """Row 155."""
    talk.play("""
        > XGROUP CREATE s g $ MKSTREAM
        > XREADGROUP GROUP g c STREAMS s >
        > XINFO CONSUMERS s g
        [["name", "c", "pending", :0, "idle", :0+, "inactive", :-1]]
        > XADD s 1-0 f v
        > XREADGROUP GROUP g c STREAMS s >
        > XINFO CONSUMERS s g
        [["name", "c", "pending", :1, "idle", :0+, "inactive", :0+]]
    """)


def test_mistakes_are_named(talk: Session) -> None:
    """Row 157."""
    talk.play(
        SIX
        + """
        > XINFO STREAM missing
        -ERR no such key
        > XINFO GROUPS missing
        -ERR no such key
        > XINFO CONSUMERS missing g
        -ERR no such key
        > XINFO CONSUMERS s nog
        -NOGROUP No such consumer group 'nog' for key name 's'
        > XINFO FOO s
        -ERR unknown subcommand 'FOO'. Try XINFO HELP.
        > XINFO STREAM
        -ERR wrong number of arguments for 'xinfo|stream' command
        > XINFO CONSUMERS s
        -ERR wrong number of arguments for 'xinfo|consumers' command
        > XINFO STREAM s FULL COUNT x
        -ERR value is not an integer or out of range
        > XINFO STREAM s FULL 3
        -ERR unknown subcommand or wrong number of arguments for 'STREAM'. Try XINFO HELP.
        > XINFO STREAM s PART
        -ERR unknown subcommand or wrong number of arguments for 'STREAM'. Try XINFO HELP.
        > XINFO
        -ERR wrong number of arguments for 'xinfo' command
        """
    )


def test_help_lists_the_subcommands(client: Wire) -> None:
    """Row 158."""
    reply = client("XINFO HELP")
    assert reply[0] == "XINFO <subcommand> [<arg> [value] [opt] ...]. Subcommands are:"
    assert {line.split()[0] for line in reply[1:] if not line.startswith(" ")} == {
        "CONSUMERS", "GROUPS", "STREAM", "HELP",
    }  # fmt: skip


def test_a_description_changes_nothing(talk: Session) -> None:
    """Rows 152, 153, 155."""
    talk.play(
        SIX
        + """
        > XREADGROUP GROUP g c COUNT 2 STREAMS s >
        > XINFO STREAM s FULL
        > XINFO GROUPS s
        > XINFO CONSUMERS s g
        > XPENDING s g - + 10
        [["1-0", "c", :0+, :1], ["2-0", "c", :0+, :1]]
        > XREADGROUP GROUP g c COUNT 1 STREAMS s >
        [["s", [["3-0", ["n", "3"]]]]]
        """
    )
