"""XGROUP (requirements, section 6)."""

import pytest

from support.session import Session

NO_KEY = (
    "-ERR The XGROUP subcommand requires the key to exist. Note that for CREATE you may want to use the MKSTREAM "
    "option to create an empty stream automatically."
)
THREE = "\n".join(f"> XADD s {i}-0 n {i}" for i in range(1, 4))


@pytest.mark.parametrize(
    ("start", "delivered"),
    [("0", [1, 2, 3]), ("0-0", [1, 2, 3]), ("2-0", [3]), ("1", [2, 3]), ("$", []), ("99-0", [])],
)
def test_a_group_begins_after_its_start_id(talk: Session, start: str, delivered: list[int]) -> None:
    """Row 71."""
    entries = ", ".join(f'["{i}-0", ["n", "{i}"]]' for i in delivered)
    talk.play(
        THREE
        + f"""
        > XGROUP CREATE s g {start}
        +OK
        > XREADGROUP GROUP g c STREAMS s >
        {f'[["s", [{entries}]]]' if entries else "(nil array)"}
        """
    )


def test_a_group_at_the_end_gets_later_entries_only(talk: Session) -> None:
    """Row 71."""
    talk.play(
        THREE
        + """
        > XGROUP CREATE s g $
        +OK
        > XADD s 4-0 n 4
        > XREADGROUP GROUP g c STREAMS s >
        [["s", [["4-0", ["n", "4"]]]]]
        """
    )


@pytest.mark.parametrize(
    "command",
    ["CREATE s g $", "CREATE s g 0", "SETID s g $", "DESTROY s g", "CREATECONSUMER s g c", "DELCONSUMER s g c"],
)
def test_a_missing_stream_is_an_error(talk: Session, command: str) -> None:
    """Row 72."""
    talk.play(f"> XGROUP {command}\n{NO_KEY}\n> EXISTS s\n:0")


def test_mkstream_creates_an_empty_stream(talk: Session) -> None:
    """Row 73."""
    talk.play("""
        > XGROUP CREATE n g $ MKSTREAM
        +OK
        > XLEN n
        :0
        > TYPE n
        +stream
        > XADD n 1-0 f v
        > XREADGROUP GROUP g c STREAMS n >
        [["n", [["1-0", ["f", "v"]]]]]
    """)


def test_a_group_is_created_once(talk: Session) -> None:
    """Row 74."""
    talk.play("""
        > XGROUP CREATE s g $ MKSTREAM
        +OK
        > XGROUP CREATE s g 0 MKSTREAM
        -BUSYGROUP Consumer Group name already exists
        > XGROUP CREATE s G $
        +OK
    """)


def test_the_read_counter_can_be_given(talk: Session) -> None:
    """Row 75."""
    talk.play(
        THREE
        + """
        > XGROUP CREATE s g 1-0 ENTRIESREAD 1
        +OK
        > XINFO GROUPS s
        [[..., "entries-read", :1, "lag", :2]]
        > XGROUP CREATE s h 0 ENTRIESREAD -3
        -ERR value for ENTRIESREAD must be positive or -1
        > XGROUP CREATE s h 0 ENTRIESREAD x
        -ERR value is not an integer or out of range
        > XGROUP SETID s g 2-0 ENTRIESREAD 2
        +OK
        > XINFO GROUPS s
        [[..., "last-delivered-id", "2-0", "entries-read", :2, "lag", :1]]
        > XDEL s 2-0
        > XGROUP SETID s g 1-0 ENTRIESREAD -1
        +OK
        > XINFO GROUPS s
        [[..., "last-delivered-id", "1-0", "entries-read", (nil), "lag", (nil)]]
        """
    )


@pytest.mark.since("8.0")
def test_the_read_counter_never_passes_the_entries_added(talk: Session) -> None:
    """Row 75."""
    talk.play(
        THREE
        + """
        > XGROUP CREATE s g 0 ENTRIESREAD 100
        +OK
        > XINFO GROUPS s
        [[..., "entries-read", :3, "lag", :3]]
        > XGROUP CREATE s h 0
        > XGROUP SETID s h 1-0 ENTRIESREAD 100
        +OK
        > XINFO GROUPS s
        [<any>, [..., "entries-read", :3, "lag", :0]]
        """
    )


def test_the_cursor_of_a_group_can_be_moved(talk: Session) -> None:
    """Row 76."""
    talk.play(
        THREE
        + """
        > XGROUP CREATE s g 0
        > XREADGROUP GROUP g c STREAMS s >
        > XGROUP SETID s g 1-0
        +OK
        > XPENDING s g
        [:3, "1-0", "3-0", [["c", "3"]]]
        > XREADGROUP GROUP g d STREAMS s >
        [["s", [["2-0", ["n", "2"]], ["3-0", ["n", "3"]]]]]
        > XPENDING s g
        [:3, "1-0", "3-0", [["c", "1"], ["d", "2"]]]
        > XGROUP SETID s g $
        +OK
        > XREADGROUP GROUP g d STREAMS s >
        (nil array)
        > XGROUP SETID s nog 0
        -NOGROUP No such consumer group 'nog' for key name 's'
        > XGROUP SETID s g x
        -ERR Invalid stream ID specified as stream command argument
        """
    )


def test_a_group_can_be_destroyed_with_everything_in_it(talk: Session) -> None:
    """Row 77."""
    talk.play(
        THREE
        + """
        > XGROUP CREATE s g 0
        > XREADGROUP GROUP g c STREAMS s >
        > XGROUP DESTROY s g
        :1
        > XGROUP DESTROY s g
        :0
        > XINFO GROUPS s
        []
        > XLEN s
        :3
        > XPENDING s g
        -NOGROUP No such key 's' or consumer group 'g'
        """
    )


