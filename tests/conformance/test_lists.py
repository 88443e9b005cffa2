"""Lists: pushing, popping, reading, finding, changing, moving (rows 66, 68, 69, 301). Waiting has a file of its own."""

import pytest

from support.session import Session

WRONG_TYPE = "-WRONGTYPE Operation against a key holding the wrong kind of value"
NOT_AN_INTEGER = "-ERR value is not an integer or out of range"
OUT_OF_RANGE = "-ERR value is out of range, must be positive"
SYNTAX = "-ERR syntax error"


def test_both_ends_can_be_pushed_and_popped(talk: Session) -> None:
    """Row 66."""
    talk.play("""
        > RPUSH q a b
        :2
        > LPUSH q y z
        :4
        > LRANGE q 0 -1
        ["z", "y", "a", "b"]
        > LPOP q 2
        ["z", "y"]
        > RPOP q
        "b"
        > LLEN q
        :1
        > LPOP q 0
        []
        > LPOP q 5
        ["a"]
        > LPOP q
        (nil)
        > LPOP q 1
        (nil array)
        > LLEN q
        :0
    """)


def test_nulls_in_resp3(talk3: Session) -> None:
    """Row 66."""
    talk3.play("""
        > LPOP q
        _
        > RPOP q 2
        _
        > LINDEX q 0
        _
        > LPOS q a
        _
        > LMOVE q r LEFT LEFT
        _
        > RPUSH q a
        > LPOP q 0
        []
    """)


def test_pushing_only_to_what_exists(talk: Session) -> None:
    talk.play("""
        > LPUSHX q a
        :0
        > RPUSHX q a b
        :0
        > EXISTS q
        :0
        > RPUSH q m
        > LPUSHX q b a
        :3
        > RPUSHX q y z
        :5
        > LRANGE q 0 -1
        ["a", "b", "m", "y", "z"]
    """)


@pytest.mark.parametrize(
    "removal",
    [
        "LPOP q", "RPOP q", "LPOP q 9", "LREM q 0 a", "LTRIM q 1 0", "LTRIM q 5 9", "LMOVE q r LEFT RIGHT",
        "RPOPLPUSH q r", "BLPOP q 0", "BRPOPLPUSH q r 0",
    ],
)  # fmt: skip
def test_a_list_is_gone_with_its_last_element(talk: Session, removal: str) -> None:
    """Row 301."""
    talk.play(f"""
        > RPUSH q a
        > PEXPIRE q 100000
        > {removal}
        > EXISTS q
        :0
        > RPUSH q b
        > PTTL q
        :-1
    """)


@pytest.mark.since("7.0")
@pytest.mark.parametrize("removal", ["LMPOP 1 q LEFT", "BLMPOP 0 2 none q RIGHT COUNT 5"])
def test_a_list_is_gone_with_the_last_of_several_elements(talk: Session, removal: str) -> None:
    """Row 301."""
    talk.play(f"""
        > RPUSH q a
        > {removal}
        ["q", ["a"]]
        > EXISTS q
        :0
    """)


def test_a_range_may_count_from_the_right(talk: Session) -> None:
    talk.play(f"""
        > RPUSH q a b c d e
        > LRANGE q 1 -2
        ["b", "c", "d"]
        > LRANGE q -2 -1
        ["d", "e"]
        > LRANGE q -100 100
        ["a", "b", "c", "d", "e"]
        > LRANGE q 3 3
        ["d"]
        > LRANGE q 4 1
        []
        > LRANGE q 5 9
        []
        > LRANGE q 0 -6
        []
        > LRANGE missing 0 -1
        []
        > LRANGE missing x 0
        {NOT_AN_INTEGER}
        > LRANGE q 0 9223372036854775808
        {NOT_AN_INTEGER}
    """)


def test_one_element_by_its_place(talk: Session) -> None:
    talk.play(f"""
        > RPUSH q a b c
        > LINDEX q 0
        "a"
        > LINDEX q -1
        "c"
        > LINDEX q -3
        "a"
        > LINDEX q 3
        (nil)
        > LINDEX q -4
        (nil)
        > LINDEX q x
        {NOT_AN_INTEGER}
        > LINDEX missing x
        (nil)
        > LSET q 1 B
        +OK
        > LSET q -1 C
        +OK
        > LRANGE q 0 -1
        ["a", "B", "C"]
        > LSET q 3 d
        -ERR index out of range
        > LSET q -4 d
        -ERR index out of range
        > LSET q x d
        {NOT_AN_INTEGER}
        > LSET missing x d
        -ERR no such key
    """)


