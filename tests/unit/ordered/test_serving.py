"""A port that cannot be had is told once, with what to do."""

import socket

import pytest

from headrace.errors import ConfigError
from headrace.ordered.serving import bind


def test_a_port_that_is_taken_is_told_in_one_sentence():
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
        with pytest.raises(ConfigError) as told:
            bind("127.0.0.1", port, "--port")

    assert str(told.value) == f"cannot listen on 127.0.0.1:{port}: Address already in use. Give another --port."
