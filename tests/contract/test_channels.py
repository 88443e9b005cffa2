"""Channels through the client, on every deployment: fan-out, at most once, kept nowhere."""

import asyncio
import signal
from concurrent.futures import ThreadPoolExecutor

import pytest

from headrace import AccessDenied, AsyncClient, ClientClosed, ConfigError, Message, Unreachable
from support.deployments import KEEPS_NOTHING, Process, is_from_wheel, real_kinds
from support.flavours import take
from support.servers import wait_until


def kinds():
    """Valkey always, every Redis in the long run."""
    return [
        pytest.param(kind, marks=[] if is_from_wheel(kind) else [pytest.mark.long], id=kind.name)
        for kind in real_kinds()
    ]


@pytest.fixture
def news(client, name):
    return client.channel(name)


def test_everybody_who_listens_gets_every_message(connect, name):
    with connect().channel(name).listen() as ann, connect().channel(name).listen() as bob:
        news = connect().channel(name)
        assert [news.publish(message) for message in ("hi", b"\x00\xff", 3)] == [2, 2, 2]

        wanted = [Message(name, b"hi"), Message(name, b"\x00\xff"), Message(name, b"3")]
        assert take(ann, 3) == take(bob, 3) == wanted
    assert wanted[0].text == "hi"


def test_what_nobody_hears_is_gone(news):
    assert news.publish("unheard") == 0
    with news.listen(wait="20ms") as messages:
        assert list(messages) == []


def test_a_pattern_hears_all_channels_that_match(client, name):
    with client.channels(f"{name}.*").listen() as messages:
        client.channel(f"{name}.sport").publish("goal")
        client.channel(f"other-{name}").publish("not this one")
        client.channel(f"{name}.weather").publish("rain")

        assert take(messages, 2) == [
            Message(f"{name}.sport", b"goal", f"{name}.*"),
            Message(f"{name}.weather", b"rain", f"{name}.*"),
        ]


def test_listening_begins_with_the_first_message_asked_for(news):
    messages = news.listen(wait="20ms")

    assert list(messages) == []  # Now it listens.
    news.publish("a")
    assert next(messages).body == b"a"
    messages.close()


def test_wait_0_takes_what_is_there(news):
    with news.listen(wait=0) as messages:
        news.publish("a")
        news.publish("b")
        found = []
        wait_until(lambda: found.extend(message.text for message in messages) or len(found) == 2, "both")
    assert found == ["a", "b"]


def test_a_waiting_listener_ends_when_it_is_closed(connect, name):
    heard = []
    with connect().channel(name).listen() as messages, ThreadPoolExecutor(1) as thread:
        listening = thread.submit(heard.extend, messages)
        connect().channel(name).publish("a")
        wait_until(lambda: len(heard) == 1, "the message")
        messages.close()
        listening.result(20)
    assert [message.text for message in heard] == ["a"]
    assert list(messages) == []


def test_a_closed_client_listens_no_more(connect, name):
    client = connect()
    messages = client.channel(name).listen(wait="30s")
    with messages:
        client.close()
        with pytest.raises(ClientClosed):
            next(messages)
    with pytest.raises(ClientClosed), client.channel(name).listen() as _:
        pass


def test_many_messages_come_in_order(news):
    with news.listen(wait="30s") as messages:
        for number in range(500):
            news.publish(number)
        assert [message.body for message in take(messages, 500)] == [b"%d" % number for number in range(500)]


def test_a_name_with_any_characters(client, name):
    odd = f"{name} \udcff{{}}\r\n*"
    with client.channel(odd).listen() as messages:
        assert client.channel(odd).publish("x") == 1
        assert next(messages) == Message(odd, b"x")


def test_wrong_arguments_are_explained(news):
    with pytest.raises(ConfigError, match="a message cannot be a dict"):
        news.publish({"a": 1})
    with pytest.raises(ConfigError, match="wait is 'soon'"):
        news.listen(wait="soon")


def test_a_cancelled_listener_loses_no_message(url, name):
    async def session():
        async with AsyncClient(url) as client, client.channel(name).listen() as messages:
            heard = []
            for number in range(200):
                waiting = asyncio.ensure_future(anext(messages))
                await asyncio.sleep(0)
                await client.channel(name).publish(number)
                waiting.cancel()
                try:
                    heard.append((await waiting).body)
                except asyncio.CancelledError:
                    heard.append((await anext(messages)).body)
            assert heard == [b"%d" % number for number in range(200)]

    asyncio.run(session())


@pytest.mark.parametrize("kind", kinds())
def test_a_lost_connection_is_made_again(kind, open_url, name):
    with (
        Process(kind, *KEEPS_NOTHING) as server,
        open_url(server.url).channel(name).listen() as messages,
        ThreadPoolExecutor(1) as thread,
    ):
        heard = thread.submit(next, messages)
        server.restart(signal.SIGKILL)
        news = open_url(server.url).channel(name)
        wait_until(lambda: news.publish("again") == 1, "the listener to come back")
        assert heard.result(20).text == "again"


@pytest.mark.parametrize("kind", kinds())
def test_a_channel_that_this_user_may_not_hear_is_told(kind, open_url, name):
    with Process(kind, *KEEPS_NOTHING) as server:
        server.command_reply("ACL", "SETUSER", "ann", "on", ">s3cret", "+@all", "~*", "resetchannels", "&allowed")
        client = open_url(server.url.replace("redis://", "redis://ann:s3cret@"))
        with client.channel("allowed").listen() as messages:
            client.channel("allowed").publish("x")
            assert next(messages).text == "x"
        with pytest.raises(AccessDenied, match="refuses: NOPERM"), client.channel(name).listen() as _:
            pass


def test_a_server_that_is_away_is_told_at_once(open_url):
    with (
        pytest.raises(Unreachable, match=r"Cannot reach redis://127\.0\.0\.1:1 "),
        open_url("redis://127.0.0.1:1").channel("news").listen() as _,
    ):
        pass
