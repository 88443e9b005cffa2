"""URLs taken apart."""

import pytest

from headrace.client.urls import parse_url
from headrace.errors import ConfigError


@pytest.mark.parametrize(
    ("url", "facts"),
    [
        ("redis://localhost", {"kind": "tcp", "hosts": (("localhost", 6379),), "database": 0}),
        ("headrace://host", {"kind": "tcp", "hosts": (("host", 7379),)}),
        ("REDIS://host:1", {"kind": "tcp", "hosts": (("host", 1),)}),
        ("redis://[::1]:7000/2", {"hosts": (("::1", 7000),), "database": 2}),
        ("redis://host?db=3&protocol=3", {"database": 3, "protocol": 3}),
        ("rediss://host", {"is_tls": True}),
        ("unix:///run/a%20b.sock?db=1", {"kind": "unix", "path": "/run/a b.sock", "database": 1}),
        ("redis+cluster://a,b:7001", {"kind": "cluster", "hosts": (("a", 6379), ("b", 7001))}),
        (
            "redis+sentinel://a,b:1/main/4",
            {"kind": "sentinel", "hosts": (("a", 26379), ("b", 1)), "service": "main", "database": 4},
        ),
        ("redis://ann:p%40ss%2F@h", {"username": "ann", "password": "p@ss/", "shown": "redis://h"}),
        ("redis://:pass@h", {"username": None, "password": "pass"}),
        ("redis://ann@h", {"username": "ann", "password": None}),
        ("embedded:", {"kind": "embedded", "path": ""}),
        ("valkey:./data", {"kind": "valkey", "path": "./data"}),
    ],
)
def test_urls_are_taken_apart(url, facts):
    target = parse_url(url)

    assert {name: getattr(target, name) for name in facts} == facts


def test_tls_settings():
    strict = parse_url("rediss://h?cafile=ca.pem&certfile=c.pem&keyfile=k.pem").tls
    lax = parse_url("rediss://h?verify=no").tls

    assert strict == {
        "ssl_cert_reqs": "required", "ssl_check_hostname": True, "ssl_ca_certs": "ca.pem", "ssl_certfile": "c.pem",
        "ssl_keyfile": "k.pem",
    }  # fmt: skip
    assert lax == {"ssl_cert_reqs": "none", "ssl_check_hostname": False}


def test_the_argument_goes_before_the_option_of_the_url():
    assert parse_url("redis://h?protocol=3", 2).protocol == 2


@pytest.mark.parametrize(
    "url", ["redis://ann:s3cret@h", "redis+sentinel://ann:s3cret@h/main", "unix://:s3cret@/a.sock"]
)
def test_nothing_printed_holds_the_password(url):
    target = parse_url(url)

    assert target.password == "s3cret"
    assert "s3cret" not in repr(target) + str(target) + target.shown


@pytest.mark.parametrize(
    "url", ["redis://ann:s3cret", "redis://ann:s3/cret@h", "redis://h?password=s3cret@x", "ann:s3cret@h"]
)
def test_a_password_in_the_wrong_place_is_not_shown(url):
    with pytest.raises(ConfigError) as caught:
        parse_url(url)

    assert "s3" not in str(caught.value)
