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
            raise  # The module is there, and misses another: its traceback tells.
        raise ConfigError(
            f"there is no module {module_name!r} here. Start the command in the folder of your app; write the module "
            "without .py."
        ) from error
    for name in path.split("."):
        found = getattr(found, name, None)
    if not isinstance(found, App):
        kind = "nothing of that name" if found is None else f"a {type(found).__name__}"
        raise ConfigError(f"{place!r} is {kind}, not an App. Write {path} = App(...) in {module_name}.")
    return found