def test_inserting_beside_an_element(talk: Session) -> None:
    talk.play(f"""
        > RPUSH q a b a
        > LINSERT q BEFORE a x
        :4
        > LINSERT q after a y
        :5
        > LRANGE q 0 -1
        ["x", "a", "y", "b", "a"]
        > LINSERT q AFTER missing z
        :-1
        > LINSERT missing BEFORE a x
        :0
        > LINSERT q BESIDE a x
        {SYNTAX}
        > LINSERT missing BESIDE a x
        {SYNTAX}
    """)


def test_removing_equal_elements(talk: Session) -> None:
    talk.play(f"""
        > RPUSH q a b a c a d a
        > LREM q 1 a
        :1
        > LRANGE q 0 -1
        ["b", "a", "c", "a", "d", "a"]
        > LREM q -2 a
        :2
        > LRANGE q 0 -1
        ["b", "a", "c", "d"]
        > RPUSH q a a
        > LREM q 2 a
        :2
        > LREM q 0 a
        :1
        > LREM q 5 x
        :0
        > LRANGE q 0 -1
        ["b", "c", "d"]
        > LREM q x a
        {NOT_AN_INTEGER}
        > LREM missing x a
        {NOT_AN_INTEGER}
        > LREM missing 0 a
        :0
    """)


@pytest.mark.since("7.2")
def test_the_least_number_is_no_count(talk: Session) -> None:
    error = "-ERR value is out of range, value must between -9223372036854775807 and 9223372036854775807"
    talk.play(f"""
        > RPUSH q a
        > LREM q -9223372036854775808 a
        {error}
        > LPOS q a RANK -9223372036854775808
        {error}
    """)


def test_trimming_keeps_a_range(talk: Session) -> None:
    talk.play(f"""
        > RPUSH q a b c d e f
        > LTRIM q 1 -2
        +OK
        > LRANGE q 0 -1
        ["b", "c", "d", "e"]
        > LTRIM q -3 100
        +OK
        > LRANGE q 0 -1
        ["c", "d", "e"]
        > LTRIM q 0 -1
        +OK
        > LLEN q
        :3
        > LTRIM q x 1
        {NOT_AN_INTEGER}
        > LTRIM missing 0 1
        +OK
    """)


def test_finding_elements(talk: Session) -> None:
    talk.play("""
        > RPUSH q a b c 1 2 3 c c
        > LPOS q a
        :0
        > LPOS q c
        :2
        > LPOS q c RANK 2
        :6
        > LPOS q c RANK -1
        :7
        > LPOS q c RANK 4
        (nil)
        > LPOS q c COUNT 0
        [:2, :6, :7]
        > LPOS q c COUNT 2 RANK -1
        [:7, :6]
        > LPOS q c rank 2 count 0
        [:6, :7]
        > LPOS q c COUNT 0 MAXLEN 3
        [:2]
        > LPOS q c COUNT 0 MAXLEN 3 RANK -1
        [:7, :6]
        > LPOS q x COUNT 1
        []
        > LPOS missing x COUNT 1
        []
        > LPOS missing x
        (nil)
        > LPOS q c RANK 1 RANK 2
        :6
    """)
    zero = "RANK can't be zero: use 1 to start from the first match, 2 from the second ... or use negative to start"
    talk.play(f"""
        > LPOS q c COUNT -1
        -ERR COUNT can't be negative
        > LPOS q c MAXLEN -1
        -ERR MAXLEN can't be negative
        > LPOS q c RANK x
        {NOT_AN_INTEGER}
        > LPOS q c RANK
        {SYNTAX}
        > LPOS q c NOTHING 1
        {SYNTAX}
        > LPOS q c RANK 0
        -ERR {zero} from the end of the list
    """)


def test_moving_an_element(talk: Session) -> None:
    talk.play(f"""
        > RPUSH q a b c d
        > LMOVE q r LEFT RIGHT
        "a"
        > LMOVE q r right left
        "d"
        > RPOPLPUSH q r
        "c"
        > LRANGE q 0 -1
        ["b"]
        > LRANGE r 0 -1
        ["c", "d", "a"]
        > LMOVE missing r LEFT LEFT
        (nil)
        > RPOPLPUSH missing r
        (nil)
        > LMOVE q r UP LEFT
        {SYNTAX}
        > LMOVE missing r LEFT UP
        {SYNTAX}
    """)


