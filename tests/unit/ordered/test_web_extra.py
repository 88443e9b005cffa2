"""Without the extra `web` everything says in one sentence how to get it."""

import subprocess
import sys

import pytest

from headrace.errors import ConfigError
from headrace.ordered.web_extra import check_web


@pytest.mark.parametrize("package", ["starlette", "uvicorn", "h11"])
def test_a_missing_package_is_named_with_the_command_that_installs_it(package, monkeypatch):
    monkeypatch.setitem(sys.modules, package, None)

    with pytest.raises(ConfigError, match=rf"{package}.*pip install 'headrace\[web\]'"):
        check_web()


def test_a_consumer_that_goes_straight_to_the_broker_needs_none_of_them():
    code = "import sys\nfor name in ('starlette', 'uvicorn', 'h11'): sys.modules[name] = None\n"
    code += "from headrace import OrderedConsumer\nOrderedConsumer(print, url='redis://localhost')"

    subprocess.run([sys.executable, "-c", code], check=True)
