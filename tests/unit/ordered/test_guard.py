"""Who may ask a coordinator."""

import pytest

from headrace.errors import ConfigError
from headrace.ordered.guard import Guard
from headrace.ordered.master_settings import MasterSettings, is_loopback
from headrace.ordered.refusal import Refusal

HERE = {"host": "localhost:7381"}


def status_of(guard, headers):
    try:
        guard.check(headers)
    except Refusal as refusal:
        return refusal.status
    return 200


def test_with_a_token_only_who_has_it_may_ask():
    guard = Guard("secret", "0.0.0.0")

    assert status_of(guard, {"authorization": "Bearer secret", "host": "anything"}) == 200
    assert status_of(guard, {"authorization": "bearer secret"}) == 200
    for wrong in ("", "secret", "Bearer", "Bearer wrong", "Basic secret", "Bearer sécret"):
        assert status_of(guard, {"authorization": wrong, **HERE}) == 401


def test_without_a_token_programs_of_this_machine_may_ask_and_web_pages_may_not():
    guard = Guard("", "127.0.0.1")

    for host in ("localhost", "localhost:7381", "127.0.0.1:7381", "[::1]:7381", "127.0.0.2"):
        assert status_of(guard, {"host": host}) == 200
    for host in ("", "evil.example", "evil.example:7381", "127.0.0.1.evil.example", "10.0.0.1"):
        assert status_of(guard, {"host": host}) == 403
    assert status_of(guard, {**HERE, "origin": "http://evil.example"}) == 403


def test_an_address_that_others_reach_needs_a_token():
    for host in ("0.0.0.0", "::", "10.1.2.3", "no-such-host.invalid"):
        with pytest.raises(ConfigError, match="token"):
            MasterSettings(host=host)
    assert MasterSettings(host="0.0.0.0", token="x").token == "x"
    assert is_loopback("127.0.0.1") and is_loopback("::1") and is_loopback("localhost")


def test_a_lease_that_cannot_be_kept_is_refused():
    from dataclasses import replace

    with pytest.raises(ConfigError, match="lease"):
        MasterSettings(lanes=replace(MasterSettings().lanes, lease_ms=5))
    with pytest.raises(ConfigError, match="hold"):
        MasterSettings(max_hold_ms=10)
