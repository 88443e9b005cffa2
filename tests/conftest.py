"""For all tests. Folders add their own fixtures in their own conftest.py."""

from pathlib import Path

import pytest


@pytest.fixture(scope="session")
def root() -> Path:
    """The top of the checkout."""
    return Path(__file__).resolve().parent.parent
