"""headrace dlq on our broker and on Valkey, as a user at night would use it. Row 169."""

import pytest

from headrace import App, Client
from support.command_here import Here
from support.worker_programs import run, until

pytestmark = [pytest.mark.other_process, pytest.mark.any_socket]


@pytest.fixture
def shell(url, monkeypatch, capsys):
    """headrace dlq with HEADRACE_URL set, in this process."""
    return Here(url, monkeypatch, capsys, "dlq")


@pytest.fixture
def letters(url, name):
    """Three dead letters of the group billing; the handler runs again when the app is given work."""
    app = App(url)

    @app.handler(name, group="billing", retries=0)
    async def bill(order: dict) -> None:
        raise ValueError(f"declined {order['id']}")

    async def program():
        async with app.worker() as worker:
            await app.publish_many(name, [{"id": number} for number in range(3)])
            await until(lambda: worker.counters[name, "billing"].buried == 3)

    run(program())


def test_a_stream_or_a_group_that_is_missing_is_told(shell, name, url):
    for words in (("ls",), ("replay",), ("drop", "--all")):
        missing = shell(words[0], name, "billing", *words[1:])
        assert (missing.code, missing.out) == (3, "") and f"there is no stream '{name}'" in missing.err
    with Client(url) as client:
        client.stream(name).publish(1)
        assert shell("ls", name, "billing").code == 3
        client.stream(name).group("billing").create(start="0")
    assert shell("ls", name, "billing").code == 0


@pytest.mark.usefixtures("letters")
def test_letters_are_listed_shown_sent_again_and_dropped(shell, name, url):
    rows = shell("ls", name, "billing").rows
    assert [(row["payload"], row["error"], row["attempts"]) for row in rows] == [
        ({"id": number}, f"ValueError: declined {number}", 1) for number in range(3)
    ]
    assert shell("ls", name, "billing", "--limit", "1").rows == rows[:1]

    shown = shell("show", name, "billing", rows[0]["id"]).row
    assert shown["stream"] == name and "in bill" in shown["traceback"]

    assert shell("replay", name, "billing", "--where", 'error ~ "declined 1"', "--dry-run").row["chosen"] == 1
    assert shell("replay", name, "billing", rows[1]["id"], "--rate", "100/s").row["replayed"] == 1
    assert [row["id"] for row in shell("ls", name, "billing").rows] == [rows[0]["id"], rows[2]["id"]]

    assert shell("drop", name, "billing", rows[0]["id"], "--yes").row["dropped"] == 1
    assert shell("drop", name, "billing", "--all", "--dry-run").row == {
        "stream": name, "group": "billing", "dropped": 0, "chosen": 1
    }  # fmt: skip
    assert shell("drop", name, "billing", "--all", "--yes").row["dropped"] == 1
    assert shell("ls", name, "billing").rows == []


@pytest.mark.parametrize(
    ("arguments", "code", "words"),
    [
        (("drop", "s", "g"), 2, "say which dead letters"),
        (("ls", "s", "g", "--where", "colour = red"), 2, "is no condition"),
        (("replay", "s", "g", "1-0", "--where", "attempts > 1"), 2, "either IDs or --where"),
        (("replay", "s", "g", "--rate", "fast"), 2, "--rate is 'fast'"),
        (("show", "s", "g", "1-0"), 3, "no dead letter 1-0"),
    ],
)
def test_what_cannot_be_is_told(shell, arguments, code, words):
    ended = shell(*arguments)

    assert ended.code == code and words in ended.err


def test_a_group_that_keeps_order_takes_letters_only_as_new_messages(shell, name, url):
    app = App(url)

    @app.handler(name, group="billing", key="id", retries=0, poison="skip")
    async def bill(order: dict) -> None:
        raise ValueError("declined")

    async def program():
        async with app.worker() as worker:
            await app.publish(name, {"id": 1})
            await until(lambda: worker.counters[name, "billing"].buried == 1)

    run(program())
    refused = shell("replay", name, "billing")
    assert (
        refused.code != 0 and f"Publish it anew, behind everything else and for all groups: --to {name}" in refused.err
    )
    assert len(shell("ls", name, "billing").rows) == 1
    assert shell("replay", name, "billing", "--to", name).row["replayed"] == 1