def test_consumer_names_are_case_sensitive(talk: Session) -> None:
    """Row 78."""
    talk.play("""
        > XGROUP CREATE s g $ MKSTREAM
        > XGROUP CREATECONSUMER s g Alice
        :1
        > XGROUP CREATECONSUMER s g Alice
        :0
        > XGROUP CREATECONSUMER s g alice
        :1
        > XINFO CONSUMERS s g
        [["name", "Alice", ...], ["name", "alice", ...]]
        > XGROUP CREATECONSUMER s nog Alice
        -NOGROUP No such consumer group 'nog' for key name 's'
    """)


def test_a_consumer_appears_when_it_reads_or_claims(talk: Session) -> None:
    """Row 79."""
    talk.play(
        THREE
        + """
        > XGROUP CREATE s g 0
        > XREADGROUP GROUP g reader COUNT 1 STREAMS s >
        > XREADGROUP GROUP g historian STREAMS s 0
        > XCLAIM s g claimer 0 1-0
        > XAUTOCLAIM s g scanner 0 0
        > XINFO CONSUMERS s g
        [["name", "claimer", "pending", :0, ...], ["name", "historian", "pending", :0, ...],
         ["name", "reader", "pending", :0, ...], ["name", "scanner", "pending", :1, ...]]
        """
    )


@pytest.mark.since("7.2")
@pytest.mark.parametrize(
    "mention",
    [
        "XREADGROUP GROUP g c STREAMS s >",
        "XREADGROUP GROUP g c STREAMS s 0",
        "XCLAIM s g c 0 1-0",
        "XAUTOCLAIM s g c 0 0",
    ],
)
def test_a_consumer_appears_also_when_there_is_nothing_for_it(talk: Session, mention: str) -> None:
    """Row 79."""
    talk.play(f"""
        > XGROUP CREATE s g $ MKSTREAM
        > {mention}
        <any>
        > XINFO CONSUMERS s g
        [["name", "c", "pending", :0, ...]]
    """)


def test_deleting_a_consumer_drops_its_pending_entries(talk: Session) -> None:
    """Row 80."""
    talk.play(
        THREE
        + """
        > XGROUP CREATE s g 0
        > XREADGROUP GROUP g c COUNT 2 STREAMS s >
        > XREADGROUP GROUP g d STREAMS s >
        > XPENDING s g
        [:3, "1-0", "3-0", [["c", "2"], ["d", "1"]]]
        > XGROUP DELCONSUMER s g c
        :2
        > XPENDING s g
        [:1, "3-0", "3-0", [["d", "1"]]]
        > XREADGROUP GROUP g d STREAMS s >
        (nil array)
        > XGROUP DELCONSUMER s g c
        :0
        > XGROUP DELCONSUMER s nog c
        -NOGROUP No such consumer group 'nog' for key name 's'
        """
    )


def test_groups_are_independent(talk: Session) -> None:
    """Row 82."""
    talk.play(
        THREE
        + """
        > XADD t 9-0 n 9
        > XGROUP CREATE s a 0
        > XGROUP CREATE s b 0
        > XGROUP CREATE t a 0
        > XREADGROUP GROUP a c STREAMS s >
        > XREADGROUP GROUP b c STREAMS s >
        > XACK s a 1-0 2-0 3-0
        :3
        > XPENDING s a
        [:0, (nil), (nil), (nil array)]
        > XPENDING s b
        [:3, "1-0", "3-0", [["c", "3"]]]
        > XREADGROUP GROUP a c STREAMS s t > >
        [["t", [["9-0", ["n", "9"]]]]]
        """
    )


def test_a_consumer_finds_its_history_after_a_reconnect(talk: Session) -> None:
    """Row 83."""
    talk.play(
        THREE
        + """
        > XGROUP CREATE s g 0
        first> XREADGROUP GROUP g alice COUNT 2 STREAMS s >
        [["s", [["1-0", ["n", "1"]], ["2-0", ["n", "2"]]]]]
        """
    )
    talk.wire("first").close()
    talk.play("""
        second> XREADGROUP GROUP g alice STREAMS s 0
        [["s", [["1-0", ["n", "1"]], ["2-0", ["n", "2"]]]]]
        second> XREADGROUP GROUP g bob STREAMS s 0
        [["s", []]]
    """)


def test_mistakes_are_named(talk: Session) -> None:
    """Rows 71, 72."""
    talk.play("""
        > XADD s 1-0 f v
        > XGROUP CREATE s g x
        -ERR Invalid stream ID specified as stream command argument
        > XGROUP CREATE s g
        -ERR wrong number of arguments for 'xgroup|create' command
        > XGROUP CREATE s g $ FOO
        -ERR unknown subcommand or wrong number of arguments for 'CREATE'. Try XGROUP HELP.
        > XGROUP FOO s g
        -ERR unknown subcommand 'FOO'. Try XGROUP HELP.
        > XGROUP
        -ERR wrong number of arguments for 'xgroup' command
        > XINFO GROUPS s
        []
    """)


def test_help_lists_the_subcommands(talk: Session) -> None:
    """Row 158."""
    reply = talk.wire()("XGROUP HELP")
    assert reply[0] == "XGROUP <subcommand> [<arg> [value] [opt] ...]. Subcommands are:"
    words = {line.split()[0] for line in reply[1:] if not line.startswith(" ")}
    assert words == {"CREATE", "CREATECONSUMER", "DELCONSUMER", "DESTROY", "SETID", "HELP"}
