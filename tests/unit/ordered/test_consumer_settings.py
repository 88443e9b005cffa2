"""Row 306: a consumer is told its settings by the names of the article, from the environment or a file."""

import pytest

from headrace.errors import ConfigError
from headrace.ordered.addresses import ACKNOWLEDGE, REGISTER, base_of
from headrace.ordered.consumer_settings import addresses_of, find_settings

MASTER = "http://localhost:7381"


def test_without_any_the_names_are_those_of_the_article():
    found = find_settings({}, environment={})

    assert (found.ticket_stream, found.concurrency_stream_group) == ("ticket_stream", "concurrency_stream_group")
    assert found.consumer == found.master_register_api_url == found.master_acknowledge_api_url == ""


def test_the_environment_has_them_in_small_letters_or_capitals():
    around = {"ticket_stream": "orders", "CONSUMER": "c7", "MASTER_REGISTER_API_URL": MASTER + REGISTER}
    found = find_settings({}, environment=around)

    assert (found.ticket_stream, found.consumer) == ("orders", "c7")
    assert found.master_acknowledge_api_url == MASTER + ACKNOWLEDGE


def test_what_is_given_comes_before_the_environment_and_that_before_the_file(tmp_path):
    file = tmp_path / "consumer.toml"
    file.write_text('ticket_stream = "f"\nconcurrency_stream_group = "f"\nconsumer = "f"\n')
    around = {"concurrency_stream_group": "e", "consumer": "e"}
    found = find_settings({"consumer": "g", "ticket_stream": None}, file, around)

    assert (found.ticket_stream, found.concurrency_stream_group, found.consumer) == ("f", "e", "g")


@pytest.mark.parametrize("text", ["consumr = 'x'", "consumer = 7", "consumer ="])
def test_a_file_that_cannot_be_used_says_why(tmp_path, text):
    file = tmp_path / "consumer.toml"
    file.write_text(text)

    with pytest.raises(ConfigError, match=r"consumer\.toml"):
        find_settings({}, file, {})


def test_a_missing_file_is_told(tmp_path):
    with pytest.raises(ConfigError, match="cannot be read"):
        find_settings({}, tmp_path / "none.toml", {})


def test_the_address_of_a_coordinator_gives_both_urls():
    found = find_settings(addresses_of(MASTER + "/"), environment={})

    assert found.master_register_api_url == MASTER + REGISTER
    assert base_of(found.master_register_api_url, REGISTER, "x") == MASTER
    assert addresses_of(None) == {}


@pytest.mark.parametrize("url", ["", "localhost:7381" + REGISTER, MASTER + "/register"])
def test_an_address_of_another_form_is_refused(url):
    with pytest.raises(ConfigError, match="master_register_api_url"):
        base_of(url, REGISTER, "master_register_api_url")


def test_a_coordinator_without_its_scheme_is_refused():
    with pytest.raises(ConfigError, match=r"'localhost:7381'; write it like http://localhost:7381\."):
        addresses_of("localhost:7381")
