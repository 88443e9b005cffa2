"""Settings of handlers, checked when they are declared. Requirement 214: all in one place, each validated."""

import importlib
import sys

import pytest

from headrace import App, ConfigError, Retries
from headrace.app.handlers import parse_rate
from headrace.app.loading import load_app


def declared(**settings):
    app = App("embedded:")

    @app.handler("orders", **settings)
    async def bill(order: dict) -> None: ...

    return app.handlers[0]


def test_what_a_handler_has_when_nothing_is_said():
    handler = declared()

    assert (handler.stream, handler.group, handler.name) == ("orders", "bill", "bill")
    assert (handler.lease_ms, handler.timeout_ms, handler.concurrency, handler.prefetch) == (30_000, None, 100, 100)
    assert (handler.retries, handler.rate, handler.batch, handler.publish_to) == (Retries(5), None, None, None)


def test_every_setting_is_read():
    handler = declared(
        group="billing", retries=3, lease="1m", timeout="10m", concurrency=7, prefetch=2, rate="500/s", batch=50,
        wait="200ms", publish_to="receipts", keep="7d",
    )  # fmt: skip

    assert (handler.group, handler.retries.count, handler.lease_ms, handler.timeout_ms) == (
        "billing",
        3,
        60_000,
        600_000,
    )
    assert (handler.concurrency, handler.prefetch, handler.rate, handler.batch) == (7, 2, 500.0, 50)
    assert (handler.wait_ms, handler.publish_to, handler.keep_ms) == (200, "receipts", 7 * 86_400_000)


@pytest.mark.parametrize(
    ("settings", "words"),
    [
        ({"group": ""}, "group is ''"),
        ({"group": "hr:x"}, "headrace's own"),
        ({"key": ""}, "key is ''"),
        ({"run": 5}, "run= is about order per key; give key= too"),
        ({"poison": "skip"}, "poison= is about order per key"),
        ({"keyless": "dead"}, "keyless= is about order per key"),
        ({"key": "id", "run": 1001}, "run is 1001; give a whole number from 1 to 1,000"),
        ({"key": "id", "poison": "drop"}, "poison is 'drop'; write 'park' or 'skip'"),
        ({"key": "id", "keyless": "lost"}, "keyless is 'lost'; write 'own' or 'dead'"),
        ({"key": "id", "batch": 10, "run": 5}, "run= and batch= are both given"),
        ({"key": "id", "batch": 10, "wait": "1s"}, "wait= does not go with key="),
        ({"key": "id", "batch": 1001}, "batch is 1001"),
        ({"key": "id", "concurrency": 1001}, "concurrency is 1001"),
        ({"key": "id", "concurrency": 900, "prefetch": 101}, "prefetch is 101; give a whole number from 0 to 100"),
        ({"retries": -1}, "retries is -1"),
        ({"lease": "soon"}, "lease is 'soon'"),
        ({"lease": "1ms"}, "at least 100ms"),
        ({"timeout": 0}, "timeout is 0"),
        ({"concurrency": 0}, "concurrency is 0; give a whole number from 1"),
        ({"concurrency": True}, "concurrency is True"),
        ({"prefetch": -1}, "prefetch is -1"),
        ({"rate": "fast"}, "rate is 'fast'; write it like 500/s"),
        ({"rate": 0}, "rate is 0"),
        ({"batch": 0}, "batch is 0"),
        ({"wait": "1s"}, "give batch= too"),
        ({"publish_to": ""}, "publish_to is ''"),
        ({"keep": "long"}, "keep is 'long'"),
        ({"batch": 5000, "publish_to": "next"}, "at most 1,000"),
    ],
)
def test_a_setting_that_cannot_be_is_named_with_what_to_write(settings, words):
    with pytest.raises(ConfigError, match=words):
        declared(**settings)


def test_a_plain_function_has_fewer_places_and_a_batch_one():
    app = App("embedded:")

    @app.handler("orders")
    def render(job: dict) -> None: ...

    @app.handler("clicks", batch=500)
    async def store(clicks: list) -> None: ...

    assert app.handlers[0].concurrency == 10 and not app.handlers[0].is_async
    assert app.handlers[1].concurrency == 1 and app.handlers[1].prefetch == 1000


