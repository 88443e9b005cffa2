"""module:name, as it is written on the command line -> the App, or a function."""

import sys
from collections.abc import Callable
from importlib import import_module
from typing import Any

from headrace.app.app import App
from headrace.client.layout import a_type
from headrace.errors import ConfigError


def load_app(place: str) -> App:
    """Import the module and give its App."""
    found = load(place, "app", "app:app for the name app in app.py")
    if not isinstance(found, App):
        module_name, _, path = place.partition(":")
        raise ConfigError(f"{place!r} is {kind_of(found)}, not an App. Write {path} = App(...) in {module_name}.")
    return found


def load_function(place: str) -> Callable[[Any], Any]:
    """Import the module and give the function, or another object that can be called."""
    found = load(place, "function", "app:handle for the function handle in app.py")
    if found is None:
        module_name, _, path = place.partition(":")
        raise ConfigError(f"there is no {path!r} in the module {module_name!r}. Write the name of a function in it.")
    if not callable(found) or isinstance(found, type):
        raise ConfigError(f"{place!r} is {kind_of(found)}, not a function that takes a message.")
    return found  # type: ignore[no-any-return]


def kind_of(found: Any) -> str:
    return "nothing of that name" if found is None else a_type(found)


def load(place: str, what: str, example: str) -> Any:
    """Import the module and give what has the name. The folder where the command was started is searched first."""
    module_name, _, path = place.partition(":")
    if not module_name or not path:
        raise ConfigError(f"{place!r} names no {what}; write MODULE:NAME, like {example}.")
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
