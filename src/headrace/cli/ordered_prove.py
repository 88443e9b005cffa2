"""headrace ordered prove: the chaos test of order per key, on the user's own server."""

import secrets
import signal
import sys
from contextlib import ExitStack
from typing import TYPE_CHECKING, Annotated

import typer

from headrace.cli.exit_codes import CHECK_FAILED
from headrace.cli.output import say
from headrace.cli.usage import Url, WrongUsage, duration
from headrace.errors import ConfigError

if TYPE_CHECKING:
    from headrace.cli.output import Row
    from headrace.ordered.prove import Report
    from headrace.ordered.prove_plan import Plan

COLUMNS = ("promise", "found", "verdict")


def prove(
    place: Annotated[
        str | None, typer.Argument(metavar="URL", show_default=False, help="Your server; --url means the same.")
    ] = None,
    keys: Annotated[int, typer.Option(metavar="N", help="Keys.")] = 300,
    messages: Annotated[int, typer.Option(metavar="N", help="Messages, each with a random key.")] = 20_000,
    consumers: Annotated[int, typer.Option(metavar="N", help="Processes that work on them.")] = 8,
    kill_every: Annotated[
        str,
        typer.Option(metavar="TIME", parser=duration("--kill-every"), help="One is killed, paused or leaves so often."),
    ] = "2s",
    duration_: Annotated[
        str,
        typer.Option("--duration", metavar="TIME", parser=duration("--duration"), help="Messages come for so long."),
    ] = "30s",
    lease: Annotated[
        str, typer.Option(metavar="TIME", parser=duration("--lease"), help="How long a key is held without a sign.")
    ] = "2s",
    seed: Annotated[
        int | None, typer.Option(metavar="N", show_default=False, help="Repeat the choices of another run.")
    ] = None,
    json: Annotated[bool, typer.Option("--json", help="One JSON object, also on a terminal.")] = False,
    url: Url = None,
) -> None:
    """Prove order per key on your own server: consumers are killed, then every promise is checked in the data.

    It touches only keys of its own, with a random word in their names, and removes them. Exit code 5 when a promise
    did not hold.

    Example: headrace ordered prove redis://localhost:6379 --kill-every 1s
    """
    if place and url:
        raise WrongUsage("the server is named twice; leave --url out.")
    signal.signal(signal.SIGTERM, signal.default_int_handler)  # As Ctrl-C: nothing is left behind.
    plan = make_plan(keys, messages, consumers, kill_every, duration_, lease, seed)
    report = run(place or url, plan, is_quiet=json)
    show(report, is_json=json or not sys.stdout.isatty())
    if report.last_words:
        say(f"the consumers got no further for a minute. Their last words:\n{report.last_words}")
    if not report.holds:
        raise typer.Exit(CHECK_FAILED)


def make_plan(
    keys: int, messages: int, consumers: int, kill_every: str, duration_: str, lease: str, seed: int | None
) -> "Plan":
    from headrace.client.times import parse_duration_ms
    from headrace.ordered.prove_plan import Plan

    chosen = secrets.randbelow(2**31) if seed is None else seed
    try:
        return Plan(
            keys=keys, messages=messages, consumers=consumers, kill_every_ms=parse_duration_ms(kill_every),
            duration_ms=parse_duration_ms(duration_), lease_ms=parse_duration_ms(lease), seed=chosen,
        )  # fmt: skip
    except ConfigError as error:
        raise WrongUsage(str(error)) from error


def run(url: str | None, plan: "Plan", *, is_quiet: bool) -> "Report":
    from headrace.cli.connection import open_client
    from headrace.cli.progress import shown_progress
    from headrace.client.client import choose_url
    from headrace.ordered.prove import prove
    from headrace.worker.supervisor import kept_hosted

    with ExitStack() as stack:
        client = stack.enter_context(open_client(url))
        if client.url.startswith("embedded:"):
            stack.enter_context(kept_hosted(client))  # The consumers may come and go; the broker stays.
        if not is_quiet:
            say(
                f"{plan.messages:,} messages with {plan.keys:,} keys, {plan.consumers} consumers, a lease of "
                f"{plan.lease_ms / 1000:g} s. Seed {plan.seed}; the stream is {plan.stream}."
            )
        update = stack.enter_context(shown_progress("in order", at_first="consumers start"))
        return prove(client, choose_url(url), plan, update or (lambda *_: None))


def show(report: "Report", *, is_json: bool) -> None:
    from headrace.cli.output import json_line, show_rows, write

    if is_json:
        write(json_line(facts_of(report)), sys.stdout, flush=True)
        return
    rows = [
        {"promise": one.promise, "found": one.found, "verdict": "holds" if one.holds else "FAILS"}
        for one in report.verdicts
    ]
    show_rows(COLUMNS, rows)
    happened = ", ".join(f"{count} {what}" for what, count in sorted(report.events.items()))
    rate = report.plan.messages / report.seconds
    write(
        f"{report.seconds:.0f} s, {rate:,.0f} messages/s; consumers: {happened}; "
        f"{report.reruns:,} messages needed more than one attempt\n",
        sys.stdout,
        flush=True,
    )


def facts_of(report: "Report") -> "Row":
    plan = report.plan
    return {
        "holds": report.holds,
        "seed": plan.seed,
        "stream": plan.stream,
        "keys": plan.keys,
        "messages": plan.messages,
        "consumers": plan.consumers,
        "lease_ms": plan.lease_ms,
        "seconds": round(report.seconds, 3),
        "events": dict(report.events),
        "reruns": report.reruns,
        "refused": report.evidence.refused,
        "checks": [{"promise": one.promise, "found": one.found, "holds": one.holds} for one in report.verdicts],
    }
