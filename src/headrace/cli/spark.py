"""Spark for a command: a session on this machine or a cluster, Ctrl-C, and failures in one sentence.

Spark tells a failure in hundreds of lines, and ours is somewhere in the middle of them. `one_sentence` finds it.
`--verbose`, or HEADRACE_DEBUG=1 in the environment, shows the whole of it first.
"""

import os
import re
import signal
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Annotated, Any

import typer

from headrace import errors
from headrace.cli.output import ClosedPipe, say
from headrace.cli.usage import WrongUsage
from headrace.errors import ConfigError, DataLoss, HeadraceError

if TYPE_CHECKING:
    from threading import Event

Master = Annotated[
    str | None, typer.Option("--master", metavar="URL", help="A cluster: spark://host:7077. Default: this machine.")
]
Verbose = Annotated[bool, typer.Option("--verbose", help="On failure show everything Spark said.")]

# What a job tells its Python callers to set, and what it is called here.
OPTIONS = (
    (re.compile(r"\bset (?:the option )?(?:failOnDataLoss|fail_on_data_loss) to false"), "use --allow-loss"),
    (re.compile(r"\bSet (?:the option )?(?:failOnDataLoss|fail_on_data_loss) to false"), "Use --allow-loss"),
    (re.compile(r"\barchive=NAME"), "--archive NAME"),
)
# How Python and Java write an exception: the last one in a trace is the innermost.
FAILURE = re.compile(r"^(?:Caused by: )?[\w.$]*(?:Error|Exception|Failure): (.+)$", re.MULTILINE)
CODE = re.compile(r"^\[[A-Z0-9_.]+\] ")


def check_spark() -> None:
    """Raises ConfigError with the command that installs what is missing, before anything else is looked at."""
    from headrace.pipeline.session import check_packages

    check_packages()


def check_broker(url: str | None) -> str:
    """The URL chosen, once a broker answered there: starting Spark takes seconds, and a wrong URL should not."""
    from headrace.cli.connection import open_client
    from headrace.client.client import choose_url
    from headrace.pipeline.options import check_broker_url

    with open_client(url):
        pass
    chosen = choose_url(url)
    try:
        check_broker_url(chosen)
    except ConfigError as error:
        raise WrongUsage(str(error)) from error
    return chosen


@contextmanager
def spark_session(name: str, master: str | None) -> Iterator[Any]:
    """A session for one command, ended with it; one that was there before stays."""
    from headrace.pipeline.session import is_provided, session

    was_there = is_provided()
    spark = session(f"headrace {name}", master=master)
    try:
        yield spark
    finally:
        if not was_there:
            spark.stop()


# Failures


@contextmanager
def one_sentence(*, verbose: bool) -> Iterator[None]:
    """Whatever fails inside is a HeadraceError outside. Options that a job refuses are wrong usage."""
    try:
        with quiet_logs(verbose=verbose):
            yield
    except ConfigError as error:
        show_trace(verbose=verbose)
        raise WrongUsage(with_options(str(error))) from error
    except DataLoss as error:
        show_trace(verbose=verbose)
        raise DataLoss(with_options(str(error))) from error
    except HeadraceError:
        show_trace(verbose=verbose)
        raise
    except (ClosedPipe, typer.Exit):
        raise
    except Exception as error:  # Spark's failures have no common ancestor; this is where they become words.
        show_trace(verbose=verbose)
        raise explained(error) from error


def with_options(sentence: str) -> str:
    for pattern, option in OPTIONS:
        sentence = pattern.sub(option, sentence)
    return sentence


def explained(error: Exception) -> HeadraceError:
    """Our own error where there is one inside Spark's, with its kind; else the innermost cause."""
    from headrace.pipeline.spark_errors import explain_error

    sentence = explain_error(error)
    if sentence is None:
        return HeadraceError(f"Spark failed: {innermost(str(error))} Add --verbose to see all of it.")
    [kind] = re.findall(rf"headrace\.errors\.(\w+): {re.escape(sentence)}", str(error))[-1:] or ["HeadraceError"]
    found = getattr(errors, kind, HeadraceError)
    sentence = with_options(sentence)
    return WrongUsage(sentence) if found is ConfigError else found(sentence)


def innermost(text: str) -> str:
    found = FAILURE.findall(text) or text.strip().splitlines()[:1] or ["it does not say why"]
    return CODE.sub("", str(found[-1]).strip()).rstrip(".") + "."


@contextmanager
def quiet_logs(*, verbose: bool) -> Iterator[None]:
    """Nothing that Python's side of Spark logs is shown: at Ctrl-C that is a page of traces."""
    if wants_all(verbose=verbose):
        yield
        return
    import logging

    nowhere = logging.NullHandler()
    logging.getLogger().addHandler(nowhere)
    try:
        yield
    finally:
        logging.getLogger().removeHandler(nowhere)


def wants_all(*, verbose: bool) -> bool:
    return verbose or os.environ.get("HEADRACE_DEBUG", "0") not in ("", "0")


def show_trace(*, verbose: bool) -> None:
    if wants_all(verbose=verbose):
        import traceback

        traceback.print_exc(file=sys.stderr)


# Ctrl-C


@contextmanager
def stopped_by_signal(stop: "Event", received: list[int]) -> Iterator[None]:
    """The first Ctrl-C or SIGTERM asks the job to end, and is listed; a second one ends the process at once."""

    def ask(number: int, _frame: object) -> None:
        for each in (signal.SIGINT, signal.SIGTERM):
            signal.signal(each, signal.SIG_DFL)
        received.append(number)
        stop.set()
        say("ending after the batch under way; once more ends it at once." if number == signal.SIGINT else "ending.")

    before = {each: signal.signal(each, ask) for each in (signal.SIGINT, signal.SIGTERM)}
    try:
        yield
    finally:
        for each, handler in before.items():
            signal.signal(each, handler)
