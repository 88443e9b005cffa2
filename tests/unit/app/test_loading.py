"""MODULE:FUNCTION of a command line: what is there, and what is not."""

import pytest

from headrace.app.loading import load_function
from headrace.errors import ConfigError


def test_a_function_is_found_by_its_module_and_name():
    from json import dumps

    assert load_function("json:dumps") is dumps


@pytest.mark.parametrize(
    ("place", "told"),
    [
        ("json:nothing", "there is no 'nothing' in the module 'json'"),
        ("json:__name__", "'json:__name__' is a str, not a function that takes a message"),
        ("nowhere_at_all:handle", "there is no module 'nowhere_at_all' here"),
        ("json", "'json' names no function; write MODULE:NAME"),
    ],
)
def test_what_is_no_function_is_told(place, told):
    with pytest.raises(ConfigError, match=told):
        load_function(place)
