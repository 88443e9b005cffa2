"""URLs and passwords: wrong ones are told in one sentence, and a password is never shown."""

import logging
import traceback

import pytest

from headrace import AccessDenied, ConfigError, HeadraceError
from support.deployments import KEEPS_NOTHING, Process, is_from_wheel, real_kinds

SECRET = "s3cret/öf-the-house"
QUOTED = "s3cret%2F%C3%B6f-the-house"


def kinds():
    return [
        pytest.param(kind, marks=[] if is_from_wheel(kind) else [pytest.mark.long], id=kind.name)
        for kind in real_kinds()
    ]


@pytest.fixture
def guarded(kind):
    """A server with a password, and a user who may only read."""
    with Process(kind, *KEEPS_NOTHING) as server:
        server.command_reply("ACL", "SETUSER", "reader", "on", f">{SECRET}", "~*", "+@read", "+hello", "+client")
        server.command_reply("CONFIG", "SET", "requirepass", SECRET)
        yield server


def everything_said(error):
    return "".join(traceback.format_exception(error, chain=False)) + repr(error) + str(error)


@pytest.mark.parametrize("kind", kinds())
def test_the_password_of_the_url_is_used(guarded, open_url):
    client = open_url(f"redis://:{QUOTED}@127.0.0.1:{guarded.port}/3")
    client.stream("orders").add({"n": 1})

    assert client.stream("orders").length() == 1
    assert client.url == f"redis://127.0.0.1:{guarded.port}/3"
    with pytest.raises(AccessDenied):
        open_url(guarded.url).stream("orders").length()


@pytest.mark.parametrize("kind", kinds())
def test_a_wrong_password_is_told_and_never_shown(guarded, open_url, caplog):
    caplog.set_level(logging.DEBUG)
    url = f"redis://ann:{QUOTED}x@127.0.0.1:{guarded.port}"
    client = open_url(url)

    with pytest.raises(AccessDenied, match=r"user or password") as caught:
        client.ping()

    said = everything_said(caught.value) + repr(client) + repr(client.stream("orders")) + client.url + caplog.text
    assert f"redis://127.0.0.1:{guarded.port}" in said
    assert "s3cret" not in said


@pytest.mark.parametrize("kind", kinds())
def test_what_a_user_may_not_do_is_told(guarded, open_url):
    stream = open_url(f"redis://reader:{QUOTED}@127.0.0.1:{guarded.port}").stream("orders")

    assert stream.length() == 0
    with pytest.raises(AccessDenied, match=r"(?i)permission"):
        stream.add({"n": 1})


@pytest.mark.parametrize("kind", kinds())
def test_databases_are_apart(kind, open_url):
    with Process(kind, *KEEPS_NOTHING) as server:
        open_url(f"{server.url}/1").stream("orders").add({"n": 1})

        assert open_url(f"{server.url}?db=1").stream("orders").length() == 1
        assert open_url(server.url).stream("orders").length() == 0


@pytest.mark.parametrize(
    "url",
    [
        "localhost",
        "",
        "http://localhost",
        "redis:localhost",
        "redis://",
        "redis://localhost:abc",
        "redis://localhost:99999",
        "redis://localhost:0",
        "redis://localhost/abc",
        "redis://a,b",
        "redis://localhost?nonsense=1",
        "redis://localhost?protocol=4",
        "redis+sentinel://localhost",
        "redis+cluster://localhost/2",
        "rediss://localhost?verify=maybe",
        "unix://",
        "embedded:./data?fsync=maybe",
        "embedded:./data?sync=no",
        "embedded:?fsync=no",
        "embedded://localhost:7379",
        "embedded:./zero%00byte",
        "embedded:~nobody-of-this-name/data",
        "valkey:./zero%00byte",
        f"redis://ann:{SECRET}@localhost:abc",
        f"htp://ann:{SECRET}@localhost",
        f"redis://ann:{SECRET}/3",
        f"ann:{SECRET}@localhost",
    ],
)
def test_a_wrong_url_is_refused_in_one_sentence_without_its_password(open_url, monkeypatch, url):
    monkeypatch.delenv("HEADRACE_URL", raising=False)

    with pytest.raises(ConfigError) as caught:
        open_url(url)

    assert str(caught.value).endswith(".") and "\n" not in str(caught.value)
    assert "s3cret" not in everything_said(caught.value).replace(__file__, "")


def test_the_url_may_come_from_the_environment(open_url, monkeypatch):
    monkeypatch.setenv("HEADRACE_URL", "embedded:")

    assert open_url(None).url == "embedded:"


@pytest.mark.parametrize("options", [{"timeout": "soon"}, {"timeout": -1}, {"timeout": True}])
def test_wrong_options_are_refused(open_url, options):
    with pytest.raises(ConfigError, match="timeout"):
        open_url("embedded:", **options)


def test_everything_raised_is_one_of_ours(open_url):
    with pytest.raises(HeadraceError):
        open_url("redis://localhost:1", timeout="50ms").ping()
