"""For all tests. Folders add their own fixtures in their own conftest.py."""

import signal
from pathlib import Path

import pytest

# A shell that runs the tests in the background makes them deaf to Ctrl-C, and what they start with them.
if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
    signal.signal(signal.SIGINT, signal.default_int_handler)


@pytest.fixture(scope="session")
def root() -> Path:
    """The top of the checkout."""
    return Path(__file__).resolve().parent.parent
