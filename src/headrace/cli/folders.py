"""Folders that a command is given."""

from pathlib import Path

from headrace.errors import NotFound


def existing_folder(name: str, advice: str) -> Path:
    """NotFound when there is none, with the advice what to give instead."""
    from headrace.journal.disk import cannot_use

    path = Path(name)
    try:
        if name and path.is_dir():
            return path
        is_other = bool(name) and path.exists()
    except OSError as error:  # A folder above it is not ours to enter.
        raise cannot_use(path, error) from error
    raise NotFound(f"{name!r} is not a folder. {advice}" if is_other else f"there is no folder {name!r}. {advice}")
