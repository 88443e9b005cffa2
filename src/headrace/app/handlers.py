"""A handler as it is declared: the function, what it reads, and its settings, all checked when the module is loaded."""

import inspect
import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from typing import Any, Final

from headrace.app.retries import Retries, read_retries
from headrace.app.signature import Parameter, Signature, name_of, read_parameters, resolve
from headrace.client.results import encode_text
from headrace.client.times import Duration, parse_duration_ms
from headrace.errors import ConfigError

CONCURRENCY: Final = 100  # Messages of one async handler that run at once, in each process. Batches: one at a time.
THREADS: Final = 10  # The same for a plain function: each has a thread of its own.
MOST_CONCURRENCY: Final = 100_000
MOST_THREADS: Final = 1000
MOST_BATCH: Final = 10_000
MOST_BATCH_PUBLISHED: Final = 1000
LEASE: Final = "30s"
SHORTEST_LEASE_MS: Final = 100  # Below that, a busy machine could not extend in time.
BATCH_WAIT: Final = "100ms"
RUN: Final = 10  # Messages of one key that are taken at once.
MOST_KEYS: Final = 1000  # Held at once by a handler with a key; and messages of one key.
POISON: Final = ("park", "skip")
KEYLESS: Final = ("own", "dead")
RATE: Final = re.compile(r"(\d+(?:\.\d+)?)\s*/\s*(s|m|h)")
RATE_UNIT_S: Final = {"s": 1, "m": 60, "h": 3600}


@dataclass(frozen=True, slots=True)
class Handler:
    """One function that handles the messages of one stream, as one group."""

    function: Callable[..., Any]
    parameters: list[Parameter]
    is_async: bool
    stream: str
    group: str
    retries: Retries
    lease_ms: int
    timeout_ms: int | None  # How long one run may take.
    concurrency: int
    prefetch: int  # Read in advance, beyond those that run.
    rate: float | None  # Runs started in a second, in each process.
    batch: int | None
    wait_ms: int  # How long a batch waits for more after its first message.
    publish_to: str | None
    keep_ms: int | None  # None: deleted when nobody needs it; -1: kept for ever.
    key: str | None = None  # Messages that have the same value here run one by one, in order.
    run: int = RUN  # How many of one key are taken at once.
    poison: str = POISON[0]  # After the last attempt: the key is parked, or the message skipped.
    keyless: str = KEYLESS[0]  # A message without a key: on its own, or a dead letter.

    @property
    def name(self) -> str:
        return name_of(self.function)

    @property
    def runs_once(self) -> bool:
        """Whether a message may be tried only once: then every try is written down before it begins."""
        return self.retries.count == 0

    def signature(self, provided: Mapping[Any, Any]) -> Signature:
        return resolve(self.name, self.parameters, provided, is_batch=self.batch is not None)


def declare(
    function: Callable[..., Any],
    stream: str,
    *,
    group: str | None,
    key: str | None,
    retries: Retries | int | None,
    lease: Duration,
    timeout: Duration | None,
    concurrency: int | None,
    prefetch: int | None,
    rate: str | float | None,
    batch: int | None,
    wait: Duration | None,
    publish_to: str | None,
    keep: Duration | bool | None,
    run: int | None = None,
    poison: str | None = None,
    keyless: str | None = None,
) -> Handler:
    """A Handler, or one ConfigError that names the setting and what to write."""
    if not callable(function):
        raise ConfigError(f"{function!r} is no function; put @app.handler(...) above one.")
    is_async = inspect.iscoroutinefunction(function)
    check_order(key, run=run, poison=poison, keyless=keyless, batch=batch, wait=wait)
    if wait is not None and batch is None:
        raise ConfigError("wait= is how long a batch gathers; give batch= too, or leave it out.")
    most = MOST_KEYS if key is not None else MOST_CONCURRENCY if is_async else MOST_THREADS
    size = None if batch is None else check_count("batch", batch, 1, 1, MOST_BATCH if key is None else MOST_KEYS)
    usual = 1 if size and key is None else CONCURRENCY if is_async else THREADS
    chosen = check_count("concurrency", concurrency, usual, 1, most)
    in_advance = usual_prefetch(chosen, size) if key is None else 0
    most_in_advance = MOST_CONCURRENCY if key is None else MOST_KEYS - chosen
    if size is not None and size > MOST_BATCH_PUBLISHED and publish_to is not None:
        raise ConfigError(f"batch is {size:,}; with publish_to at most {MOST_BATCH_PUBLISHED:,} settle in one step.")
    lease_ms = parse_duration_ms(lease, "lease")
    if lease_ms < SHORTEST_LEASE_MS:
        raise ConfigError(f"lease is {lease!r}; it must be at least {SHORTEST_LEASE_MS}ms.")
    return Handler(
        function=function,
        parameters=read_parameters(function),
        is_async=is_async,
        stream=check_name("the stream", stream),
        group=check_name("group", name_of(function) if group is None else group),
        retries=read_retries(retries),
        lease_ms=lease_ms,
        timeout_ms=None if timeout is None else check_positive("timeout", timeout),
        concurrency=chosen,
        prefetch=check_count("prefetch", prefetch, in_advance, 0, most_in_advance),
        rate=None if rate is None else parse_rate(rate),
        batch=size,
        wait_ms=parse_duration_ms(BATCH_WAIT if wait is None else wait, "wait"),
        publish_to=None if publish_to is None else check_name("publish_to", publish_to),
        keep_ms=read_keep(keep),
        key=None if key is None else check_name("key", key),
        run=size or check_count("run", run, RUN, 1, MOST_KEYS),
        poison=check_word("poison", poison, POISON),
        keyless=check_word("keyless", keyless, KEYLESS),
    )


