"""Who listens to what."""

from __future__ import annotations

from headrace.engine.channels import Channels, Listeners


def test_a_client_listens_once_however_often_it_says_so() -> None:
    listeners = Listeners()

    assert listeners.add(1, b"news")
    assert not listeners.add(1, b"news")
    assert listeners.add(2, b"news")
    assert listeners.count_on(b"news") == 2
    assert listeners.names_of(1) == [b"news"]


def test_a_channel_is_gone_with_its_last_listener() -> None:
    listeners = Listeners()
    listeners.add(1, b"news")
    listeners.add(2, b"news")

    assert listeners.remove(1, b"news")
    assert not listeners.remove(1, b"news")
    assert listeners.matching(None) == [b"news"]
    assert listeners.remove(2, b"news")
    assert (listeners.matching(None), listeners.by_client, listeners.size_bytes) == ([], {}, 0)


def test_a_pattern_is_read_once_and_forgotten_with_its_last_listener() -> None:
    channels = Channels()
    channels.add_pattern(1, b"news.*")
    glob = channels.globs[b"news.*"]
    channels.add_pattern(2, b"news.*")
    assert channels.globs[b"news.*"] is glob

    channels.remove_pattern(1, b"news.*")
    assert channels.patterns_on(b"news.tea") == [b"news.*"]
    channels.remove_pattern(2, b"news.*")
    assert channels.patterns_on(b"news.tea") == []
    assert channels.globs == {}


def test_ending_a_pattern_nobody_listens_to_leaves_the_others() -> None:
    channels = Channels()
    channels.add_pattern(1, b"a*")

    assert not channels.remove_pattern(2, b"a*")
    assert not channels.remove_pattern(1, b"b*")
    assert channels.patterns_on(b"ab") == [b"a*"]


def test_patterns_match_in_the_order_they_came() -> None:
    channels = Channels()
    for pattern in (b"*", b"news.*", b"other", b"news.te?"):
        channels.add_pattern(1, pattern)

    assert channels.patterns_on(b"news.tea") == [b"*", b"news.*", b"news.te?"]


def test_a_client_that_is_gone_leaves_nothing_behind() -> None:
    channels = Channels()
    channels.channels.add(1, b"news")
    channels.add_pattern(1, b"news.*")
    channels.shards.add(1, b"news")
    channels.channels.add(2, b"news")
    assert (channels.count_of(1), channels.count_clients()) == (2, 2)

    channels.forget(1)

    assert not channels.is_listening(1)
    assert channels.is_listening(2)
    assert (channels.count_of(1), channels.count_clients(), channels.globs) == (0, 1, {})
    channels.forget(2)
    assert channels.size_bytes() == 0