def test_two_handlers_of_one_group_are_refused():
    app = App("embedded:")

    @app.handler("orders", group="billing")
    async def bill(order: dict) -> None: ...

    with pytest.raises(ConfigError, match="bill and charge both handle 'orders' as group 'billing'"):

        @app.handler("orders", group="billing")
        async def charge(order: dict) -> None: ...


def test_the_longest_keep_of_a_stream_wins():
    app = App("embedded:", keep="1d")

    @app.handler("orders", keep="7d")
    async def bill(order: dict) -> None: ...

    @app.handler("orders")
    async def ship(order: dict) -> None: ...

    @app.handler("clicks", keep=True)
    async def store(click: dict) -> None: ...

    assert [app.keep_of(handler) for handler in app.handlers] == [7 * 86_400_000, 7 * 86_400_000, -1]


@pytest.mark.parametrize(("text", "rate"), [("500/s", 500), ("30/m", 0.5), ("3600/h", 1), (2.5, 2.5), ("1.5 / s", 1.5)])
def test_rates(text, rate):
    assert parse_rate(text) == rate


def test_a_function_stays_what_it_is():
    app = App("embedded:")

    def double(number: int) -> int:
        return 2 * number

    assert app.handler("numbers")(double) is double and double(4) == 8


def test_an_app_without_a_url_takes_the_environment_and_then_the_file(monkeypatch, tmp_path):
    monkeypatch.chdir(tmp_path)
    monkeypatch.delenv("HEADRACE_URL", raising=False)
    with pytest.raises(ConfigError, match="no URL"):
        _ = App().url

    (tmp_path / "headrace.toml").write_text('url = "redis://from-the-file"\n')
    assert App().url == "redis://from-the-file"
    monkeypatch.setenv("HEADRACE_URL", "redis://from-the-environment")
    assert App().url == "redis://from-the-environment"
    assert App("embedded:").url == "embedded:"


@pytest.mark.parametrize(
    ("text", "words"), [("url = 7", "in quotes"), ("ulr = 'x'", "no setting; there is: url"), ("url", "cannot be read")]
)
def test_a_settings_file_that_cannot_be_used_says_why(monkeypatch, tmp_path, text, words):
    monkeypatch.chdir(tmp_path)
    monkeypatch.delenv("HEADRACE_URL", raising=False)
    (tmp_path / "headrace.toml").write_text(text)

    with pytest.raises(ConfigError, match=words):
        _ = App().url


def test_an_app_is_found_by_module_and_name(monkeypatch, tmp_path):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "shop_of_test.py").write_text("from headrace import App\napp = App('embedded:')\nnumber = 7\n")

    assert isinstance(load_app("shop_of_test:app"), App)
    for place, words in [
        ("shop_of_test", "names no app"),
        ("shop_of_test:nothing", "nothing of that name"),
        ("shop_of_test:number", "is an int, not an App"),
        ("no_such_shop:app", "no module 'no_such_shop'"),
    ]:
        with pytest.raises(ConfigError, match=words):
            load_app(place)


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("import no_such_thing", "No module named 'no_such_thing' .*failing_shop.py, line 1"),
        ("\n1 / 0", "ZeroDivisionError: division by zero .*failing_shop.py, line 2"),
        ("def (", r"SyntaxError: invalid syntax \(failing_shop.py, line 1\)\."),
        ("from headrace import App\nApp('embedded:').handler(print)", "misses the name of its stream"),
    ],
)
def test_a_module_that_fails_is_told_in_one_sentence(monkeypatch, tmp_path, text, words):
    monkeypatch.chdir(tmp_path)
    monkeypatch.delitem(sys.modules, "failing_shop", raising=False)
    importlib.invalidate_caches()
    (tmp_path / "failing_shop.py").write_text(text)

    with pytest.raises(ConfigError, match=words) as told:
        load_app("failing_shop:app")

    assert "\n" not in str(told.value)
