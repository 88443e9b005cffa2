"""headrace worker: run the handlers of an app, in one process or several.

With one process it runs here. With several, or with --reload, this process only supervises: it hosts the broker of an
embedded: folder, and the processes that run handlers never do, so that none of them takes the broker with it.
"""

import logging
import os
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from headrace.cli.output import say
from headrace.cli.usage import Url, WrongUsage, duration
from headrace.errors import ConfigError

if TYPE_CHECKING:
    from headrace.app.app import App

CHILD = "HEADRACE_WORKER_CHILD"  # Set for the processes of a supervisor.
CHILD_URL = "HEADRACE_WORKER_URL"  # Their --url; on a command line other users could see its password.
MOST_PROCESSES = 256


def worker(
    place: Annotated[str, typer.Argument(metavar="MODULE:APP", help="The app: app:app for `app` in app.py.")],
    processes: Annotated[
        int, typer.Option(metavar="N", min=1, max=MOST_PROCESSES, help="Processes that run handlers.")
    ] = 1,
    concurrency: Annotated[
        int | None, typer.Option(metavar="N", min=1, help="Messages at once per handler, instead of its own setting.")
    ] = None,
    shutdown_timeout: Annotated[
        str,
        typer.Option(
            metavar="TIME", parser=duration("--shutdown-timeout"), help="For handlers that run when it is told to stop."
        ),
    ] = "30s",
    reload: Annotated[bool, typer.Option("--reload", help="Start anew when a Python file here changes.")] = False,
    url: Url = None,
) -> None:
    """Run the handlers of an app until SIGTERM or Ctrl-C. What is not finished then goes back at once.

    Example: headrace worker app:app --processes 2
    """
    is_child = os.environ.pop(CHILD, "") == "1"
    set_up_logs(is_one_of_several=is_child)
    app = load(place, os.environ.pop(CHILD_URL, None) or url, concurrency)
    if is_child:
        from headrace.worker.worker import run_as_child

        app.may_host = False
        run_as_child(app, shutdown_timeout)
        return
    for line in rules_of(app):
        say(line)
    if processes == 1 and not reload:
        app.run(shutdown_timeout=shutdown_timeout)
    else:
        supervise(app, place, processes, concurrency, shutdown_timeout, reload=reload, url=url)


def load(place: str, url: str | None, concurrency: int | None) -> "App":
    """The app, checked: whatever is wrong with its declarations shows before anything runs."""
    from headrace.app.handlers import with_concurrency
    from headrace.app.loading import load_app
    from headrace.client.urls import parse_url

    try:
        app = load_app(place)
        if url is not None:
            app.use_url(url)
        if not app.handlers:
            raise ConfigError(f"{place} has no handlers: there is nothing to work on. Declare one with @app.handler.")
        for handler in app.handlers:
            handler.signature(app.providers)
        if concurrency is not None:
            app.handlers[:] = [with_concurrency(handler, concurrency) for handler in app.handlers]
        parse_url(app.url)  # A wrong one shows here, and not in every process.
        is_in_memory = app.url == "embedded:"
    except ConfigError as error:
        raise WrongUsage(str(error)) from error
    if is_in_memory:
        raise WrongUsage(
            "embedded: is a broker inside one process, in memory: nobody else could publish to this worker. Use "
            'embedded:./data, a folder that others may open too, or start "headrace serve" and give its URL.'
        )
    return app


def supervise(
    app: "App", place: str, processes: int, concurrency: int | None, shutdown_timeout: str, *, reload: bool,
    url: str | None,
) -> None:  # fmt: skip
    from headrace.client.client import Client
    from headrace.client.times import parse_duration_ms
    from headrace.worker.supervisor import Supervisor, kept_hosted
    from headrace.worker.watching import Watcher

    command = [sys.executable, "-m", "headrace", "worker", place, "--shutdown-timeout", shutdown_timeout]
    command += [] if concurrency is None else ["--concurrency", str(concurrency)]
    environment = {**os.environ, CHILD: "1", **({} if url is None else {CHILD_URL: url})}
    watcher = Watcher(Path.cwd()) if reload else None
    shutdown_s = parse_duration_ms(shutdown_timeout) / 1000
    has_changed = None if watcher is None else watcher.has_changed
    supervisor = Supervisor(command, environment, processes, shutdown_s, has_changed)
    if app.url.startswith("embedded:"):
        with Client(app.url) as host, kept_hosted(host):
            supervisor.run()
    else:
        supervisor.run()


def rules_of(app: "App") -> list[str]:
    """What will happen, in one line per handler."""
    from headrace.cli.output import counted

    lines = []
    for handler in app.handlers:
        keep_ms = app.keep_of(handler)
        order = "" if handler.key is None else f", in order by {handler.key}"
        kept = "deleted when every group is done"
        if keep_ms is not None:
            kept = "kept for ever" if keep_ms < 0 else f"kept for {keep_ms / 3_600_000:g} h"
        retries = counted(handler.retries.count, "retry", "retries")
        lines.append(
            f"{handler.stream}: {handler.name} (group {handler.group}), {retries}, "
            f"lease {handler.lease_ms / 1000:g} s, entries {kept}{order}"
        )
    return lines


def set_up_logs(*, is_one_of_several: bool) -> None:
    """Events to stderr, unless the app has set up logs of its own."""
    who = f" [{os.getpid()}]" if is_one_of_several else ""
    logging.basicConfig(level=logging.INFO, format=f"%(asctime)s %(levelname)s{who} %(message)s", stream=sys.stderr)