def test_a_list_can_be_turned_round_in_itself(talk: Session) -> None:
    """A list of one element stays the same key: its time to live goes on."""
    talk.play("""
        > RPUSH q a b c
        > RPOPLPUSH q q
        "c"
        > LMOVE q q LEFT RIGHT
        "c"
        > LMOVE q q LEFT LEFT
        "a"
        > LRANGE q 0 -1
        ["a", "b", "c"]
        > RPUSH one a
        > PEXPIRE one 100000
        > LMOVE one one LEFT RIGHT
        "a"
        > PTTL one
        :1+
    """)


def test_moving_to_another_type_changes_nothing(talk: Session) -> None:
    talk.play(f"""
        > RPUSH q a
        > SET text x
        > LMOVE q text LEFT LEFT
        {WRONG_TYPE}
        > RPOPLPUSH q text
        {WRONG_TYPE}
        > BLMOVE q text LEFT LEFT 0
        {WRONG_TYPE}
        > BRPOPLPUSH q text 0
        {WRONG_TYPE}
        > LRANGE q 0 -1
        ["a"]
        > LMOVE missing text LEFT LEFT
        (nil)
    """)


@pytest.mark.since("7.0")
def test_several_elements_of_the_first_list_that_has_some(talk: Session) -> None:
    talk.play("""
        > RPUSH q a b c
        > RPUSH r 1 2
        > LMPOP 2 q r LEFT
        ["q", ["a"]]
        > LMPOP 3 missing q r RIGHT COUNT 10
        ["q", ["c", "b"]]
        > LMPOP 2 q r left count 1
        ["r", ["1"]]
        > BLMPOP 0 2 q r RIGHT
        ["r", ["2"]]
        > LMPOP 2 q r LEFT
        (nil array)
    """)


@pytest.mark.since("7.0")
@pytest.mark.parametrize(
    ("words", "error"),
    [
        ("0 q LEFT", "-ERR numkeys should be greater than 0"),
        ("x q LEFT", "-ERR numkeys should be greater than 0"),
        ("-1 q LEFT", "-ERR numkeys should be greater than 0"),
        ("9223372036854775807 q LEFT", SYNTAX),
        ("2 q LEFT", SYNTAX),
        ("1 q UP", SYNTAX),
        ("1 q LEFT COUNT", SYNTAX),
        ("1 q LEFT NUMBER 1", SYNTAX),
        ("1 q LEFT COUNT 1 COUNT 1", SYNTAX),
        ("1 q LEFT COUNT 0", "-ERR count should be greater than 0"),
        ("1 q LEFT COUNT x", "-ERR count should be greater than 0"),
        ("1 q LEFT COUNT x more", "-ERR count should be greater than 0"),
    ],
)
def test_mistakes_in_taking_several(talk: Session, words: str, error: str) -> None:
    talk.play(f"""
        > SET q text
        > LMPOP {words}
        {error}
        > BLMPOP never {words}
        {error}
    """)


@pytest.mark.parametrize(
    "command",
    [
        "LPUSH k a", "RPUSH k a", "LPUSHX k a", "RPUSHX k a", "LPOP k", "RPOP k 2", "LPOP k 0", "LLEN k",
        "LRANGE k 0 1", "LINDEX k x", "LSET k x a", "LINSERT k BEFORE a b", "LREM k 0 a", "LTRIM k 0 1", "LPOS k a",
        "LMOVE k q LEFT LEFT", "RPOPLPUSH k q", "BLPOP k 0", "BRPOP q k 0", "BLMOVE k q LEFT LEFT 0",
        "BRPOPLPUSH k q 0",
    ],
)  # fmt: skip
def test_other_types_are_refused(talk: Session, command: str) -> None:
    talk.play(f"""
        > SET k text
        > {command}
        {WRONG_TYPE}
    """)


@pytest.mark.since("7.0")
@pytest.mark.parametrize("command", ["LMPOP 2 q k LEFT", "BLMPOP 0 2 q k LEFT"])
def test_other_types_are_refused_among_several_keys(talk: Session, command: str) -> None:
    talk.play(f"""
        > SET k text
        > {command}
        {WRONG_TYPE}
    """)


