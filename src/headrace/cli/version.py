"""Which headrace this is: version, and whether the hot rooms are compiled.

A compiled module beside its source always wins the import, so the answer is read from where modules would be loaded
from, not from how the project was meant to be built.
"""

import platform
from importlib.util import find_spec

from headrace import __version__

# Stands for all hot rooms: they are compiled together or not at all (setup.py).
A_HOT_MODULE = "headrace.errors"


def version_line() -> str:
    return f"headrace {__version__} ({loaded_build()}, Python {platform.python_version()})"


def loaded_build() -> str:
    """Either "compiled" or "plain", as --version shows it."""
    spec = find_spec(A_HOT_MODULE)
    assert spec is not None
    assert spec.origin is not None
    return "plain" if spec.origin.endswith(".py") else "compiled"
