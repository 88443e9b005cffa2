"""module:app, as it is written on the command line -> the App."""

import sys
from importlib import import_module
from typing import Any

from headrace.app.app import App
from headrace.errors import ConfigError


def load_app(place: str) -> App:
    """Import the module and give its App. The folder where the command was started is searched first."""
    module_name, _, path = place.partition(":")
    if not module_name or not path:
        raise ConfigError(f"{place!r} names no app; write MODULE:NAME, like app:app for the name app in app.py.")
    if "" not in sys.path:
        sys.path.insert(0, "")
    try:
        found: Any = import_module(module_name)
    except ModuleNotFoundError as error:
        if error.name != module_name and not module_name.startswith(f"{error.name}."):
            raise import_failed(module_name, error) from error  # It is there, and misses another.
        raise ConfigError(
            f"there is no module {module_name!r} here. Start the command in the folder of your app; write the module "
            "without .py."
        ) from error
    except ConfigError:
        raise  # A declaration that is wrong says so itself.
    except Exception as error:  # Whatever the user's module does when it is imported.
        raise import_failed(module_name, error) from error
    for name in path.split("."):
        found = getattr(found, name, None)
    if not isinstance(found, App):
        kind = "nothing of that name" if found is None else f"a {type(found).__name__}"
        raise ConfigError(f"{place!r} is {kind}, not an App. Write {path} = App(...) in {module_name}.")
    return found


def import_failed(module_name: str, error: Exception) -> ConfigError:
    return ConfigError(
        f"{module_name!r} cannot be imported: {type(error).__name__}: {error}{place_of(error)}. "
        f'See all of it with: python -c "import {module_name}"'
    )


def place_of(error: Exception) -> str:
    """The line of the module itself, behind ours and those of the import machinery. A SyntaxError tells its own."""
    trace = error.__traceback__.tb_next if error.__traceback__ is not None else None
    while trace is not None and "importlib" in trace.tb_frame.f_code.co_filename:
        trace = trace.tb_next
    return "" if trace is None else f" ({trace.tb_frame.f_code.co_filename}, line {trace.tb_lineno})"