@pytest.mark.parametrize(
    ("command", "error"),
    [
        ("LPOP q -1", OUT_OF_RANGE),
        ("LPOP q x", OUT_OF_RANGE),
        ("RPOP missing x", OUT_OF_RANGE),
        ("RPOP q 1 2", "-ERR wrong number of arguments for 'rpop' command"),
        ("LPUSH q", "-ERR wrong number of arguments for 'lpush' command"),
        ("LMOVE q r LEFT", "-ERR wrong number of arguments for 'lmove' command"),
        ("BLPOP 0", "-ERR wrong number of arguments for 'blpop' command"),
    ],
)
def test_mistakes_change_nothing(talk: Session, command: str, error: str) -> None:
    talk.play(f"""
        > RPUSH q a
        > {command}
        {error}
        > LRANGE q 0 -1
        ["a"]
    """)


@pytest.mark.since("7.2")
def test_copies_and_payloads_of_a_list(talk: Session) -> None:
    """Row 69: what is not popped is kept, whatever happens to the key."""
    talk.play("""
        > RPUSH q a "" "x y" 12
        > COPY q copy
        :1
        > RENAME q other
        +OK
        > LPOP other
        "a"
        > LRANGE copy 0 -1
        ["a", "", "x y", "12"]
        > MOVE copy 3
        :1
        > SELECT 3
        > LPOP copy 2
        ["a", ""]
    """)
    wire = talk.wire()
    payload = wire("DUMP", "copy")
    assert wire("RESTORE", "again", 0, payload) == "OK"
    talk.play("""
        > LRANGE again 0 -1
        ["x y", "12"]
        > TYPE again
        +list
        > OBJECT ENCODING again
        "listpack"
        > DEL again copy
    """)


def test_one_element_goes_to_one_client(talk: Session) -> None:
    """Rows 68, 69: at most once."""
    talk.play("""
        > RPUSH q a b
        one> LPOP q
        "a"
        two> LPOP q
        "b"
    """)
    talk.wire("one").close()
    talk.play("""
        > EXISTS q
        :0
    """)


@pytest.mark.parametrize(
    ("command", "changes"),
    [
        ("RPUSH q x y z", 3),
        ("LPUSHX q x y", 2),
        ("LPUSHX missing x", 0),
        ("LPOP q", 1),
        ("RPOP q 3", 3),
        ("LPOP q 0", 0),
        ("LSET q 0 x", 1),
        ("LINSERT q BEFORE a x", 1),
        ("LINSERT q BEFORE x x", 0),
        ("LREM q 0 a", 2),
        ("LTRIM q 1 2", 2),
        ("LTRIM q 0 -1", 0),
        ("LMOVE q r LEFT LEFT", 1),
        ("BLPOP q 0", 1),
        ("LRANGE q 0 -1", 0),
        ("SORT q ALPHA STORE r", 4),
        ("SORT missing STORE q", 1),
        ("SORT missing STORE missing", 0),
    ],
)
def test_changes_are_counted(talk: Session, command: str, changes: int) -> None:
    talk.play("> RPUSH q a b a c")
    before = int(talk.server.info("persistence")["rdb_changes_since_last_save"])
    talk.play(f"> {command}")
    assert int(talk.server.info("persistence")["rdb_changes_since_last_save"]) - before == changes


@pytest.mark.parametrize(
    ("command", "is_stopped"),
    [
        ("RPUSH q x", True),
        ("LPUSHX missing x", False),
        ("LPOP q 0", False),
        ("LREM q 0 x", False),
        ("LREM q 0 a", True),
        ("LMOVE other q LEFT LEFT", True),
        ("LMOVE other third LEFT LEFT", False),
        ("BLPOP missing other q 0", False),
        ("BLPOP q other 0", True),
        ("SORT q ALPHA STORE other", False),
        ("SORT other ALPHA STORE q", True),
    ],
)
def test_a_transaction_stops_when_its_list_has_changed(talk: Session, command: str, is_stopped: bool) -> None:
    talk.play(f"""
        > RPUSH q a b c
        > RPUSH other 1 2
        watching> WATCH q
        > {command}
        watching> MULTI
        watching> PING
        watching> EXEC
        {"(nil array)" if is_stopped else '[+"PONG"]'}
    """)


@pytest.mark.since("8.6")
def test_a_transaction_takes_any_trimming_for_a_change(talk: Session) -> None:
    talk.play("""
        > RPUSH q a b c
        watching> WATCH q
        > LTRIM q 0 -1
        +OK
        watching> MULTI
        watching> EXEC
        (nil array)
    """)
