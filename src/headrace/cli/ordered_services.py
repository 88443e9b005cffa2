"""headrace ordered master and headrace ordered consumer: the services of the master-consumers pattern."""

import os
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from headrace.cli.usage import Url, WrongUsage, duration, group_name, stream_name
from headrace.errors import ConfigError

if TYPE_CHECKING:
    from headrace.ordered.master_settings import MasterSettings

# As headrace.ordered.master_settings has them; written here so that --help needs no import.
STREAM = "ticket_stream"
GROUP = "concurrency_stream_group"
TOKEN = "HEADRACE_ORDERED_TOKEN"  # noqa: S105 - the name of a variable.

StreamOption = Annotated[str, typer.Option("--stream", metavar="NAME", parser=stream_name, help="The stream.")]
GroupOption = Annotated[str, typer.Option("--group", metavar="NAME", parser=group_name, help="Its group.")]
Token = Annotated[
    str | None, typer.Option(metavar="TEXT", help=f"What callers must send; better in {TOKEN} than here.")
]
Host = Annotated[str, typer.Option(metavar="ADDRESS", help="Where to listen.")]


def master(
    stream: StreamOption = STREAM,
    group: GroupOption = GROUP,
    key_field: Annotated[
        list[str] | None,
        typer.Option("--key-field", metavar="NAME", help="The field with the key; repeat it: the first found counts."),
    ] = None,
    host: Host = "127.0.0.1",
    port: Annotated[int, typer.Option(metavar="N", min=0, max=65535, help="0: a free one.")] = 7381,
    token: Token = None,
    lease: Annotated[
        str, typer.Option(metavar="TIME", parser=duration("--lease"), help="How long a key stays with a silent holder.")
    ] = "30s",
    max_hold: Annotated[
        str, typer.Option(metavar="TIME", parser=duration("--max-hold"), help="And with one that is alive.")
    ] = "10m",
    max_attempts: Annotated[int, typer.Option(metavar="N", min=0, help="Of a message; 0: no limit.")] = 0,
    poison: Annotated[
        str, typer.Option(metavar="park|skip", help="After those: the key stands still, or goes on without it.")
    ] = "park",
    keyless: Annotated[
        str, typer.Option(metavar="own|dead", help="Without a key: a lane of its own, or to the dead letters.")
    ] = "own",
    tickets: Annotated[str, typer.Option(metavar="KEY", help="The map of keys on the broker.")] = "tickets",
    consumers: Annotated[str, typer.Option(metavar="KEY", help="The map of consumers.")] = "consumers",
    reader: Annotated[str, typer.Option(metavar="NAME", help="Who reads the stream in the group.")] = "master",
    early_revoke: Annotated[
        bool, typer.Option("--early-revoke", help="Take keys away as soon as a health URL fails three times.")
    ] = False,
    delete: Annotated[
        bool, typer.Option("--delete", help="Delete messages that every group has acknowledged.")
    ] = False,
    url: Url = None,
) -> None:
    """Serve the coordinator over HTTP until SIGTERM or Ctrl-C. Any number of them may run.

    Example: headrace ordered master --stream ticket_stream --group concurrency_stream_group --key-field ticket_id
    """
    from headrace.cli.connection import open_client
    from headrace.cli.output import say
    from headrace.cli.worker import set_up_logs
    from headrace.ordered.web_extra import check_web

    check_web()
    from headrace.ordered.master import run_master
    from headrace.worker.worker import run_loop

    set_up_logs(is_one_of_several=False)
    settings = usage(
        make_settings, stream=stream, group=group, key_fields=key_field, host=host, port=port,
        token=token or os.environ.get(TOKEN, ""), lease=lease, max_hold=max_hold, max_attempts=max_attempts,
        poison=poison, keyless=keyless, tickets=tickets, consumers=consumers, reader=reader,
        early_revoke=early_revoke, deletes=delete,
    )  # fmt: skip
    with open_client(url):  # Nobody there is told at once.
        pass
    run_loop(run_master(url, settings, say))


def usage(make: Any, **words: Any) -> Any:
    try:
        return make(**words)
    except ConfigError as error:
        raise WrongUsage(str(error)) from error