def with_concurrency(handler: Handler, concurrency: int) -> Handler:
    """The same handler, for so many at once."""
    if handler.key is not None:
        chosen = check_count("concurrency", concurrency, 1, 1, MOST_KEYS - handler.prefetch)
        return replace(handler, concurrency=chosen)
    most = MOST_CONCURRENCY if handler.is_async else MOST_THREADS
    chosen = check_count("concurrency", concurrency, 1, 1, most)
    return replace(handler, concurrency=chosen, prefetch=usual_prefetch(chosen, handler.batch))


def usual_prefetch(concurrency: int, batch: int | None) -> int:
    """Two batches: while one runs, the server settles the one before and gives the one after."""
    return max(concurrency, 2 * (batch or 0))


def check_order(
    key: Any, *, run: Any, poison: Any, keyless: Any, batch: int | None, wait: Duration | None
) -> None:  # fmt: skip
    """What goes with key=, and what does not."""
    if key is None:
        for name, value in (("run", run), ("poison", poison), ("keyless", keyless)):
            if value is not None:
                raise ConfigError(f"{name}= is about order per key; give key= too, or leave it out.")
        return
    if batch is not None and run is not None:
        raise ConfigError("run= and batch= are both given: with batch= that many messages of a key are taken at once.")
    if wait is not None:
        raise ConfigError("wait= does not go with key=: a batch is what there is of a key, up to batch=. Leave it out.")


def check_word(what: str, value: Any, possible: tuple[str, ...]) -> str:
    if value is None:
        return possible[0]
    if value not in possible:
        raise ConfigError(f"{what} is {value!r}; write {' or '.join(map(repr, possible))}.")
    return str(value)


def check_name(what: str, name: Any) -> str:
    if not isinstance(name, str) or not name:
        raise ConfigError(f"{what} is {name!r}; give a name, like 'orders'.")
    try:
        encode_text(name)
    except UnicodeEncodeError:
        raise ConfigError(f"{what} is {name!r}; half a character cannot be written. Give another name.") from None
    if what == "group" and (name.startswith("hr:") or name.endswith(":again")):
        raise ConfigError(f"group is {name!r}; names that begin with hr: or end with :again are headrace's own.")
    return name


def check_count(what: str, value: Any, default: int, least: int, most: int) -> int:
    if value is None:
        return default
    if isinstance(value, bool) or not isinstance(value, int) or not least <= value <= most:
        raise ConfigError(f"{what} is {value!r}; give a whole number from {least:,} to {most:,}.")
    return value


def check_positive(what: str, value: Duration) -> int:
    milliseconds = parse_duration_ms(value, what)
    if milliseconds == 0:
        raise ConfigError(f"{what} is {value!r}; it must be longer than nothing. Leave it out for no limit.")
    return milliseconds


def parse_rate(value: str | float) -> float:
    """Runs in a second: "500/s", "30/m", or a number."""
    if isinstance(value, (int, float)) and not isinstance(value, bool):
        rate = float(value)
    else:
        match = RATE.fullmatch(value.strip()) if isinstance(value, str) else None
        rate = float(match[1]) / RATE_UNIT_S[match[2]] if match else 0.0
    if not 0 < rate < 1e9:
        raise ConfigError(f"rate is {value!r}; write it like 500/s, 30/m or 1000/h.")
    return rate


def read_keep(keep: Duration | bool | None) -> int | None:
    """How long acknowledged entries stay: None, not at all; -1, for ever."""
    if keep is None or keep is False:
        return None
    return -1 if keep is True else parse_duration_ms(keep, "keep")
