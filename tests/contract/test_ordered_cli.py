"""headrace ordered lanes, show, park, resume and rebuild, on our broker and on Valkey. Rows 232, 234, 247."""

import pytest

from headrace import Client
from headrace.client import lane_steps
from support.command_here import Here
from support.command_line import headrace, on_terminal
from support.ordered_programs import GROUP, settings_for

pytestmark = [pytest.mark.other_process, pytest.mark.any_socket]


@pytest.fixture
def shell(url, monkeypatch, capsys):
    """headrace ordered with HEADRACE_URL set, in this process."""
    return Here(url, monkeypatch, capsys, "ordered")


class Group:
    """A group that is ordered, with messages of four keys, of which c1 holds three."""

    def __init__(self, client, stream):
        self.client, self.stream = client, stream
        self.order = settings_for(stream).order
        client.stream(stream).group(GROUP).create(start="beginning")
        self.run(lane_steps.config, self.order)
        for number in range(8):
            client.stream(stream).add({"ticket_id": str(number % 4), "n": str(number)})
        self.session = self.run(lane_steps.register, self.order, "c1", 3).number
        self.grants = {}
        while len(self.grants) < 3:
            taken = self.run(lane_steps.take, self.order, "c1", self.session, 30_000, 3 - len(self.grants), 1)
            self.grants |= {grant.key: grant for grant in taken.grants}

    def run(self, step, *words, **more):
        return self.client.run(step(self.client._facts, *words, **more))

    def fail(self, key):
        grant = self.grants[key]
        clause = lane_steps.Fail(key, grant.fence, grant.entries[0].id, 60_000, "declined")
        assert self.run(lane_steps.settle, self.order, [clause]) == [True]


@pytest.fixture
def group(url, name):
    with Client(url) as client:
        yield Group(client, name)


def test_lanes_lists_the_keys_with_their_state_and_holder(shell, name, group):
    group.fail("1")
    rows = {row["key"]: row for row in shell("lanes", name, GROUP).rows}

    assert (rows["0"]["state"], rows["0"]["consumer"], rows["0"]["attempts"]) == ("held", "c1", 1)
    assert rows["0"]["held_ms"] >= 0 and 0 < rows["0"]["left_ms"] <= 30_000
    assert (rows["1"]["state"], rows["1"]["error"], rows["1"]["consumer"]) == ("waiting", "declined", None)
    assert [row["key"] for row in shell("lanes", name, GROUP, "--state", "waiting").rows] == ["1"]
    assert len(shell("lanes", name, GROUP, "--limit", "2").rows) == 2


def test_show_tells_the_settings_or_one_key_with_its_messages(shell, name, group):
    facts = shell("show", name, GROUP).row
    assert (facts["key_fields"], facts["poison"], facts["lease_ms"]) == (["ticket_id"], "park", 30_000)
    key = shell("show", name, GROUP, "0").row
    assert (key["state"], key["consumer"], key["fence"]) == ("held", "c1", group.grants["0"].fence)
    assert key["ids"][0]["id"] == group.grants["0"].entries[0].id


def test_a_parked_key_stands_still_and_its_holder_is_refused_until_it_is_resumed(shell, name, group):
    assert shell("park", name, GROUP, "0", "--error", "ask ann").row == {"key": "0", "parked": True}
    [row] = shell("lanes", name, GROUP, "--state", "parked").rows
    assert (row["key"], row["error"]) == ("0", "ask ann")
    done = lane_steps.Done("0", group.grants["0"].fence, [group.grants["0"].entries[0].id])
    assert group.run(lane_steps.settle, group.order, [done]) == [False]

    assert shell("resume", name, GROUP, "0").row == {"key": "0", "resumed": True, "skipped": False}
    assert shell("show", name, GROUP, "0").row["state"] == "ready"
    assert shell("resume", name, GROUP, "0").code == 3


def test_resume_may_skip_the_first_message(shell, name, group):
    group.fail("1")
    before = shell("show", name, GROUP, "1").row["ids"]
    assert shell("resume", name, GROUP, "1", "--skip").code == 0
    assert group.client.command("XLEN", group.order.dead) == 1
    after = shell("lanes", name, GROUP).rows
    assert len(before) == 1 or next(row for row in after if row["key"] == "1")["state"] == "ready"


def test_rebuild_asks_first_and_ends_all_holds(shell, name, group):
    assert shell("rebuild", name, GROUP).code == 2
    assert shell("show", name, GROUP, "0").row["state"] == "held"
    assert shell("rebuild", name, GROUP, "--yes").row["rebuilding"] is True
    assert shell("show", name, GROUP, "0").row["state"] == "ready"


def test_what_is_missing_is_told_with_exit_code_3(shell, name, url):
    ended = shell("lanes", name, GROUP)
    assert ended.code == 3 and name in ended.err
    with Client(url) as client:
        client.stream(name).add({"n": "1"})
        assert shell("lanes", name, GROUP).code == 3
        client.stream(name).group(GROUP).create(start="beginning")
        ended = shell("lanes", name, GROUP)
        assert ended.code == 3 and "not ordered by key" in ended.err
        Group(client, f"{name}-2")
    for words in (("show",), ("park",), ("resume",)):
        ended = shell(*words, f"{name}-2", GROUP, "no-such-key")
        assert ended.code == 3 and "no-such-key" in ended.err, words


def test_wrong_words_are_usage_and_nobody_there_is_told(shell, name):
    assert shell("lanes", name, GROUP, "--state", "lost").code == 2
    assert shell("master", "--host", "0.0.0.0").code == 2
    assert shell("master", "--poison", "burn").code == 2
    assert shell("master", "--lease", "5ms").code == 2
    assert shell("consumer", "nothing").code == 2
    assert shell("consumer", "json:nothing").code == 2
    assert shell("consumer", "json:dumps", "--master", "localhost:7381").code == 2
    for words in (("master", "--port", "0"), ("consumer", "json:dumps"), ("lanes", name, GROUP)):
        assert headrace("ordered", *words, url="redis://127.0.0.1:1").code == 4, words


@pytest.mark.usefixtures("group")
def test_a_terminal_gets_a_table(url, name):
    shown = on_terminal("ordered", "lanes", name, GROUP, url=url).out

    assert "attempts" in shown and "c1" in shown and "{" not in shown