def make_settings(
    *, stream: str, group: str, key_fields: list[str] | None, lease: str, max_hold: str, max_attempts: int, poison: str,
    keyless: str, tickets: str, consumers: str, reader: str, **more: Any,
) -> "MasterSettings":  # fmt: skip
    from headrace.client.lane_keys import Settings
    from headrace.client.times import parse_duration_ms
    from headrace.ordered.master_settings import KEY_FIELD, MasterSettings

    names = tuple(key_fields or (KEY_FIELD,))
    lease_ms = parse_duration_ms(lease)
    lanes = Settings(names, poison, max_attempts, keyless, lease_ms, reader, tickets, consumers)
    return MasterSettings(stream, group, lanes, max_hold_ms=parse_duration_ms(max_hold), **more)


def consumer(
    place: Annotated[str, typer.Argument(metavar="MODULE:FUNCTION", help="app:handle for `handle` in app.py.")],
    name: Annotated[str | None, typer.Option(metavar="NAME", help="Of the consumer. None: one of its own.")] = None,
    master: Annotated[
        str | None,
        typer.Option(metavar="URL", help="The coordinator, http://localhost:7381; none: the broker alone."),
    ] = None,
    settings: Annotated[
        Path | None, typer.Option(metavar="FILE", help="TOML with ticket_stream, consumer, master_register_api_url…")
    ] = None,
    stream: Annotated[str | None, typer.Option(metavar="NAME", help=f"The stream. [default: {STREAM}]")] = None,
    group: Annotated[str | None, typer.Option(metavar="NAME", help=f"Its group. [default: {GROUP}]")] = None,
    key_field: Annotated[
        str, typer.Option(metavar="NAME", help="The field with the key, where no coordinator has set it.")
    ] = "ticket_id",
    capacity: Annotated[int, typer.Option(metavar="N", min=1, max=1000, help="Keys at the same time.")] = 10,
    host: Host = "127.0.0.1",
    port: Annotated[int, typer.Option(metavar="N", min=0, max=65535, help="Of its /api/health; 0: a free one.")] = 7382,
    health_url: Annotated[
        str | None, typer.Option(metavar="URL", help="Where the coordinator finds it, if not at that host and port.")
    ] = None,
    token: Token = None,
    shutdown_timeout: Annotated[
        str,
        typer.Option(metavar="TIME", parser=duration("--shutdown-timeout"), help="For messages under way then."),
    ] = "30s",
    delete: Annotated[
        bool, typer.Option("--delete", help="Delete messages that every group has acknowledged; without coordinator.")
    ] = False,
    url: Url = None,
) -> None:
    """Handle messages in order per key until SIGTERM or Ctrl-C: through a coordinator, or straight from the broker.

    The environment may give ticket_stream, concurrency_stream_group, consumer, master_register_api_url and
    master_acknowledge_api_url.

    Example: headrace ordered consumer app:handle --name c1 --master http://localhost:7381
    """
    from headrace.cli.worker import set_up_logs
    from headrace.ordered.web_extra import check_web
    from headrace.worker.worker import run_loop

    check_web()
    set_up_logs(is_one_of_several=False)
    words = {"consumer": name, "ticket_stream": stream, "concurrency_stream_group": group}
    run_loop(
        run_consumer(
            place, words, settings, master, url, key_field=key_field, capacity=capacity, host=host, port=port,
            health_url=health_url, token=token or os.environ.get(TOKEN, ""), shutdown_timeout=shutdown_timeout,
            delete=delete,
        )
    )  # fmt: skip


async def run_consumer(
    place: str, words: dict[str, str | None], file: Path | None, master: str | None, url: str | None, **more: Any
) -> None:
    import asyncio
    import signal

    from headrace.app.loading import load_function
    from headrace.cli.connection import open_client
    from headrace.ordered.consumer import OrderedConsumer
    from headrace.ordered.consumer_settings import addresses_of, find_settings

    handler = usage(load_function, place=place)
    found = usage(find_settings, given={**words, **usage(addresses_of, master=master)}, file=file)
    if not found.master_register_api_url and not found.master_acknowledge_api_url:
        with open_client(url):  # Nobody there is told at once.
            pass
    running = usage(OrderedConsumer, handler=handler, settings=found, url=url, **more)
    loop = asyncio.get_running_loop()
    for number in (signal.SIGTERM, signal.SIGINT):
        loop.add_signal_handler(number, running.stop)
    await running.run()
