"""headrace check: look at a stopped data folder, and repair it where it is damaged.

Options and words only; headrace.server.check and headrace.server.repair do the work.
"""

import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Annotated

import typer

from headrace.cli.exit_codes import CHECK_FAILED
from headrace.cli.folders import existing_folder
from headrace.cli.output import json_line, printable, write
from headrace.cli.usage import WrongUsage
from headrace.errors import ConfigError, DiskFull, NewerFormat, NotFound

if TYPE_CHECKING:
    from headrace.journal.disk import RealDisk
    from headrace.server.findings import Finding

ADVICE = "Give the folder of headrace serve --dir."
STOP_IT = "Stop it first: only a folder that rests can be checked."


def check(
    folder: Annotated[str, typer.Argument(metavar="DIR", help="The folder of headrace serve --dir.")],
    repair: Annotated[
        bool, typer.Option("--repair", help="Keep a copy, then save what can be saved, and tell what is dropped.")
    ] = False,
    dump: Annotated[bool, typer.Option("--dump", help="Print the journal as commands, and change nothing.")] = False,
) -> None:
    """Check the data folder of a stopped broker, and repair it where it is damaged.

    Without --repair nothing is changed. The exit code is 0 when the folder is sound or was repaired, and 5 when it is
    damaged. Run it without --repair first: it lists every damage.

    Example: headrace check ./headrace-data
    """
    if dump and repair:
        raise WrongUsage("--dump only looks and --repair changes: give one of them.")
    with locked(folder) as disk:
        if dump:
            dump_folder(disk)
            return
        is_sound = check_folder(disk)
        if not is_sound and repair:
            repair_folder(disk)
        elif not is_sound:
            show_advice(folder)
            raise typer.Exit(CHECK_FAILED)


@contextmanager
def locked(folder: str) -> "Iterator[RealDisk]":
    """The folder, with nobody else in it."""
    import os

    from headrace.journal.disk import NO_ROOM, RealDisk
    from headrace.journal.lock import lock_folder
    from headrace.server.check import is_ours

    path = existing_folder(folder, ADVICE)
    disk = RealDisk(path)
    try:
        if not any(is_ours(name) for name in disk.names()):
            raise NotFound(f"there is no data of headrace in {folder!r}. {ADVICE}")
        lock = lock_folder(path, STOP_IT)
        try:
            yield disk
        except NewerFormat as error:
            raise newer(folder, error) from error
        except DiskFull as error:
            raise DiskFull(f"nothing was repaired: there is no room in {folder}: {error}. {NO_ROOM}") from error
        except OSError as error:
            raise ConfigError(f"Cannot check {folder}: {error}.") from error
        finally:
            os.close(lock)
    finally:
        disk.close()


def newer(folder: str, error: NewerFormat) -> NewerFormat:
    return NewerFormat(
        f"The data in {folder} is from a newer headrace: {error}. Use that version. Nothing was changed."
    )


def check_folder(disk: "RealDisk") -> bool:
    from headrace.server import check

    with shown_reading(disk, "check") as progress:
        checked = check.check_folder(disk, progress=progress)
    show(checked.findings)
    show_text("sound" if checked.is_sound else "damaged", "")
    return checked.is_sound


def repair_folder(disk: "RealDisk") -> None:
    from headrace.server import check, repair
    from headrace.server.kept_copy import KeptCopy

    with shown_reading(disk, "repair") as progress:
        findings = repair.repair_folder(disk, KeptCopy(disk.path), progress=progress)
    show(findings)
    with shown_reading(disk, "check") as progress:
        checked = check.check_folder(disk, progress=progress)
    if not checked.is_sound:
        show(checked.findings)
        raise ConfigError("The repaired folder is still damaged. The files from before are kept, as said above.")


def dump_folder(disk: "RealDisk") -> None:
    from headrace.server.check import dump_log

    for line in dump_log(disk):
        write(line + "\n", sys.stdout)
    write("", sys.stdout, flush=True)


# Words


def show(findings: "list[Finding]") -> None:
    for finding in findings:
        if sys.stdout.isatty():
            write(printable(finding.sentence()) + "\n", sys.stdout)
        else:
            facts = {"what": finding.what, "text": finding.text, "file": finding.file or None}
            write(json_line({**facts, "offset": finding.offset if finding.offset >= 0 else None}), sys.stdout)
    write("", sys.stdout, flush=True)


def show_text(what: str, text: str) -> None:
    line = what if sys.stdout.isatty() else json_line({"what": what, "text": text, "file": None, "offset": None})
    write(line.rstrip("\n") + "\n", sys.stdout, flush=True)


def show_advice(folder: str) -> None:
    from shlex import quote

    from headrace.cli.output import say

    say(f"the folder is damaged. To save what can be saved: headrace check {quote(folder)} --repair")


@contextmanager
def shown_reading(disk: "RealDisk", what: str) -> "Iterator[Callable[[int], None]]":
    """Shows how much of the folder was read, on a terminal."""
    from headrace.cli.progress import shown_bytes
    from headrace.server.check import total_bytes

    total = total_bytes(disk)
    done = 0

    with shown_bytes(what) as update:

        def add(count: int) -> None:
            nonlocal done
            done += count
            update(done, max(done, total))

        yield add
